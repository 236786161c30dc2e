/**
 * A conversation with a pool that speaks ACP, as an ordinary client of `/ws/{pool}` (contract 15.11): greeting, session, turns,
 * questions, and what happens when the agent, the connection or the session is lost.
 *
 * The first message opens the session. A message that may have reached an agent is never sent a second time. What is shown is what
 * was said: where a session is brought back, it is told anew from its beginning and takes the place of what was here.
 */
import { signal } from '@preact/signals'
import { PoolSocket, type Question as Put, RpcFailure, SocketClosed } from '../socket.ts'
import { type Entry, type Question, Reading } from '../transcript/entries.ts'
import { Choices } from './choices.ts'
import type { Picture } from './pictures.ts'

/**
 * `cut`: the connection has ended. `gone`: the process of the agent has. `lost`: the session cannot be gone on with. `refused`: this
 * pool cannot be talked to.
 */
export type Phase = 'new' | 'opening' | 'open' | 'cut' | 'gone' | 'lost' | 'refused'
export type Turn = 'idle' | 'running' | 'stopping'

export interface View {
  readonly phase: Phase
  readonly turn: Turn
  /** What is wrong, for a person. */
  readonly problem: string | undefined
  readonly session: string | undefined
  /** The agent can bring its sessions back. */
  readonly canLoad: boolean
  /** undefined: not known before it has been greeted. */
  readonly takesImages: boolean | undefined
  readonly agentName: string | undefined
  readonly choices: Choices
  readonly open: readonly Question[]
  readonly entries: readonly Entry[]
  readonly hasForgotten: boolean
}

// biome-ignore lint/suspicious/noExplicitAny: of a peer
type Anything = any

interface OpenQuestion {
  readonly id: string | number
  readonly question: Question
  readonly resolve: (result: object) => void
  readonly reject: (error: RpcFailure) => void
}

const EVENT = 'bus::sessions.event'
const MAX_ENTRIES = 5_000
const FORGET_STEP = 500
const MAX_EARLY = 200
const TOLD_MS = 60
const UNKNOWN = -32601
/** An error of the bus that means: the process has ended. */
const ENDED = new Set(['worker_exited', 'worker_stalled', 'no_worker'])
/** The session is not there any more. */
const SESSION_GONE = new Set(['session_lost', 'unknown_session'])
const CANCELLED = { outcome: { outcome: 'cancelled' } }

export class Conversation {
  readonly #pool: string
  readonly #cwd: string
  readonly #choices = new Choices()
  readonly #questions = new Map<number, OpenQuestion>()
  #socket: PoolSocket | undefined
  #reading = new Reading()
  /** Of a session that is told anew: shown once all of it is there. */
  #retold: Reading | undefined
  #seq = 0
  #session: string | undefined
  #early: Anything[] | undefined
  #capabilities: Anything
  #agentName: string | undefined
  #phase: Phase = 'new'
  #turn: Turn = 'idle'
  #problem: string | undefined
  #hasForgotten = false
  /** The process has ended since the session was last opened. */
  #wasGone = false
  /** The agent knows nothing of the session any more. */
  #wasLost = false
  /** What an agent repeats of the message that was just sent is shown already. */
  #isEcho = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #isOver = false
  readonly view = signal<View>(this.#take())

  constructor(pool: string, cwd: string) {
    this.#pool = pool
    this.#cwd = cwd
  }

  /** Goes on with a session from before. */
  async load(session: string): Promise<void> {
    this.#session = session
    await this.#attempt(() => this.#bringBack())
  }

  /** Opens a session if there is none; settles when the turn has ended. Whether the message has left. */
  async send(text: string, pictures: readonly Picture[]): Promise<boolean> {
    if (this.#turn !== 'idle' || this.#phase === 'opening' || this.#phase === 'refused') return false
    if (!(await this.#attempt(() => this.#makeReady()))) return false
    if (pictures.length > 0 && this.#takesImages === false) {
      this.#set({ problem: 'This agent takes no images: take them off, or write to another.' })
      return false
    }
    void this.#prompt([...(text === '' ? [] : [{ type: 'text', text }]), ...pictures])
    return true
  }

  stop(): void {
    if (this.#turn !== 'running') return
    this.#socket?.notify('session/cancel', { sessionId: this.#session })
    for (const { resolve, question } of this.#questions.values())
      resolve(question.method === 'elicitation/create' ? { action: 'cancel' } : CANCELLED)
    this.#set({ turn: 'stopping' })
  }

  /** One answer: an option of a permission, or the whole result. */
  async answer(number: number, body: { option: string } | { result: object }): Promise<void> {
    const open = this.#questions.get(number)
    if (open === undefined) throw new Error('This is not asked any more.')
    open.resolve('option' in body ? { outcome: { outcome: 'selected', optionId: body.option } } : body.result)
  }

  async choose(configId: string | undefined, value: string): Promise<void> {
    const sessionId = this.#session
    try {
      if (configId === undefined) {
        await this.#ask('session/set_mode', { sessionId, modeId: value })
        this.#choices.setMode(value)
      } else {
        const answer = await this.#ask('session/set_config_option', { sessionId, configId, value })
        this.#choices.setOptions(answer?.configOptions)
      }
      this.#set({ problem: undefined })
    } catch (error) {
      this.#set({ problem: `That could not be chosen: ${sentenceOf(error)}` })
    }
  }

  /** The bus answers again: what was open is brought back by itself. */
  async reconnect(): Promise<void> {
    if (this.#phase === 'cut' && this.#session !== undefined) await this.#attempt(() => this.#bringBack())
  }

  close(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#socket?.close()
  }

  // ---- getting there ----

  /** Whether it went well; if not, why is shown. */
  async #attempt(act: () => Promise<void>): Promise<boolean> {
    const before = this.#phase
    try {
      this.#set({ phase: 'opening', problem: undefined })
      await act()
      return this.#phase === 'open'
    } catch (error) {
      const isUp = this.#socket?.isClosed === false
      if (this.#phase === 'opening') this.#set({ phase: isUp ? before : before === 'new' ? 'new' : 'cut' })
      this.#set({ problem: sentenceOf(error) })
      return false
    }
  }

  async #makeReady(): Promise<void> {
    const isConnected = this.#socket?.isClosed === false
    if (this.#session !== undefined && (!isConnected || this.#wasGone)) {
      await this.#bringBack()
      if (this.#phase !== 'lost') return
    }
    if (this.#session === undefined || this.#phase === 'lost' || this.#wasLost) await this.#begin()
    else this.#set({ phase: 'open' })
  }

  async #begin(): Promise<void> {
    await this.#greet()
    if (this.#session !== undefined)
      this.#note('note', 'A new session begins here: the agent knows nothing of what stands above.')
    this.#session = undefined
    this.#early = []
    const created = await this.#ask('session/new', { cwd: this.#cwd, mcpServers: [] })
    const early = this.#early
    this.#early = undefined
    if (typeof created?.sessionId !== 'string') throw new Error('The agent has answered session/new without a session.')
    this.#session = created.sessionId
    this.#wasLost = this.#wasGone = false
    this.#choices.open(created)
    this.#set({ phase: 'open' })
    for (const params of early) this.#hear(params)
  }

  async #bringBack(): Promise<void> {
    await this.#greet()
    if (!this.#canLoad)
      return this.#lose('This agent cannot bring its sessions back. Your next message opens a new one.')
    this.#retold = new Reading()
    this.#wasGone = this.#wasLost = false
    try {
      const sessionId = this.#session
      const answer = await this.#ask('session/load', { sessionId, cwd: this.#cwd, mcpServers: [] })
      this.#reading = this.#retold
      this.#hasForgotten = false
      this.#choices.open(answer)
      const turn = answer?._meta?.['stdio-bus/session']?.turn
      this.#set({ turn: turn === 'running' || turn === 'waiting' ? 'running' : 'idle' })
      if (!this.#wasLost) return this.#set({ phase: 'open' })
      this.#lose('The agent has lost this session. Your next message opens a new one.')
    } catch (error) {
      if (!(error instanceof RpcFailure)) throw error
      this.#lose(`The session cannot be gone on with: ${sentenceOf(error)} Your next message opens a new one.`)
    } finally {
      this.#retold = undefined
    }
  }

  #lose(problem: string): void {
    this.#wasLost = true
    this.#wasGone = false
    this.#set({ phase: 'lost', turn: 'idle', problem })
  }

  async #greet(): Promise<void> {
    if (this.#socket?.isClosed === false) return
    this.#socket = new PoolSocket(this.#pool, {
      notified: (method, params) => this.#notified(method, params),
      asked: (question) => this.#asked(question),
      closed: ({ byPage, message }) => !byPage && this.#cut(message),
    })
    const welcome = await this.#ask('initialize', GREETING).catch((error) => {
      if (error instanceof RpcFailure && !ENDED.has(reasonOf(error))) throw this.#refuse(sentenceOf(error))
      throw error
    })
    if (typeof welcome?.protocolVersion !== 'number') throw this.#refuse('its answer to initialize is none of ACP.')
    this.#capabilities = welcome.agentCapabilities ?? {}
    const name = welcome.agentInfo?.title ?? welcome.agentInfo?.name
    this.#agentName = typeof name === 'string' ? name : undefined
  }

  #refuse(why: string): Error {
    this.#phase = 'refused'
    this.#socket?.close()
    return new Error(`This pool cannot be talked to: ${why}`)
  }

  #cut(message: string): void {
    const hadTurn = this.#turn !== 'idle'
    for (const { reject } of this.#questions.values()) reject(new RpcFailure(UNKNOWN, 'The connection has ended.'))
    if (hadTurn) this.#note('lost-connection', 'The connection was lost in the middle of the turn.')
    this.#set({ turn: 'idle', ...(this.#session === undefined ? {} : { phase: 'cut', problem: message }) })
  }

  get #canLoad(): boolean {
    return this.#capabilities?.loadSession === true
  }

  get #takesImages(): boolean | undefined {
    return this.#capabilities === undefined ? undefined : this.#capabilities.promptCapabilities?.image === true
  }

  async #ask(method: string, params: object): Promise<Anything> {
    if (this.#socket === undefined) throw new SocketClosed('There is no connection.')
    return this.#socket.request(method, params)
  }

  // ---- a turn ----

  async #prompt(prompt: readonly Anything[]): Promise<void> {
    this.#event({ kind: 'turn_started' })
    for (const content of prompt) this.#say({ sessionUpdate: 'user_message_chunk', content })
    this.#isEcho = true
    this.#set({ turn: 'running', problem: undefined })
    try {
      const answer = await this.#ask('session/prompt', { sessionId: this.#session, prompt })
      this.#event({ kind: 'turn_ended', stopReason: answer?.stopReason ?? 'unknown' })
      this.#set({ turn: 'idle' })
    } catch (error) {
      if (!(error instanceof SocketClosed)) this.#failed(error)
    }
  }

  #failed(error: unknown): void {
    const reason = reasonOf(error)
    this.#note('failed', `The turn has failed: ${sentenceOf(error)}`)
    this.#set({ turn: 'idle' })
    if (SESSION_GONE.has(reason)) this.#lose('The agent has lost this session. Your next message opens a new one.')
    if (!ENDED.has(reason)) return
    this.#wasGone = true
    this.#set({
      phase: 'gone',
      problem: this.#canLoad
        ? 'The process of the agent has ended. With your next message the session is brought back, if the agent can.'
        : 'The process of the agent has ended, and its session with it.',
    })
  }

  // ---- what is said ----

  #notified(method: string, params: Anything): void {
    if (method === '$/cancel_request') return this.#withdraw(params?.requestId)
    if (method !== 'session/update') return
    if (params?.sessionId === this.#session) this.#hear(params)
    else if (this.#early !== undefined && this.#early.length < MAX_EARLY) this.#early.push(params)
  }

  #hear(params: Anything): void {
    const update = params?.update
    const meta = update?._meta ?? {}
    if (meta['stdio-bus/lost'] === true) this.#wasLost = true
    if (meta['stdio-bus/turn'] !== undefined) this.#othersTurn(meta['stdio-bus/turn'])
    const driver = meta['stdio-bus/driver']
    if (driver?.you === false) this.#event({ kind: 'driver', name: driver.name })
    if (this.#choices.take(update)) this.#set({})
    const isEcho = this.#isEcho && update?.sessionUpdate === 'user_message_chunk'
    if (!isEcho) this.#isEcho = false
    if (!isEcho) this.#say(update)
  }

  /** A turn that this page has not begun, or began before it was loaded anew. */
  #othersTurn({ state, stopReason }: Anything): void {
    if (state === 'running') return this.#set({ turn: 'running' })
    this.#event({ kind: 'turn_ended', stopReason: stopReason ?? 'end_turn' })
    this.#set({ turn: 'idle' })
  }

  #say(update: Anything): void {
    this.#line('session/update', { update })
  }

  #event(params: Anything): void {
    this.#line(EVENT, params)
  }

  #note(kind: string, text: string): void {
    this.#event({ kind: 'note', text, isBad: kind !== 'note' })
  }

  #line(method: string, params: Anything): number {
    const reading = this.#retold ?? this.#reading
    const seq = ++this.#seq
    reading.take({ seq, method, params })
    if (reading.entries.length > MAX_ENTRIES + FORGET_STEP) this.#hasForgotten = reading.forget(MAX_ENTRIES)
    this.#timer ??= setTimeout(() => this.#tell(), TOLD_MS)
    return seq
  }

  // ---- what is asked ----

  #asked({ id, method, params, signal: ended }: Put): Promise<unknown> {
    if (method !== 'session/request_permission' && method !== 'elicitation/create')
      return Promise.reject(new RpcFailure(UNKNOWN, `${method} is nothing that this page can do.`))
    if (this.#turn === 'stopping' && method === 'session/request_permission') return Promise.resolve(CANCELLED)
    const at = new Date().toISOString()
    const number = this.#line(EVENT, { kind: 'question', method, params, at })
    const question: Question = { number, method, params, at, answeredBy: undefined }
    const answered = new Promise<object>((resolve, reject) => {
      this.#questions.set(number, { id, question, resolve, reject })
      ended.addEventListener('abort', () => reject(new RpcFailure(UNKNOWN, 'The connection has ended.')))
    })
    this.#tell()
    return answered.then(
      (result) => this.#close(number, 'you', result),
      (error) => Promise.reject(this.#close(number, 'nobody', error)),
    )
  }

  #close<Value>(number: number, by: string, value: Value): Value {
    this.#questions.delete(number)
    this.#event({ kind: 'answered', question: number, by })
    this.#tell()
    return value
  }

  /** The bus asks somebody else instead, or the agent wants to know no more. */
  #withdraw(id: unknown): void {
    for (const open of this.#questions.values())
      if (open.id === id) open.reject(new RpcFailure(-32800, 'It was withdrawn.'))
  }

  // ---- what is seen ----

  #set(changes: { phase?: Phase; turn?: Turn; problem?: string | undefined }): void {
    if (changes.phase !== undefined) this.#phase = changes.phase
    if (changes.turn !== undefined) this.#turn = changes.turn
    if ('problem' in changes) this.#problem = changes.problem
    this.#tell()
  }

  #tell(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (!this.#isOver) this.view.value = this.#take()
  }

  #take(): View {
    return {
      phase: this.#phase,
      turn: this.#turn,
      problem: this.#problem,
      session: this.#session,
      canLoad: this.#canLoad,
      takesImages: this.#takesImages,
      agentName: this.#agentName,
      choices: this.#choices,
      open: [...this.#questions.values()].map(({ question }) => question),
      entries: this.#reading.entries,
      hasForgotten: this.#hasForgotten,
    }
  }
}

const GREETING = {
  protocolVersion: 1,
  clientInfo: { name: 'stdio-bus-console', title: 'stdio Bus console', version: '1' },
  clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false, elicitation: { form: {} } },
}

function reasonOf(error: unknown): string {
  const data = error instanceof RpcFailure ? (error.data as Anything) : undefined
  return typeof data?.reason === 'string' ? data.reason : ''
}

/** With what the agent says beside it, where that is text. */
function sentenceOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const data = error instanceof RpcFailure ? (error.data as Anything) : undefined
  const detail = [data, data?.details, data?.detail, data?.problem].find((each) => typeof each === 'string')
  return detail === undefined ? message : `${message} (${detail})`
}
