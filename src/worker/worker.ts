/**
 * Reads requests from stdin, has them answered by their methods, and ends in time.
 *
 * Invariants: a request is answered exactly once, with its id as it was spelled; a full stdout holds the input; whatever
 * the methods do, the process is gone a second after the end of stdin or a signal.
 */
import { Envelope, SHAPE } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { LineSplitter } from '../wire/frame.ts'
import { CODE, errorLine, notificationLine, resultLine } from '../wire/jsonrpc.ts'
import { JsonText } from '../wire/ready-json.ts'
import { type Call, type Method, type Methods, type Running, sessionOf } from './call.ts'
import { errorObjectOf, WorkerError } from './error.ts'
import { Questions } from './questions.ts'

export interface WorkerOptions {
  /** Answers what no method is named for (default: a request is answered with -32601, a notification ignored). */
  readonly fallback?: Method
  /** The longest line that is taken (default 64 MiB); a longer one ends the worker with exit code 1. */
  readonly maxLineBytes?: number
}

type Message = Readonly<Record<string, unknown>>

const MAX_LINE_BYTES = 64 * 1024 * 1024
/** What is under way at the end of stdin may still be answered for so long; after a signal it is given up at once. */
const LAST_ANSWERS_MS = 600
const GIVING_UP_MS = 150
const FLUSH_MS = 150

export class Worker {
  readonly #methods: Methods
  readonly #fallback: Method | undefined
  readonly #splitter: LineSplitter
  readonly #envelope = new Envelope()
  readonly #running = new Set<Running>()
  readonly #questions = new Questions((line) => this.#write(line))
  #isEnding = false
  /** What was read and is not taken yet, because stdout is full. */
  #rest: Buffer | undefined
  #idle: () => void = () => {}

  /** Use `startWorker()`. */
  constructor(methods: Methods, { fallback, maxLineBytes = MAX_LINE_BYTES }: WorkerOptions) {
    this.#methods = methods
    this.#fallback = fallback
    this.#splitter = new LineSplitter(maxLineBytes)
    const { stdin, stdout } = process
    stdin.on('data', (chunk: Buffer) => this.#read(chunk))
    stdin.once('end', () => {
      this.#splitter.finish(this.#take)
      void this.#end(LAST_ANSWERS_MS)
    })
    stdin.once('error', () => void this.#end(0))
    stdout.on('drain', () => this.#goOn())
    // Whoever read our answers has gone.
    stdout.once('error', () => process.exit(0))
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void this.#end(0))
  }

  /** Says something to whoever the session belongs to, or, without one, to whoever the host thinks is meant. */
  notify(method: string, params?: object): void {
    this.#write(notificationLine(method, params))
  }

  /** Asks the host something: its client, or with `agent::method` another agent. Fails with a WorkerError. */
  request(method: string, params?: object): Promise<unknown> {
    return this.#questions.ask(method, params)
  }

  #read(chunk: Buffer): void {
    const taken = this.#splitter.push(chunk, 0, this.#take)
    if (this.#splitter.overflowed) {
      process.stderr.write(`a line of more than ${this.#splitter.maxLineBytes} bytes\n`)
      process.exit(1)
    }
    if (!process.stdout.writableNeedDrain) return
    this.#rest = chunk.subarray(taken)
    process.stdin.pause()
  }

  #goOn(): void {
    const rest = this.#rest
    this.#rest = undefined
    if (rest !== undefined) this.#read(rest)
    if (this.#rest === undefined) process.stdin.resume()
  }

  readonly #take = (bytes: Buffer, start: number, end: number): boolean => {
    const shape = this.#envelope.read(bytes, start, end)
    const text = bytes.toString('utf8', start, end)
    if (text.trim() === '') return true
    if (shape === SHAPE.notJson) this.#refuse('null', CODE.parseError, 'this line is not JSON')
    else if (shape === SHAPE.bad) this.#refuse('null', CODE.invalidRequest, this.#envelope.problem)
    else this.#hear(JSON.parse(text))
    return !process.stdout.writableNeedDrain
  }

  #refuse(id: string, code: number, message: string): void {
    this.#write(errorLine(id, { code, message }))
  }

  #hear(message: Message): void {
    if (this.#envelope.shape === SHAPE.response) return this.#questions.answer(message)
    const id = this.#envelope.shape === SHAPE.request ? this.#envelope.idSpelling() : undefined
    const key = id === undefined ? undefined : this.#envelope.key(FIELD.id)
    const name = String(message['method'])
    if (id === undefined) this.#cancel(name, message)
    const method = Object.hasOwn(this.#methods, name) ? this.#methods[name] : this.#fallback
    if (method !== undefined) this.#run(method, message, id, key)
    else if (id !== undefined) this.#refuse(id, CODE.methodNotFound, `Method not found: ${name}`)
  }

  /** The cancels of ACP, of MCP and of a turn of ACP. */
  #cancel(method: string, message: Message): void {
    const isOfRequest = method === '$/cancel_request' || method === 'notifications/cancelled'
    const key = isOfRequest ? this.#envelope.key(FIELD.requestId) : undefined
    const session = method === 'session/cancel' ? sessionOf(message).id : undefined
    for (const call of this.#running) {
      const isMeant = (key !== undefined && call.key === key) || (session !== undefined && call.sessionId === session)
      if (isMeant) call.abort.abort()
    }
  }

  /** What is there at once is written at once, so that a full stdout is noticed before the next line is taken. */
  #run(method: Method, message: Message, id: string | undefined, key: Running['key']): void {
    const running: Running = { id, key, sessionId: sessionOf(message).id, abort: new AbortController() }
    this.#running.add(running)
    try {
      const result = method(message['params'], this.#callOf(message, running.abort.signal))
      if (!isPromise(result)) return this.#answer(running, result)
      result.then(
        (value) => this.#answer(running, value),
        (error) => this.#fail(running, error),
      )
    } catch (error) {
      this.#fail(running, error)
    }
  }

  #answer(running: Running, result: unknown): void {
    let line: Buffer
    try {
      line = resultLine(running.id ?? 'null', new JsonText(JSON.stringify(result) ?? 'null'))
    } catch (error) {
      return this.#fail(running, error)
    }
    this.#settle(running, line)
  }

  #fail(running: Running, error: unknown): void {
    const isCancelled = running.abort.signal.aborted
    if (!(error instanceof WorkerError) && !isCancelled) process.stderr.write(`${(error as Error)?.stack ?? error}\n`)
    this.#settle(running, errorLine(running.id ?? 'null', errorObjectOf(error, isCancelled)))
  }

  #settle(running: Running, line: Buffer): void {
    this.#running.delete(running)
    if (running.id !== undefined) this.#write(line)
    if (this.#running.size === 0) this.#idle()
  }

  #callOf(message: Message, signal: AbortSignal): Call {
    const { id: sessionId, place } = sessionOf(message)
    return {
      method: String(message['method']),
      isNotification: message['id'] === undefined,
      sessionId,
      message,
      signal,
      notify: (method, params) => {
        if (place === 'params') return this.notify(method, { sessionId, ...params })
        if (place === undefined) return this.notify(method, params)
        this.#write(Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', method, sessionId, params })}\n`))
      },
    }
  }

  #write(line: Buffer): void {
    if (!process.stdout.write(line) && !this.#isEnding) process.stdin.pause()
  }

  async #end(patienceMs: number): Promise<void> {
    if (this.#isEnding) return
    this.#isEnding = true
    process.stdin.destroy()
    this.#questions.end()
    await this.#untilIdle(patienceMs)
    for (const { abort } of this.#running) abort.abort()
    await this.#untilIdle(GIVING_UP_MS)
    setTimeout(() => process.exit(0), FLUSH_MS)
    process.stdout.write('', () => process.exit(0))
  }

  async #untilIdle(mostMs: number): Promise<void> {
    if (this.#running.size === 0 || mostMs === 0) return
    await new Promise<void>((resolve) => {
      this.#idle = resolve
      setTimeout(resolve, mostMs)
    })
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function'
}
