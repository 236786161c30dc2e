/**
 * The sessions of this process: what each remembers, and the one turn it may be running.
 *
 * It reads no file and asks no endpoint. Invariant: a session runs at most one turn, and no more than `maxSessions`
 * are held; beyond that the one that was idle for longest goes.
 */
import { randomUUID } from 'node:crypto'
import { type Message, trim } from './history.ts'
import { emptyToolbox, type Toolbox } from './toolbox.ts'

export const maxSessions = 10_000
export const maxHistoryChars = 64 * 1024 * 1024

/** A running turn. */
export interface Turn {
  readonly cancel: AbortController
  readonly ended: Promise<void>
}

export interface SessionStart {
  readonly cwd: string
  readonly model: string
  readonly id?: string
  readonly history?: readonly Message[]
}

export class Session {
  readonly id: string
  readonly cwd: string
  readonly history: Message[]
  model: string
  /** Servers connect while the client goes on; a turn waits for them. */
  toolbox: Promise<Toolbox> = Promise.resolve(emptyToolbox)
  /** Aborts when the session ends. */
  readonly ending = new AbortController()
  /** Servers that could not be reached are told of once. */
  toldOfLost = false
  #turn: Turn | undefined

  constructor(start: SessionStart) {
    this.id = start.id ?? randomUUID()
    this.cwd = start.cwd
    this.model = start.model
    this.history = [...(start.history ?? [])]
  }

  get turn(): Turn | undefined {
    return this.#turn
  }

  /** Appends to the history, and drops its oldest turns when it outgrows its bound. */
  remember(messages: readonly Message[]): void {
    this.history.push(...messages)
    trim(this.history, maxHistoryChars)
  }

  /** Runs `work` as the session's turn; the caller has seen that none is running. */
  async run<T>(request: AbortSignal, work: (cancel: AbortController) => Promise<T>): Promise<T> {
    if (this.#turn) throw new Error('a session runs one turn at a time')
    const cancel = new AbortController()
    const forward = () => cancel.abort()
    let end = () => {}
    this.#turn = { cancel, ended: new Promise((resolve) => (end = resolve)) }
    request.addEventListener('abort', forward, { once: true })
    if (request.aborted) cancel.abort()
    try {
      return await work(cancel)
    } finally {
      request.removeEventListener('abort', forward)
      this.#turn = undefined
      end()
    }
  }

  /** Cancels the running turn; without one it does nothing, also not to the next. */
  cancel(): void {
    this.#turn?.cancel.abort()
  }
}

export class Sessions {
  readonly #byId = new Map<string, Session>()
  readonly #limit: number

  constructor(limit = maxSessions) {
    this.#limit = limit
  }

  get size(): number {
    return this.#byId.size
  }

  /** Adds a session and hands back the one that had to go for it. */
  add(session: Session): Session | undefined {
    this.#byId.set(session.id, session)
    if (this.#byId.size <= this.#limit) return undefined
    const idle = [...this.#byId.values()].find((other) => other !== session && !other.turn)
    if (idle) this.#byId.delete(idle.id)
    return idle
  }

  /** The session, which counts as used from now. */
  get(id: string): Session | undefined {
    const session = this.#byId.get(id)
    if (!session) return undefined
    this.#byId.delete(id)
    this.#byId.set(id, session)
    return session
  }

  remove(id: string): void {
    this.#byId.delete(id)
  }

  all(): Session[] {
    return [...this.#byId.values()]
  }
}
