/**
 * JSON-RPC with one pool over `/ws/{pool}`, by the cookie of the page (contract 15.4, 15.11): requests and their answers, notifications,
 * and questions of the other side.
 *
 * It knows no protocol and keeps no message. Every request ends once: with its result, with an error, or because the connection has
 * ended. Every question is answered once, by what its listener resolves or rejects with. Nothing it holds grows without a bound.
 */
import { learnMe } from './api.ts'
import { wordsOf } from './text.ts'

export interface Question {
  readonly id: string | number
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
  /** Aborted when the connection has ended: nobody waits for an answer any more. */
  readonly signal: AbortSignal
}

export interface SocketListener {
  notified?(method: string, params: Readonly<Record<string, unknown>>): void
  /** Resolves with the result; rejects with an `RpcFailure`. Absent: every question is refused. */
  asked?(question: Question): Promise<unknown>
  closed?(ending: SocketEnding): void
}

export interface SocketEnding {
  /** By this page, or by the bus and the network. */
  readonly byPage: boolean
  /** It was never open: the pool is unknown, not allowed, or the bus cannot be reached. */
  readonly wasRefused: boolean
  readonly code: number
  /** A sentence for people. */
  readonly message: string
}

/** The error of an answer; thrown by a listener it is the error that is answered. */
export class RpcFailure extends Error {
  readonly code: number
  readonly data: unknown

  constructor(code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

/** The connection has ended before the answer came. */
export class SocketClosed extends Error {}

export interface RequestOptions {
  /** Told once the request has its id, to name it in a notification that cancels it. */
  readonly onId?: (id: number) => void
  /** Aborted: nobody waits for the answer any more. Telling the other side is for whoever aborts. */
  readonly signal?: AbortSignal
  /** Told the answer as it came, before it is read. */
  readonly onLine?: (line: string) => void
}

interface Pending {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
  readonly onLine: ((line: string) => void) | undefined
}

const MAX_PENDING = 256
const MAX_QUESTIONS = 32
const MAX_MESSAGE_CHARS = 64 * 1024 * 1024
const MAX_UNSENT_BYTES = 32 * 1024 * 1024

const NORMAL = 1000
const TOO_BIG = 4009
const METHOD_NOT_FOUND = -32601
const INTERNAL = -32603

const SENTENCES: Readonly<Record<string, string>> = {
  shutting_down: 'The bus shuts down.',
  client_stuck: 'This page did not read fast enough, and the bus has ended the connection.',
  unauthenticated: 'The login has ended.',
  message_too_large: 'A message was larger than the bus takes.',
  too_many_clients: 'The bus has too many clients.',
}

type Message = Readonly<Record<string, unknown>>

export class PoolSocket {
  /** Resolves once open; rejects with a `SocketClosed` when that cannot be. */
  readonly opened: Promise<void>
  readonly #socket: WebSocket
  readonly #listener: SocketListener
  readonly #pending = new Map<number, Pending>()
  readonly #end = new AbortController()
  #lastId = 0
  #questions = 0
  #isOpen = false
  #byPage = false

  constructor(pool: string, listener: SocketListener = {}) {
    this.#listener = listener
    const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:'
    this.#socket = new WebSocket(`${scheme}//${location.host}/ws/${encodeURIComponent(pool)}`)
    this.#socket.onmessage = ({ data }) => this.#take(data)
    this.opened = new Promise((resolve, reject) => {
      this.#socket.onopen = () => {
        this.#isOpen = true
        resolve()
      }
      this.#socket.onclose = (event) => {
        const ending = this.#endingOf(event)
        reject(new SocketClosed(ending.message))
        this.#ended(ending)
      }
    })
    // Whoever only sends requests hears of it by them.
    this.opened.catch(() => {})
  }

  get isClosed(): boolean {
    return this.#end.signal.aborted
  }

  async request(
    method: string,
    params: object | undefined,
    { onId, signal, onLine }: RequestOptions = {},
  ): Promise<unknown> {
    await this.opened
    signal?.throwIfAborted()
    if (this.isClosed) throw new SocketClosed('The connection has ended.')
    if (this.#pending.size >= MAX_PENDING) throw new RpcFailure(INTERNAL, 'Too much is under way already.')
    const id = ++this.#lastId
    const answer = new Promise<unknown>((resolve, reject) => this.#pending.set(id, { resolve, reject, onLine }))
    try {
      this.#send({ jsonrpc: '2.0', id, method, ...(params && { params }) })
    } catch (error) {
      this.#pending.delete(id)
      throw error
    }
    signal?.addEventListener('abort', () => this.#abandon(id, signal.reason), { once: true })
    onId?.(id)
    return answer
  }

  notify(method: string, params?: object): void {
    if (this.#isOpen && !this.isClosed) this.#send({ jsonrpc: '2.0', method, ...(params && { params }) })
  }

  close(): void {
    this.#byPage = true
    this.#socket.close(NORMAL)
  }

  #abandon(id: number, why: Error): void {
    this.#pending.get(id)?.reject(why)
    this.#pending.delete(id)
  }

  #send(message: object): void {
    if (this.#socket.bufferedAmount > MAX_UNSENT_BYTES)
      throw new RpcFailure(INTERNAL, 'The bus does not read: what was sent before has not left yet.')
    this.#socket.send(JSON.stringify(message))
  }

  #take(data: unknown): void {
    if (typeof data !== 'string') return
    if (data.length > MAX_MESSAGE_CHARS) return this.#socket.close(TOO_BIG, 'larger than this page takes')
    const message = read(data)
    if (message === undefined) return
    const { id, method } = message
    if (typeof method !== 'string') return this.#settle(message, data)
    if (id === undefined) return this.#listener.notified?.(method, paramsOf(message))
    if (typeof id === 'string' || typeof id === 'number') void this.#reply(id, method, paramsOf(message))
  }

  #settle({ id, result, error }: Message, line: string): void {
    const pending = typeof id === 'number' ? this.#pending.get(id) : undefined
    if (pending === undefined) return
    this.#pending.delete(id as number)
    pending.onLine?.(line)
    if (error === undefined) return pending.resolve(result)
    const { code, message, data } = (error ?? {}) as Message
    pending.reject(new RpcFailure(typeof code === 'number' ? code : INTERNAL, wordsOf(message), data))
  }

  async #reply(id: string | number, method: string, params: Message): Promise<void> {
    const reply = await this.#replyTo({ id, method, params, signal: this.#end.signal }).then(
      (result) => ({ result: result ?? {} }),
      (error) => ({ error: errorOf(error) }),
    )
    if (!this.isClosed) this.#socket.send(JSON.stringify({ jsonrpc: '2.0', id, ...reply }))
  }

  async #replyTo(question: Question): Promise<unknown> {
    const { asked } = this.#listener
    if (asked === undefined) throw new RpcFailure(METHOD_NOT_FOUND, `${question.method} is not offered.`)
    if (this.#questions >= MAX_QUESTIONS) throw new RpcFailure(INTERNAL, 'Too many questions are open.')
    this.#questions++
    try {
      return await asked.call(this.#listener, question)
    } finally {
      this.#questions--
    }
  }

  #endingOf({ code, reason }: CloseEvent): SocketEnding {
    const wasRefused = !this.#isOpen
    const message = wasRefused
      ? 'The connection was refused: the pool is unknown, your role may not use it, or the bus cannot be reached.'
      : (SENTENCES[reason] ??
        (reason === '' ? 'The connection to the bus was lost.' : `The bus has closed: ${reason}.`))
    return { byPage: this.#byPage, wasRefused, code, message }
  }

  #ended(ending: SocketEnding): void {
    const pending = [...this.#pending.values()]
    this.#pending.clear()
    this.#end.abort()
    for (const { reject } of pending) reject(new SocketClosed(ending.message))
    // A browser does not say why; whoever is not logged in any more is asked to log in.
    if (!ending.byPage) learnMe().catch(() => {})
    this.#listener.closed?.(ending)
  }
}

function paramsOf({ params }: Message): Message {
  return typeof params === 'object' && params !== null ? (params as Message) : {}
}

function errorOf(error: unknown): object {
  if (!(error instanceof RpcFailure)) return { code: INTERNAL, message: 'This page could not answer.' }
  const { code, message, data } = error
  return { code, message, ...(data !== undefined && { data }) }
}

function read(data: string): Message | undefined {
  try {
    const value = JSON.parse(data)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
