/**
 * An agent of a world with kept sessions: one process that has turns, asks, says things between turns, dies, and brings
 * sessions back or claims that it can. It sees what every promise to an agent is about: one turn at a time, one answer to
 * every question, no load while its process lives (contract 12.12, 12.14, 12.15).
 */
import type { KeptLog, WordKind } from './kept-log.ts'
import type { KeptWorld } from './kept-world.ts'
import { demand } from './violation.ts'

// biome-ignore lint/suspicious/noExplicitAny: lines of peers
export type Message = any

interface Turn {
  readonly id: string | number
  readonly session: string
  readonly guest: number
  left: number
  /** The agent has said that its session is closed: its answer is all that is left of it. */
  isClosed: boolean
}

/** What an agent has asked, from its line to its answer. */
export interface Question {
  readonly token: string
  readonly log: KeptLog
  /** To whom it is put now, as far as the world has seen. */
  holder: number | undefined
  /** Whose answer counts. */
  readonly answerers: Set<number>
  isVague: boolean
  isSettled: boolean
}

const REPLAY = 'replay'
const ENDS = new Set(['session/close', 'session/delete'])

const KINDS: readonly (readonly [number, WordKind, string])[] = [
  [8, 'said', 'agent_message_chunk'],
  [2, 'state', 'plan'],
  [1, 'fleeting', 'notice'],
]

export class KeptAgent {
  readonly world: KeptWorld
  readonly worker: number
  readonly generation: number
  readonly canLoad: boolean
  readonly turns = new Set<Turn>()
  readonly logs = new Map<string, KeptLog>()
  readonly questions = new Map<string | number, Question>()
  /** Requests that it will answer when it likes. */
  todo: Message[] = []
  isPaused = false
  isAlive = true
  readonly #ending = new Map<string, KeptLog>()
  #asked = 0

  constructor(world: KeptWorld, worker: number, generation: number, canLoad: boolean) {
    this.world = world
    this.worker = worker
    this.generation = generation
    this.canLoad = canLoad
  }

  toString(): string {
    return `agent ${this.worker}.${this.generation}`
  }

  hear(message: Message): void {
    const { id, method, params } = message
    if (method === undefined) return this.#answered(message)
    if (method === 'session/prompt') return this.#prompted(id, params)
    if (method === 'session/load' || method === 'session/resume') this.#demandGone(params)
    if (method === 'session/cancel') for (const turn of this.turns) if (turn.session === params.sessionId) turn.left = 0
    if (id !== undefined) this.todo.push(ENDS.has(method) ? { ...message, log: this.#fallSilent(params) } : message)
  }

  /** In a session that it is told to end it says nothing more. */
  #fallSilent({ sessionId }: Message): KeptLog | undefined {
    const log = this.logs.get(sessionId)
    this.logs.delete(sessionId)
    if (log !== undefined) this.#ending.set(sessionId, log)
    if (log !== undefined) log.isDoubtful = true
    return log
  }

  /** The session goes on at another process: what happens to this one is nothing to it. */
  hasLost(log: KeptLog): void {
    for (const held of [this.logs, this.#ending]) if (held.get(log.session) === log) held.delete(log.session)
    this.todo = this.todo.map((each) =>
      ENDS.has(each.method) && each.log === log ? { ...each, log: undefined } : each,
    )
  }

  #prompted(id: string | number, { sessionId, prompt }: Message): void {
    const guest = Number(prompt[0].text.split(':')[1])
    for (const turn of this.turns) {
      const isOther = turn.session === sessionId && turn.guest !== guest && !turn.isClosed
      demand(!isOther, 'order kept', () => `${this} has turns of guests ${turn.guest} and ${guest} in ${sessionId}`)
    }
    this.turns.add({ id, session: sessionId, guest, left: this.world.chance.int(6), isClosed: false })
    const log = this.#logOf(sessionId)
    if (log === undefined) return
    const { principal } = this.world.guest(guest)!
    demand(log.principal === principal, 'nobody else sees it', () => `${principal} prompts in ${log.session}`)
    this.#notePrompt(log, guest, prompt)
  }

  /** It was written to a process that had just ended: it is said with the end of the session. */
  miss({ method, params }: Message): void {
    const log = method === 'session/prompt' ? this.#logOf(params.sessionId) : undefined
    if (log !== undefined) this.#notePrompt(log, Number(params.prompt[0].text.split(':')[1]), params.prompt)
  }

  #logOf(session: string): KeptLog | undefined {
    return this.logs.get(session) ?? this.#ending.get(session)
  }

  #notePrompt(log: KeptLog, guest: number, prompt: Message): void {
    // Those that waited for the same handshake come together.
    log.isCrowded = log.pendingAt === this.world.events && log.pending.length > 0
    if (!log.isCrowded) this.world.flushPrompt(log)
    log.pending.push(...prompt.map(({ text }: { text: string }) => text))
    log.pendingBy = guest
    log.pendingAt = this.world.events
  }

  #demandGone({ sessionId }: Message): void {
    const log = this.logs.get(sessionId)
    const isJustified = log === undefined || this.world.mayBeOver(log)
    demand(isJustified, 'justified', () => `${this} is asked for ${sessionId}, which it has`)
  }

  #answered({ id, result }: Message): void {
    const question = this.questions.get(id)
    if (question === undefined) return
    demand(!question.isSettled, 'answered once', () => `${this} has two answers to ${question.token}`)
    question.isSettled = true
    const by = result?.outcome?.optionId
    if (by === undefined) return
    const isRight = question.isVague || question.answerers.has(Number(by))
    demand(isRight, 'questions answered', () => `${question.token} is answered by guest ${by}, which was not asked`)
  }

  /** Does something, if there is something to do. */
  act(): boolean {
    const { chance } = this.world
    if (!this.isAlive || this.isPaused) return false
    if (this.todo.length > 0 && chance.is(0.6)) return this.#reply(this.todo.shift())
    const turn = chance.is(0.85) ? chance.pick([...this.turns]) : undefined
    if (turn !== undefined) return this.#goOn(turn)
    const session = chance.pick([...this.logs.keys()])
    return session !== undefined && chance.is(0.2) && this.say(session)
  }

  #goOn(turn: Turn): boolean {
    const { chance } = this.world
    if (turn.left-- <= 0) return this.#endTurn(turn)
    if (chance.is(0.15) && this.#ask(turn.session)) return true
    return this.say(turn.session)
  }

  #endTurn(turn: Turn): boolean {
    this.turns.delete(turn)
    const log = this.logs.get(turn.session) ?? this.#ending.get(turn.session)
    const isLast = ![...this.turns].some(({ session }) => session === turn.session)
    if (log !== undefined && isLast) this.world.flushPrompt(log)
    const isError = this.world.chance.is(0.05)
    const outcome = isError ? { error: { code: -32000, message: 'no' } } : { result: { stopReason: 'end_turn' } }
    this.world.fromAgent(this, { id: turn.id, ...outcome })
    return true
  }

  #ask(session: string): boolean {
    const log = this.logs.get(session)
    if (log === undefined || this.questions.size > 200) return false
    const id = `q${this.#asked++}`
    const token = `Q${this.worker}.${this.generation}.${id}`
    const question = { token, log, holder: undefined, answerers: new Set<number>(), isVague: false, isSettled: false }
    this.questions.set(id, question)
    this.world.questions.set(token, question)
    const params = { sessionId: session, toolCall: { toolCallId: token }, options: [{ optionId: 'x' }] }
    this.world.fromAgent(this, { id, method: 'session/request_permission', params })
    return true
  }

  /** Says something in the session; what its guest said and it does not repeat comes first. */
  say(session: string): boolean {
    const log = this.logs.get(session)
    if (log === undefined) return false
    const { chance } = this.world
    // Where the session may have ended, what its guest said may have been said with that.
    const mayRepeat = log.pending.length > 0 && !log.isCrowded && chance.is(0.3)
    if (mayRepeat && !this.world.mayBeOver(log)) {
      log.pending = []
      this.#tell(log, 'said', 'user_message_chunk')
      return true
    }
    const [, kind, update] = chance.weigh(KINDS.map((row) => [row[0], row] as const))
    this.world.flushPrompt(log)
    this.#tell(log, kind, update)
    return true
  }

  #tell(log: KeptLog, kind: WordKind, sessionUpdate: string): void {
    const text = log.next()
    log.isDoubtful = this.world.mayBeOver(log)
    log.say({ kind }, this.world.nowMs)
    const said = kind === 'said' ? { content: { type: 'text', text } } : { message: text, entries: [] }
    const params = { sessionId: log.session, update: { sessionUpdate, ...said, padding: this.world.padding() } }
    this.world.fromAgent(this, { method: 'session/update', params })
  }

  #reply(message: Message): boolean {
    const { id, method, params } = message
    const { world } = this
    if (method === 'initialize') {
      const agentCapabilities = { loadSession: this.canLoad, sessionCapabilities: this.canLoad ? { close: {} } : {} }
      world.fromAgent(this, { id, result: { protocolVersion: 1, agentCapabilities } })
    } else if (method === 'session/new') this.#open(id, params)
    else if (method === 'session/load') this.#bringBack(id, params)
    else if (method === REPLAY) this.#replay(message)
    else if (ENDS.has(method)) this.#close(message)
    else world.fromAgent(this, { id, result: {} })
    return true
  }

  #open(id: string | number, { cwd }: Message): void {
    const { world } = this
    const guest = world.guest(Number(cwd.slice(2)))
    const session = world.chooseId(this, guest)
    const log = guest === undefined ? undefined : world.install(this, guest, session)
    if (log !== undefined) guest!.begin(log, 'new')
    world.fromAgent(this, { id, result: { sessionId: session } })
  }

  /** Tells all of it again, then answers; or refuses, before or after. */
  #bringBack(id: string | number, { sessionId, cwd }: Message): void {
    const { world } = this
    const { chance } = world
    const guest = world.guest(Number(cwd.slice(2)))
    const isRefused = chance.is(0.3)
    if (guest === undefined || (isRefused && chance.is(0.7)))
      return world.fromAgent(this, { id, error: { code: -32002, message: 'no' } })
    const log = world.makeLog(guest.principal, sessionId)
    guest.begin(log, 'new')
    const left = world.isRemembered(log) ? chance.int(6) : chance.between(1, 5)
    this.todo.unshift({ method: REPLAY, id, log, guest, isRefused, left })
  }

  #replay(replay: Message): void {
    const { id, log, guest, isRefused } = replay
    if (replay.left-- > 0) {
      this.todo.unshift(replay)
      return this.#tell(log, 'said', 'agent_message_chunk')
    }
    if (isRefused) return this.world.fromAgent(this, { id, error: { code: -32002, message: 'no' } })
    if (guest.isOpen && log.words.length > 0) this.world.renew(this, guest, log)
    else if (guest.isOpen) this.world.goOn(this, guest, log)
    this.world.fromAgent(this, { id, result: {} })
  }

  #close({ id, log, params }: Message): void {
    if (log !== undefined) log.isOver = true
    for (const turn of this.turns) if (turn.session === params.sessionId) turn.isClosed = true
    this.world.fromAgent(this, { id, result: {} })
  }

  /** Its process ends. */
  die(): void {
    this.isAlive = false
    for (const log of [...this.logs.values(), ...this.#ending.values()]) log.isOver = true
    // Of one that was held up the last words are still on their way: what it asks may be put to another until they are read.
    for (const question of this.questions.values())
      if (this.isPaused) question.isVague = true
      else question.isSettled = true
    this.world.agentGone(this)
  }

  get isIdle(): boolean {
    return this.turns.size === 0 && this.todo.length === 0
  }
}
