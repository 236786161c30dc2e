/**
 * A world of sessions that outlive their clients (contract 12): guests come and go in the middle of turns, agents die, the
 * journal lags and fails, the bus is restarted. The world counts every line by itself and demands that nothing is missing,
 * doubled, or told to another principal; that every request has one answer; that an agent has one turn at a time; and that
 * a question is put to one guest at a time and answered once.
 *
 * A guest's and an agent's line is an event of its own, and what comes of it is seen before the next: so the world knows in
 * which order things were said without asking the kernel.
 */
import { DIALECTS } from '../../src/dialects/index.ts'
import { Bus } from '../../src/kernel/bus.ts'
import type { Action, BusEvent, Write } from '../../src/kernel/events.ts'
import { DEFAULT_LIMITS } from '../../src/kernel/limits.ts'
import type { BusSpec, ClientId, PoolSpec, WorkerId } from '../../src/kernel/vocabulary.ts'
import { Chance } from './chance.ts'
import { KeptAgent, type Message, type Question } from './kept-agent.ts'
import { KeptGuest } from './kept-guest.ts'
import { KeptLog } from './kept-log.ts'
import { KeptShelf } from './kept-shelf.ts'
import { demand } from './violation.ts'

const POOL = 'p'
const PRINCIPALS = ['anna', 'ben'] as const
const MOST_GUESTS = 7
const MAX_ROUNDS = 3_000

export interface KeptOutcome {
  readonly events: number
  readonly requests: number
  readonly words: number
  readonly restarts: number
  readonly counts: ReadonlyMap<string, number>
}

interface Customs {
  readonly keepMs: number
  readonly maxKept: number
  readonly isJournaled: boolean
  readonly mayTrim: boolean
  readonly isIsolated: boolean
  readonly padding: number
  readonly restarts: boolean
  readonly journalFails: boolean
  readonly canLoad: boolean
}

export class KeptWorld {
  readonly chance: Chance
  readonly questions = new Map<string, Question>()
  readonly story: string[] | undefined
  nowMs = 1_000
  #bus: Bus
  readonly #shelf = new KeptShelf()
  readonly #customs: Customs
  readonly #guests = new Map<number, KeptGuest>()
  readonly #agents = new Map<number, KeptAgent>()
  /** The newest log of each session, and all there ever were by their number. */
  readonly #logs = new Map<string, KeptLog>()
  readonly #everyLog: KeptLog[] = []
  readonly #prompts = new Map<string, { readonly log: KeptLog; readonly at: number }>()
  readonly #counts = new Map<string, number>()
  #after: BusEvent[] = []
  #guestCount = 0
  #sessionCount = 0
  #events = 0
  #requests = 0
  #restarts = 0
  #isFinished = false
  #isShuttingDown = false

  constructor(seed: number, isTold = false) {
    this.chance = new Chance(seed)
    this.story = isTold ? [] : undefined
    this.#customs = drawCustoms(this.chance)
    this.#bus = this.#start()
  }

  get mayTrim(): boolean {
    return this.#customs.mayTrim
  }

  get events(): number {
    return this.#events
  }

  tell(line: () => string): void {
    this.story?.push(line())
  }

  count(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1)
  }

  run(events: number): KeptOutcome {
    while (this.#events < events) this.#step()
    this.#settle()
    this.#inspect()
    this.#shutDown()
    const words = this.#everyLog.reduce((sum, log) => sum + log.words.length, 0)
    const counts = this.#counts
    return { events: this.#events, requests: this.#requests, words, restarts: this.#restarts, counts }
  }

  #start(): Bus {
    this.#isFinished = false
    this.#isShuttingDown = false
    const bus = new Bus(specOf(this.chance, this.#customs), DIALECTS, () => 0.5)
    this.#bus = bus
    this.#perform(bus.start(this.nowMs))
    if (this.#customs.isJournaled) for (const event of this.#shelf.recover()) this.#apply(event)
    return bus
  }

  // ---- what happens ----

  #step(): void {
    const { chance } = this
    const roll = chance.next()
    const guests = [...this.#guests.values()]
    if (roll < 0.42) chance.pick([...this.#agents.values()])?.act()
    else if (roll < 0.7) guests.length < MOST_GUESTS && chance.is(0.3) ? this.#come() : chance.pick(guests)?.act()
    else if (roll < 0.76) this.#go()
    else if (roll < 0.8) this.#stall(chance.pick(guests))
    else if (roll < 0.9) this.#shelve()
    else if (roll < 0.985) this.#pass(chance.pick([1, 10, 10, 50, 300, 2_000]))
    else if (roll < 0.995) this.#kill()
    else if (this.#customs.restarts && chance.is(0.3)) this.#restart(chance.is(0.5))
  }

  #come(): void {
    const guest = new KeptGuest(this, ++this.#guestCount, this.chance.pick(PRINCIPALS))
    this.#guests.set(guest.number, guest)
    const rights = { role: 'user', pools: ['*'] } as const
    const identity = { principal: guest.principal, name: guest.principal, via: 'token', rights } as const
    this.#apply({ type: 'client-opened', client: guest.number as ClientId, door: 'unix', identity })
    const clientInfo = { name: `g${guest.number}`, version: '1' }
    guest.ask('initialize', { protocolVersion: 1, clientInfo, clientCapabilities: {} })
  }

  /** Somebody goes, whatever is under way. */
  #go(): void {
    const guest = this.chance.pick([...this.#guests.values()])
    if (guest === undefined || (guest.sessions.size === 0 && this.chance.is(0.5))) return
    this.#apply({ type: 'client-closed', client: guest.number as ClientId })
  }

  #stall(guest: KeptGuest | undefined): void {
    // Where sessions are brought back everybody reads: else nobody outside could tell which telling a late line is of.
    if (guest === undefined || this.#customs.canLoad) return
    guest.isReading = !guest.isReading
    if (guest.isReading) this.#drain(guest)
  }

  #drain(guest: KeptGuest): void {
    guest.isReading = true
    guest.read()
    guest.isCatchingUp = true
    if (guest.isOpen) this.#apply({ type: 'client-wrote', client: guest.number as ClientId, pendingBytes: 0 })
    guest.isCatchingUp = false
  }

  #shelve(): void {
    const { chance } = this
    const shelf = this.#shelf
    if (!this.#customs.isJournaled) return
    if (!shelf.isWriting) return shelf.recover().forEach((event) => void this.#apply(event))
    if (this.#customs.journalFails && chance.is(0.05)) return void this.#apply(shelf.fail())
    const event = chance.is(0.5) ? shelf.write(chance.between(1, 30)) : shelf.answer(chance.between(1, 5))
    if (event !== undefined) this.#apply(event)
  }

  #pass(ms: number): void {
    this.nowMs += ms
    for (let due = this.#bus.nextDeadlineMs(); due !== undefined && due <= this.nowMs; ) {
      this.#apply({ type: 'tick' })
      const next = this.#bus.nextDeadlineMs()
      if (next === due) break
      due = next
    }
  }

  #kill(): void {
    const alive = [...this.#agents.values()].filter(({ isAlive }) => isAlive)
    if (alive.length > 0) this.chance.pick(alive).die()
  }

  /** Another bus takes the place of this one; what the journal has is all that is left. */
  #restart(isKilled: boolean): void {
    this.#restarts++
    if (!isKilled) {
      this.#shutDown()
      this.#writeAll()
    }
    for (const guest of this.#guests.values()) guest.isOpen = false
    this.#guests.clear()
    for (const agent of this.#agents.values()) this.#bury(agent)
    this.#agents.clear()
    this.#after = []
    this.#shelf.close()
    for (const log of this.#everyLog) log.isOver = true
    for (const [key, log] of [...this.#logs]) {
      const recalled = this.#recall(log)
      if (recalled === undefined) this.#logs.delete(key)
      else this.#logs.set(key, recalled)
    }
    this.#start()
  }

  #bury(agent: KeptAgent): void {
    agent.isAlive = false
    for (const log of agent.logs.values()) log.isOver = true
    for (const question of agent.questions.values()) question.isSettled = true
  }

  /** What is written of a session is a run of its words, or of those before it was brought back; undefined: nothing is. */
  #recall(newest: KeptLog): KeptLog | undefined {
    newest.isOver = true
    newest.participants.clear()
    if (!this.#customs.isJournaled) return undefined
    const lines = this.#shelf.linesOf(newest.principal, newest.session)
    if (lines === undefined) return undefined
    const told = lines.flatMap((bytes) => this.#spoken(bytes) ?? [])
    const log = told[0]?.log ?? newest
    const isSame = log.session === newest.session && log.principal === newest.principal
    demand(isSame, 'nobody else sees it', () => `the journal of ${newest.session} has words of ${log.session}`)
    for (const [index, { log: of, at }] of told.entries()) {
      demand(of === log, 'nobody else sees it', () => `the journal of ${log.session} has a word of log ${of.number}`)
      const before = index === 0 ? -1 : told[index - 1]!.at
      const isNext = index === 0 || at === before + 1 || (this.mayTrim && at > before)
      demand(isNext, 'order kept', () => `the journal of ${log.session} has word ${at} behind ${told[index - 1]!.at}`)
    }
    const begins = told.length === 0 || told[0]!.at === 0 || this.mayTrim
    demand(begins, 'answered once', () => `the journal of ${log.session} begins with word ${told[0]!.at}`)
    // A state outlives the line in which it was told.
    const held = this.#shelf.statesOf(newest.principal, newest.session).map((bytes) => this.#spoken(bytes))
    const ends = [...told, ...held.flatMap((each) => each ?? [])].filter(({ log: of }) => of === log)
    log.words.length = ends.reduce((most, { at }) => Math.max(most, at + 1), 0)
    log.pending = []
    return log
  }

  #spoken(bytes: Buffer): { readonly log: KeptLog; readonly at: number } | undefined {
    const text = textOf(JSON.parse(bytes.toString()))
    return text === undefined ? undefined : this.find(text)
  }

  // ---- what agents and guests ask of the world ----

  guest(number: number): KeptGuest | undefined {
    return this.#guests.get(number)
  }

  known(): KeptLog[] {
    return [...this.#logs.values()]
  }

  logOf(principal: string, session: string): KeptLog | undefined {
    return this.#logs.get(`${principal} ${session}`)
  }

  find(text: string): { readonly log: KeptLog; readonly at: number } {
    // A prompt is said with the next one of its guest, or with the end of its session, whenever that was.
    const unsaid = this.#everyLog.find((log) => log.pending.includes(text))
    const isDue = unsaid !== undefined && (unsaid.isCrowded || this.mayBeOver(unsaid) || this.#hasNext(unsaid))
    if (isDue) this.flushPrompt(unsaid, unsaid.pending.indexOf(text) + 1)
    const prompt = this.#prompts.get(text)
    if (prompt !== undefined) return prompt
    const [number, at] = text.split('.').map(Number)
    const log = this.#everyLog[number!]
    demand(log !== undefined && at !== undefined, 'bytes unchanged', () => `nobody has said ${text}`)
    return { log, at }
  }

  #hasNext({ pendingBy, session }: KeptLog): boolean {
    const owed = [...(this.#guests.get(pendingBy)?.owed.values() ?? [])]
    return owed.filter((each) => each.method === 'session/prompt' && each.session === session).length > 1
  }

  padding(): string {
    return 'x'.repeat(this.chance.int(this.#customs.padding))
  }

  makeLog(principal: string, session: string): KeptLog {
    const log = new KeptLog(this.#everyLog.length, session, POOL, principal)
    this.#everyLog.push(log)
    return log
  }

  /** Mostly a new one; sometimes one that another agent has chosen. */
  chooseId(agent: KeptAgent, guest: KeptGuest | undefined): string {
    const taken = this.known().filter(
      (log) => !agent.logs.has(log.session) && this.isCertain(log, guest) && !this.#isClaimed(log),
    )
    if (taken.length > 0 && this.chance.is(0.05)) return this.chance.pick(taken).session
    return `s${this.#sessionCount++}`
  }

  /** Whether the guest's principal has it is known for certain. */
  isCertain(log: KeptLog, guest: KeptGuest | undefined): boolean {
    return log.isOver || log.participants.size > 0 || log.principal !== guest?.principal
  }

  #isClaimed({ session }: KeptLog): boolean {
    const owed = [...this.#guests.values()].flatMap((guest) => [...guest.owed.values()])
    if (owed.some((each) => each.session === session)) return true
    // Whoever asked for it may have gone since.
    return [...this.#agents.values()].some(
      ({ isAlive, todo }) => isAlive && todo.some((each) => sessionIn(each) === session),
    )
  }

  /** The agent is about to say that it has made the session; undefined: nobody will have it. */
  install(agent: KeptAgent, guest: KeptGuest, session: string): KeptLog | undefined {
    if (!guest.isOpen) return undefined
    const before = this.logOf(guest.principal, session)
    if (before !== undefined && !before.isOver) return undefined
    const log = this.makeLog(guest.principal, session)
    this.#settleIn(agent, guest, log)
    return log
  }

  #settleIn(agent: KeptAgent, guest: KeptGuest, log: KeptLog): void {
    const before = this.logOf(log.principal, log.session)
    if (before !== undefined) before.isOver = true
    this.#logs.set(`${log.principal} ${log.session}`, log)
    agent.logs.set(log.session, log)
    log.lastWordMs = this.nowMs
    log.sentTo = log.heardTo = log.words.length
    this.takePart(guest, log)
  }

  /** The agent has brought the session back and told all of it again. */
  renew(agent: KeptAgent, guest: KeptGuest, log: KeptLog): void {
    this.#settleIn(agent, guest, log)
    this.#lead(guest, log)
  }

  /** Others that look on or have asked for what was brought back come to it. */
  #lead(guest: KeptGuest, log: KeptLog): void {
    for (const other of this.#guests.values())
      if (other !== guest && other.principal === log.principal) other.follow(log)
  }

  /** What was said in the session is certainly still known. */
  isRemembered({ principal, session }: KeptLog): boolean {
    return this.#customs.isJournaled && this.logOf(principal, session) !== undefined
  }

  /** The agent has brought the session back and told nothing: what was said before stays. */
  goOn(agent: KeptAgent, guest: KeptGuest, { principal, session }: KeptLog): void {
    const log = this.logOf(principal, session)!
    this.flushPrompt(log)
    log.isOver = false
    log.hasComeBack = true
    log.sentTo = log.heardTo = log.words.length
    log.isVague = false
    log.participants.clear()
    for (const other of this.#agents.values()) other.hasLost(log)
    agent.logs.set(session, log)
    guest.begin(log, 'resume')
    this.takePart(guest, log)
    this.#lead(guest, log)
  }

  takePart(guest: KeptGuest, log: KeptLog): void {
    log.isDoubtful = this.mayBeOver(log)
    log.participants.add(guest.number)
    log.wasShared ||= log.participants.size > 1
  }

  partFrom(guest: KeptGuest, log: KeptLog, sinceMs = this.nowMs): void {
    this.noteSent(guest, log)
    if (log.participants.delete(guest.number) && log.participants.size === 0) log.detachedAtMs = sinceMs
  }

  noteSent(guest: KeptGuest, log: KeptLog): void {
    if (!log.participants.has(guest.number)) return
    if (guest.hasUnread || !guest.isReading || log.hasUnclear) log.isVague = true
    const reading = guest.readings.get(log.number)
    if (reading === undefined) return
    log.sentTo = Math.max(log.sentTo, reading.next)
    log.heardTo = Math.max(log.heardTo, reading.heard)
  }

  /** How far somebody who takes part was sent everything, at most and at least. */
  sent(log: KeptLog): Pick<KeptLog, 'sentTo' | 'heardTo'> {
    const readings = [...log.participants].flatMap((number) => this.#guests.get(number)?.readings.get(log.number) ?? [])
    return {
      sentTo: Math.max(log.sentTo, ...readings.map(({ next }) => next)),
      heardTo: Math.max(log.heardTo, ...readings.map(({ heard }) => heard)),
    }
  }

  isVague(log: KeptLog): boolean {
    const guests = [...log.participants].map((number) => this.#guests.get(number))
    return (
      log.isVague ||
      log.hasUnclear ||
      guests.some((guest) => guest === undefined || guest.hasUnread || !guest.isReading)
    )
  }

  /** The session may have ended, as far as anybody outside can know. */
  mayBeOver(log: KeptLog): boolean {
    if (log.isOver) return true
    if ([...log.participants].some((number) => this.#isThere(this.#guests.get(number), log))) return log.isDoubtful
    const { keepMs, maxKept, isIsolated } = this.#customs
    const since = Math.max(log.detachedAtMs, log.lastWordMs)
    return log.isDoubtful || maxKept < 100 || isIsolated || this.nowMs - since >= keepMs
  }

  /** It takes part, and has neither said that it leaves nor been taken off without having read of it. */
  #isThere(guest: KeptGuest | undefined, log: KeptLog): boolean {
    if (guest?.isLeaving(log)) return false
    const reads = guest === undefined || (guest.isReading && !guest.hasUnread)
    return reads || !log.wasShared
  }

  /** Whose the session is may be forgotten. */
  mayBeForgotten(log: KeptLog): boolean {
    return !this.#customs.isJournaled && this.mayBeOver(log)
  }

  /** What a guest said, and its agent did not repeat, is said now. */
  flushPrompt(log: KeptLog, count = log.pending.length): void {
    for (const text of log.pending.splice(0, count)) {
      this.#prompts.set(text, { log, at: log.words.length })
      log.say({ kind: 'prompt', by: log.pendingBy }, log.lastWordMs)
    }
  }

  fromGuest(guest: KeptGuest, message: Message): void {
    if (!guest.isOpen) return
    if (message.method !== undefined && message.id !== undefined) this.#requests++
    const bytes = lineOf(message)
    this.#inPieces(bytes, (piece) =>
      this.#apply({ type: 'client-received', client: guest.number as ClientId, bytes: piece }),
    )
  }

  fromAgent(agent: KeptAgent, message: Message): void {
    const { worker, generation } = agent
    const at = { worker: worker as WorkerId, generation }
    this.#inPieces(lineOf({ jsonrpc: '2.0', ...message }), (piece) => {
      if (agent.isAlive) this.#apply({ type: 'worker-received', ...at, bytes: piece })
    })
  }

  #inPieces(bytes: Buffer, hand: (piece: Buffer) => void): void {
    if (!this.chance.is(0.1)) return hand(bytes)
    const cut = this.chance.int(bytes.length)
    if (cut > 0) hand(bytes.subarray(0, cut))
    hand(bytes.subarray(cut))
  }

  agentGone({ worker, generation }: KeptAgent): void {
    const at = { worker: worker as WorkerId, generation }
    this.#apply({ type: 'worker-silent', ...at, pipe: 'stdout' })
    this.#apply({ type: 'worker-ended', ...at, isClean: false, how: { exitCode: 1, signal: null } })
  }

  /** What a guest is sent, read or not: to whom a question is put. */
  sniff(guest: KeptGuest, { id, method, params }: Message): void {
    if (method === '$/cancel_request') this.#withdrawn(guest, params.requestId)
    if (method !== 'session/request_permission') return
    const question = this.questions.get(params.toolCall.toolCallId)
    demand(question !== undefined, 'bytes unchanged', () => `${guest} is asked what nobody has asked`)
    this.#put.set(`${guest.number} ${JSON.stringify(id)}`, question)
    // What it reads late was put to it before.
    if (guest.isCatchingUp || !guest.isReading) return this.#putLate(guest, question)
    this.#asked.push({ guest, id, question, isClaiming: guest.isClaiming(question.log) })
  }

  #putLate(guest: KeptGuest, question: Question): void {
    question.isVague = true
    question.holder = guest.number
  }

  /** Who was asked before has been told that it need not answer, if it reads what it is told. */
  #inspectAsked(): void {
    for (const { guest, question, isClaiming } of this.#asked.splice(0)) {
      const { holder, log, isSettled, token } = question
      // The end of the drain takes everybody with it, one after the other.
      if (this.#isShuttingDown) continue
      demand(!isSettled, 'questions answered', () => `${guest} is asked ${token}, which has its answer`)
      const before = holder === undefined ? undefined : this.#guests.get(holder)
      const isFree = before === undefined || question.isVague || !before.isReading || before.hasUnread
      demand(isFree, 'questions answered', () => `${guest} is asked ${token}, which is put to guest ${holder}`)
      const isOwn = guest.principal === log.principal
      demand(isOwn, 'nobody else sees it', () => `${guest} is asked ${token} of ${log.principal}`)
      // Of one that has ended with its last words unread: whoever came meanwhile takes part until they are.
      const isParticipant = log.participants.has(guest.number) || !guest.isOpen || (log.isOver && question.isVague)
      demand(isParticipant, 'nobody else sees it', () => `${guest} is asked ${token} and takes no part`)
      demand(!isClaiming, 'order kept', () => `${guest} is asked ${token} before its load is answered`)
      question.holder = guest.number
    }
  }

  #asked: { guest: KeptGuest; id: string | number; question: Question; isClaiming: boolean }[] = []
  readonly #put = new Map<string, Question>()

  #withdrawn(guest: KeptGuest, id: string | number): void {
    const question = this.#put.get(`${guest.number} ${JSON.stringify(id)}`)
    if (question?.holder === guest.number) question.holder = undefined
    // Put and withdrawn at once: what others are told of it in the same event may be seen before.
    this.#asked = this.#asked.filter((each) => each.guest !== guest || each.id !== id)
  }

  // ---- the kernel ----

  #apply(event: BusEvent): void {
    this.#events++
    this.tell(() => `[${this.nowMs}] ${describe(event)}`)
    if (event.type === 'client-closed') this.#gone(event.client)
    this.#perform(this.#bus.apply(event, this.nowMs))
    this.#inspectAsked()
    for (let next = this.#after.shift(); next !== undefined; next = this.#after.shift()) this.#apply(next)
  }

  #gone(number: number): void {
    const guest = this.#guests.get(number)
    if (guest === undefined) return
    for (const log of this.#logs.values()) this.partFrom(guest, log, guest.leavesSince(log))
    guest.isOpen = false
    this.#guests.delete(number)
  }

  #perform(actions: readonly Action[]): void {
    for (const action of actions) this.#act(action)
    // What an agent has heard is known before what others are told of it.
    const writes = this.#bus.takeWrites()
    for (const write of [...writes].sort((a, b) => b.kind.localeCompare(a.kind))) this.#carry(write)
  }

  #act(action: Action): void {
    if (action.do === 'journal') return this.#shelf.take(action.what)
    if (action.do === 'finished') this.#isFinished = true
    if (action.do === 'open-worker') return this.#open(action.worker, action.generation)
    if (action.do === 'close-worker') return this.#close(action.worker, action.generation)
    if (action.do === 'pause-worker' || action.do === 'resume-worker') {
      const agent = this.#agents.get(action.worker)
      if (agent?.generation === action.generation) agent.isPaused = action.do === 'pause-worker'
    }
    if (action.do === 'pause-client' || action.do === 'resume-client') {
      const guest = this.#guests.get(action.client)
      if (guest !== undefined) guest.isPaused = action.do === 'pause-client'
    }
    if (action.do === 'close-client') this.#after.push({ type: 'client-closed', client: action.client })
  }

  #open(worker: WorkerId, generation: number): void {
    this.#agents.set(worker, new KeptAgent(this, worker, generation, this.#customs.canLoad))
    this.#after.push({ type: 'worker-opened', worker, generation })
  }

  #close(worker: WorkerId, generation: number): void {
    const agent = this.#agents.get(worker)
    if (agent === undefined || agent.generation !== generation || !agent.isAlive) return
    this.#bury(agent)
    this.#after.push({ type: 'worker-silent', worker, generation, pipe: 'stdout' })
    this.#after.push({ type: 'worker-ended', worker, generation, isClean: true, how: { exitCode: 0, signal: null } })
  }

  #carry(write: Write): void {
    const bytes = Buffer.concat(write.buffers)
    let pendingBytes = 0
    if (write.kind === 'client') pendingBytes = this.#guests.get(write.id)?.receive(bytes) ?? 0
    else {
      const agent = this.#agents.get(write.id)
      for (const line of bytes.toString().split('\n').filter(Boolean)) {
        this.tell(() => `  ${agent} is told ${line.slice(0, 240)}`)
        if (agent?.generation !== write.generation) continue
        if (agent.isAlive) agent.hear(JSON.parse(line))
        else agent.miss(JSON.parse(line))
      }
    }
    this.#perform(this.#bus.wrote(write, pendingBytes, this.nowMs))
  }

  // ---- the end ----

  /** Everybody reads, answers and ends its turns, until nothing is owed. */
  #settle(): void {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      for (const guest of [...this.#guests.values()]) {
        this.#drain(guest)
        if (!guest.isPaused) guest.answerAll()
      }
      this.#writeAll()
      let isBusy = false
      for (const agent of this.#agents.values())
        for (let n = 0; n < 20 && agent.isAlive && !agent.isPaused && !agent.isIdle; n++) {
          isBusy = true
          agent.act()
        }
      if (!isBusy && this.#isCalm()) return
      this.#pass(50)
    }
    const owed = [...this.#guests.values()].flatMap((guest) => [...guest.owed].map((each) => [String(guest), ...each]))
    demand(false, 'answered once', () => `never answered: ${JSON.stringify(owed).slice(0, 600)}`)
  }

  #isCalm(): boolean {
    const isDone = ({ owed, hasUnread, isAsked, isPaused }: KeptGuest): boolean =>
      owed.size === 0 && !hasUnread && (!isAsked || isPaused)
    return this.#shelf.isIdle && [...this.#guests.values()].every(isDone)
  }

  #writeAll(): void {
    if (!this.#customs.isJournaled) return
    if (!this.#shelf.isWriting) for (const event of this.#shelf.recover()) this.#apply(event)
    for (let round = 0; round < 1_000 && !this.#shelf.isIdle; round++) {
      const written = this.#shelf.write(1_000)
      if (written !== undefined) this.#apply(written)
      const told = this.#shelf.answer(100)
      if (told !== undefined) this.#apply(told)
    }
  }

  /** Nothing is missing, and no question is forgotten. */
  #inspect(): void {
    for (const guest of this.#guests.values())
      for (const { log } of guest.sessions.values())
        if (!this.mayBeOver(log) && guest.readings.has(log.number)) guest.readings.get(log.number)!.demandAll()
    for (const question of this.questions.values()) {
      const { log, isSettled, token } = question
      const isOpen = isSettled || this.mayBeOver(log) || log.participants.size === 0
      demand(isOpen, 'questions answered', () => `${token} in ${log.session} is never answered`)
    }
  }

  #shutDown(): void {
    if (this.#isShuttingDown) return
    this.#isShuttingDown = true
    this.#apply({ type: 'shutdown', at: 'leisure' })
    for (let round = 0; round < MAX_ROUNDS && !this.#isFinished; round++) {
      for (const guest of [...this.#guests.values()]) this.#drain(guest)
      for (const agent of this.#agents.values()) if (agent.isAlive && !agent.isPaused) agent.act()
      this.#pass(50)
    }
    demand(this.#isFinished, 'nothing left', 'the bus did not finish')
    const { sessions, outstanding, clients } = this.#bus.snapshot()
    const left = { sessions, outstanding, clients }
    const isEmpty = sessions === 0 && outstanding === 0 && clients === 0
    demand(isEmpty, 'nothing left', () => `the bus has finished with ${JSON.stringify(left)}`)
  }
}

function drawCustoms(chance: Chance): Customs {
  const isJournaled = chance.is(0.7)
  return {
    keepMs: chance.pick([2_000, 60_000, 3_600_000]),
    maxKept: chance.pick([1, 1_000, 1_000]),
    isJournaled,
    mayTrim: chance.is(0.2),
    isIsolated: chance.is(0.2),
    padding: chance.pick([1, 50, 600]),
    restarts: chance.is(0.4),
    journalFails: chance.is(0.3),
    canLoad: chance.is(0.5),
  }
}

function specOf(chance: Chance, { keepMs, maxKept, isJournaled, mayTrim, isIsolated }: Customs): BusSpec {
  const limits = {
    ...DEFAULT_LIMITS,
    maxRestarts: 10_000,
    drainTimeoutMs: 500,
    maxOutputQueueBytes: chance.pick([800, 5_000, 4_000_000]),
    blockingTimeoutMs: chance.pick([200, 1_000]),
    backpressureTimeoutMs: chance.pick([400, 20_000]),
  }
  const maxBytes = mayTrim ? 3_000 : 16_777_216
  const pool: PoolSpec = {
    id: POOL,
    instances: isIsolated ? 0 : chance.between(1, 2),
    maxInstances: 6,
    sharing: isIsolated ? 'isolated' : 'shared',
    protocol: 'acp',
    era: 'auto',
    restart: 'always',
    startTimeoutMs: 600_000,
    hangTimeoutMs: 0,
    limits,
    keeping: { keepMs, isJournaled, questionMs: Math.min(keepMs, 5_000), maxBytes, maxKept },
    trace: false,
    revision: '1',
  }
  return { pools: [pool], defaultPool: POOL, limits }
}

function textOf({ method, params }: Message): string | undefined {
  return method === 'session/update' ? (params.update.content?.text ?? params.update.message) : undefined
}

function lineOf(message: object): Buffer {
  return Buffer.from(`${JSON.stringify(message)}\n`)
}

function describe(event: BusEvent): string {
  if ('bytes' in event) return JSON.stringify({ ...event, bytes: event.bytes.latin1Slice() }).slice(0, 400)
  return JSON.stringify(event).slice(0, 400)
}

function sessionIn({ params, log }: Message): string | undefined {
  return params?.sessionId ?? log?.session
}
