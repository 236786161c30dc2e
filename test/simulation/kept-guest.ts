/**
 * A client of a world with kept sessions: it comes, makes sessions, prompts, goes in the middle of a turn, comes back, looks on,
 * answers or leaves it, and reads or does not. Whatever it is told is held against what was said (`kept-log.ts`).
 */
import type { Message } from './kept-agent.ts'
import { type Beginning, type KeptLog, Reading } from './kept-log.ts'
import type { KeptWorld } from './kept-world.ts'
import { demand } from './violation.ts'

interface Owed {
  readonly method: string
  readonly session: string | undefined
  /** The session may be found to be lost, as far as the world knows. */
  readonly mayBeLost: boolean
  readonly log: KeptLog | undefined
  readonly askedAtMs: number
  /** The number from which it wishes to hear; left out: from now. */
  readonly from?: number | undefined
  /** What it read before it asked: it goes on with that if it is refused. */
  readonly before?: Reading | undefined
}

interface Place {
  readonly log: KeptLog
  readonly role: 'drive' | 'observe'
  /** The number of its last line; -1: it does not count. */
  seq: number
  /** What was there before this is known to be gone. */
  readonly firstSeq: number
  /** The agent has told all of it again: what was said before is no more. */
  readonly isRenewed?: true
}

const CLAIMS = new Set(['session/load', 'session/resume', 'bus::sessions.attach'])
const LEAVES = new Set(['bus::sessions.detach', 'session/close'])

export class KeptGuest {
  readonly world: KeptWorld
  readonly number: number
  readonly principal: string
  readonly owed = new Map<number, Owed>()
  readonly readings = new Map<number, Reading>()
  /** Sessions that it takes part in, or looks at, and how it came. */
  readonly sessions = new Map<string, Place>()
  readonly #questions = new Map<string, Message>()
  #unread = Buffer.alloc(0)
  #ids = 0
  #prompts = 0
  isOpen = true
  isReady = false
  isReading = true
  /** It is sent what it did not read before. */
  isCatchingUp = false
  isPaused = false

  constructor(world: KeptWorld, number: number, principal: string) {
    this.world = world
    this.number = number
    this.principal = principal
  }

  toString(): string {
    return `guest ${this.number} of ${this.principal}`
  }

  get hasUnread(): boolean {
    return this.#unread.length > 0
  }

  /** It has asked for the session, and has no answer that it could have read. */
  isClaiming(log: KeptLog): boolean {
    if (this.#unread.length > 0) return false
    return [...this.owed.values()].some((owed) => owed.method === 'session/load' && owed.log === log)
  }

  // ---- what it sends ----

  ask(method: string, params: object, more: Partial<Owed> = {}): void {
    const id = ++this.#ids
    const session = (params as { sessionId?: string; session?: string }).sessionId ?? (params as Message).session
    this.owed.set(id, { method, session, mayBeLost: true, log: undefined, askedAtMs: this.world.nowMs, ...more })
    this.world.fromGuest(this, { jsonrpc: '2.0', id, method, params })
  }

  /** Does something that a person might do now. */
  act(): void {
    const { chance } = this.world
    if (this.isPaused || this.owed.size > 6) return
    if (!this.isReady) return
    const roll = chance.next()
    const mine = [...this.sessions.keys()]
    if (this.#questions.size > 0 && roll < 0.4) this.#answer(chance.pick([...this.#questions.keys()]))
    else if (mine.length === 0 || roll < 0.5) this.#come()
    else if (roll < 0.8) this.#prompt(chance.pick(mine))
    else if (roll < 0.86) this.#cancel(chance.pick(mine))
    else if (roll < 0.9) this.ask('bus::sessions.list', {})
    else if (roll < 0.93) this.ask('session/list', {})
    else if (roll < 0.96) this.#leave(chance.pick(mine))
    else if (chance.is(0.3)) this.#close(chance.pick(mine))
  }

  /** Who only counts what is said has nothing to close. */
  #close(session: string): void {
    if (this.sessions.get(session)!.seq < 0) this.ask('session/close', { sessionId: session })
  }

  #come(): void {
    const { chance } = this.world
    // What lies in the pipe was said before.
    if (this.hasUnread || !this.isReading) return
    const known = this.world.known()
    if (known.length === 0 || chance.is(0.25))
      return this.ask('session/new', { cwd: `/g${this.number}`, mcpServers: [] })
    const some = chance.pick(known)
    // Two principals may have sessions of one name: each means its own.
    const log = this.world.logOf(this.principal, some.session) ?? some
    // One after the other: what is told between them belongs to the first.
    if ([...this.owed.values()].some(({ session }) => session === log.session)) return
    const params = { sessionId: log.session, cwd: `/g${this.number}`, mcpServers: [] }
    // Who counts the lines of a session does not ask for it in another way: which way a line came could not be told.
    const how = (this.sessions.get(log.session)?.seq ?? -1) >= 0 ? 1 : chance.next()
    if (how < 0.55) this.#claim('session/load', params, log, 'load')
    else if (how < 0.75) this.#claim('session/resume', params, log, 'resume')
    else if (how < 0.9) this.#attach(log, 'observe')
    else this.#attach(log, 'drive')
  }

  #claim(method: string, params: object, log: KeptLog, how: 'load' | 'resume'): void {
    const isOwn = log.principal === this.principal
    const mayBeLost = this.world.mayBeOver(log)
    if (isOwn) this.begin(log, how)
    if (isOwn && !log.isOver) this.world.takePart(this, log)
    this.ask(method, params, { mayBeLost, log })
  }

  #attach(log: KeptLog, role: 'drive' | 'observe'): void {
    const from = this.world.chance.pick([undefined, 1])
    const mayBeLost = this.world.mayBeOver(log)
    const before = this.readings.get(log.number)
    const isOwn = log.principal === this.principal
    const takesPart = isOwn && !log.isOver && role === 'drive'
    // What it was sent as one that takes part: it looks on from another place.
    if (!takesPart) this.world.partFrom(this, log)
    if (isOwn) {
      const isVague = this.world.mayTrim || log.isOver || (from === undefined && log.hasUnclear)
      const start = from === undefined ? log.words.length : 0
      this.#open(log, { from: isVague ? undefined : start, isNumbered: true, isReplay: false })
    }
    if (takesPart) this.world.takePart(this, log)
    this.ask('bus::sessions.attach', { session: log.session, role, from }, { mayBeLost, log, from, before })
  }

  /** It is about to read the session. */
  begin(log: KeptLog, how: 'new' | 'load' | 'resume'): void {
    const isVague = this.world.mayTrim || (how === 'resume' && this.world.isVague(log))
    const { sentTo: start, heardTo } = how === 'resume' ? this.world.sent(log) : { sentTo: 0, heardTo: 0 }
    const from = isVague ? undefined : start
    this.#open(log, { from, earliest: heardTo, isNumbered: false, isReplay: how === 'load' })
  }

  /** The agent has brought the session back: whoever waits for it, or looks on and counts, reads what is told again. */
  follow(log: KeptLog): void {
    const waits = [...this.owed.values()].find(({ method, session }) => session === log.session && CLAIMS.has(method))
    const place = this.sessions.get(log.session)
    if (place !== undefined && place.seq >= 0) {
      if (place.log === log) return
      this.sessions.set(log.session, { ...place, log, isRenewed: true })
      this.#open(log, { from: 0, isNumbered: true, isReplay: false })
      return
    }
    // Its part in the session has ended with the process before.
    this.sessions.delete(log.session)
    if (waits !== undefined) {
      this.world.takePart(this, log)
      this.begin(log, waits.method === 'session/load' ? 'load' : 'resume')
    }
  }

  #open(log: KeptLog, how: Omit<Beginning, 'guest' | 'mayMiss'>): void {
    this.world.noteSent(this, log)
    if (log.isOver) this.world.flushPrompt(log)
    this.readings.set(log.number, new Reading(log, { guest: this.number, mayMiss: this.world.mayTrim, ...how }))
  }

  #prompt(session: string): void {
    const text = (): string => `P:${this.number}:${this.#prompts++}`
    const prompt = [text(), ...(this.world.chance.is(0.2) ? [text()] : [])].map((each) => ({
      type: 'text',
      text: each,
    }))
    this.ask('session/prompt', { sessionId: session, prompt })
  }

  #cancel(session: string): void {
    this.world.fromGuest(this, { jsonrpc: '2.0', method: 'session/cancel', params: { sessionId: session } })
  }

  #leave(session: string): void {
    const { log } = this.sessions.get(session)!
    this.world.noteSent(this, log)
    this.#giveUp(session, log)
    this.ask('bus::sessions.detach', { session }, { log })
  }

  /** Who leaves in the middle of its own load is told that the session is lost, if it has ended meanwhile. */
  #giveUp(session: string, log: KeptLog): void {
    if (!this.world.mayBeOver(log)) return
    for (const [id, owed] of this.owed)
      if (owed.session === session && CLAIMS.has(owed.method)) this.owed.set(id, { ...owed, mayBeLost: true })
  }

  /** It has said that it leaves the session, or ends it. */
  isLeaving(log: KeptLog): boolean {
    return this.leavesSince(log) !== undefined
  }

  leavesSince({ session }: KeptLog): number | undefined {
    return [...this.owed.values()].find((each) => each.session === session && LEAVES.has(each.method))?.askedAtMs
  }

  /** It has heard a question that it has not answered. */
  get isAsked(): boolean {
    return this.#questions.size > 0
  }

  answerAll(): void {
    for (const token of [...this.#questions.keys()]) this.#answer(token)
  }

  #answer(token: string): void {
    const { id } = this.#questions.get(token)!
    this.#questions.delete(token)
    const question = this.world.questions.get(token)!
    if (question.holder === this.number && !question.isSettled) question.answerers.add(this.number)
    const outcome = { outcome: 'selected', optionId: String(this.number) }
    this.world.fromGuest(this, { jsonrpc: '2.0', id, result: { outcome } })
  }

  // ---- what it hears ----

  /** Gives what it leaves unread. */
  receive(bytes: Buffer): number {
    for (const message of linesOf(bytes)) {
      if (this.isReading) this.#hear(message)
      this.world.sniff(this, message)
    }
    if (!this.isReading) this.#unread = Buffer.concat([this.#unread, bytes])
    return this.#unread.length
  }

  read(): void {
    const bytes = this.#unread
    this.#unread = Buffer.alloc(0)
    for (const message of linesOf(bytes)) this.#hear(message)
  }

  #hear(message: Message): void {
    this.world.tell(() => `  ${this} hears ${JSON.stringify(message).slice(0, 240)}`)
    const { id, method, params } = message
    if (method === undefined) return this.#answered(message)
    if (method === 'session/update') return this.#updated(params)
    if (method === 'bus::sessions.event') return this.#count(params.session, params.seq, params.kind)
    if (method === 'session/request_permission') return void this.#questions.set(params.toolCall.toolCallId, { id })
    if (method !== '$/cancel_request') return
    for (const [token, asked] of this.#questions) if (asked.id === params.requestId) this.#questions.delete(token)
  }

  #updated({ sessionId, update }: Message): void {
    const marks = update._meta ?? {}
    if (marks['stdio-bus/lost']) return this.#lost(sessionId)
    if (marks['stdio-bus/dropped']) return this.#dropped(sessionId)
    const text = update.content?.text ?? update.message
    if (text === undefined) return
    this.#count(sessionId)
    const { log, at } = this.world.find(text)
    demand(log.principal === this.principal, 'nobody else sees it', () => `${this} hears ${text} of ${log.principal}`)
    demand(log.session === sessionId, 'nobody else sees it', () => `${this} hears ${text} in ${sessionId}`)
    const reading = this.readings.get(log.number)
    demand(reading !== undefined, 'nobody else sees it', () => `${this} hears ${text} and does not read that session`)
    reading.hear(at)
  }

  /** Who came by a method of the bus gets every number. */
  #count(session: string, told?: number, kind?: string): void {
    const here = this.sessions.get(session)
    if (here === undefined || here.seq < 0) return
    const expected = here.seq + 1
    here.seq = told ?? expected
    if (kind === 'dropped' && told === expected - 1) return this.#dropped(session)
    // What was said in a session goes when another begins under its name.
    const isReplaced = here.isRenewed || here.log !== this.world.logOf(this.principal, session)
    if (kind === 'gap' && isReplaced) this.readings.get(here.log.number)?.missNext()
    const isGap = kind === 'gap' && (this.world.mayTrim || isReplaced || told === here.firstSeq - 1)
    demand(isGap || here.seq === expected, 'order kept', () => `${this} counts ${told} where ${expected} is next`)
  }

  #lost(session: string): void {
    const claim = [...this.owed.values()].find((each) => each.method === 'session/load' && each.session === session)
    demand(claim !== undefined, 'justified', () => `${this} is told that ${session} is lost, and did not ask`)
    const { log, mayBeLost } = claim
    const isJustified = mayBeLost || log === undefined || log.hasComeBack || this.world.mayBeOver(log)
    demand(isJustified, 'justified', () => `${this} is told that ${session} is lost, which lives`)
    if (log !== undefined && !log.hasComeBack) log.isOver = true
  }

  #dropped(session: string): void {
    const here = this.sessions.get(session)
    if (here !== undefined) this.world.partFrom(this, here.log)
    this.sessions.delete(session)
  }

  #answered({ id, result, error }: Message): void {
    const owed = this.owed.get(id)
    demand(owed !== undefined, 'answered once', () => `${this} has an answer to ${id}, which it is not owed`)
    this.owed.delete(id)
    const reason = error?.data?.reason
    this.world.count(error === undefined ? `${owed.method} ok` : `${owed.method} ${reason ?? error.code}`)
    if (owed.method === 'initialize') this.isReady = error === undefined
    if (owed.method === 'session/new' && result !== undefined) this.#enter(result.sessionId, 'drive', -1)
    if (CLAIMS.has(owed.method)) this.#claimed(owed, result, reason)
    if (result === undefined || owed.session === undefined) return
    if (owed.method === 'session/close' || owed.method === 'bus::sessions.detach')
      this.#gone(owed.session, owed.askedAtMs)
    if (owed.method === 'session/list' || owed.method === 'bus::sessions.list') this.#listed(result.sessions)
  }

  #claimed({ method, session, log, mayBeLost, from, before }: Owed, result: Message, reason: string | undefined): void {
    const isOwn = log?.principal === this.principal
    if (!isOwn && log !== undefined && this.world.mayBeForgotten(log)) return
    demand(isOwn || result === undefined, 'nobody else sees it', () => `${this} has ${session} of ${log?.principal}`)
    if (result === undefined) {
      const isRefused = reason === 'session_not_owned' || reason === 'unknown_session' || reason === 'session_lost'
      // It may have ended since it was asked for.
      const isJustified = !isOwn || !isRefused || mayBeLost || this.world.mayBeOver(log)
      demand(isJustified, 'justified', () => `${this} is refused ${session}: ${reason}`)
      if (!isOwn || log === undefined) return
      for (const each of [log, this.world.logOf(this.principal, session!) ?? log]) this.world.partFrom(this, each)
      if (before !== undefined) this.readings.set(log.number, before)
      if (isRefused) log.isOver = true
      return
    }
    // Whoever looks on may read what has ended.
    const isProof = result.role !== 'observe' && log === this.world.logOf(this.principal, session!)
    if (log !== undefined && isProof) log.isDoubtful = log.isOver
    const isNumbered = method === 'bus::sessions.attach'
    if (!isNumbered) return this.#enter(session!, 'drive', -1)
    this.#enter(session!, result.role, from === undefined ? result.seq : from - 1, result.first_seq)
  }

  #enter(session: string, role: 'drive' | 'observe', seq: number, firstSeq = 1): void {
    const log = this.world.logOf(this.principal, session)
    if (log !== undefined) this.sessions.set(session, { log, role, seq, firstSeq })
  }

  #gone(session: string, sinceMs: number): void {
    const here = this.sessions.get(session)
    if (here !== undefined) this.world.partFrom(this, here.log, sinceMs)
    this.sessions.delete(session)
  }

  #listed(sessions: readonly { readonly principal?: string }[]): void {
    for (const { principal } of sessions)
      if (principal !== undefined)
        demand(
          principal === this.principal,
          'nobody else sees it',
          () => `${this} is told of a session of ${principal}`,
        )
  }
}

function linesOf(bytes: Buffer): Message[] {
  return bytes
    .toString()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}
