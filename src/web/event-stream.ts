/**
 * One answer that is a stream of server-sent events (contract 10.8, 10.16).
 *
 * It is written no faster than it is read: what has not left is counted, and whoever has the client is told when nothing is left.
 * A stream that says nothing carries a comment now and then, so that nobody between takes it for dead.
 */
import { toOneLine } from '../wire/one-line.ts'
import type { Admitted } from './port.ts'
import type { WebRequest } from './web-request.ts'

const SILENCE_MS = 15_000
const MAX_TIMER_MS = 2 ** 31 - 1
const HEADERS = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' } as const
const RETURN = 0x0d

export interface EventOptions {
  readonly id?: string | undefined
  readonly event?: string | undefined
}

export class EventStream {
  readonly web: WebRequest
  readonly #drained: () => void
  readonly #gone: () => void
  readonly #silence: NodeJS.Timeout
  readonly #expiry: NodeJS.Timeout | undefined
  #isOver = false
  readonly #written = (): void => {
    if (this.unsentBytes === 0) this.#drained()
  }

  /** The head goes out at once. `gone` is called when the reader has, unless the stream was ended before. */
  constructor(web: WebRequest, gone: () => void, drained: () => void, headers: Readonly<Record<string, string>> = {}) {
    this.web = web
    this.#drained = drained
    this.#gone = gone
    const { response } = web
    response.writeHead(200, { ...web.headers, ...HEADERS, ...headers })
    response.flushHeaders()
    web.countStream()
    web.onceClosed(() => {
      const wasOver = this.#isOver
      this.#stop()
      if (!wasOver) gone()
    })
    this.#silence = setInterval(() => this.#write(':\n\n'), SILENCE_MS)
    this.#expiry = this.#endWithCredential()
  }

  /** A POST is finished, but a stream that would go on for ever lives no longer than its credential (contract 9.5). */
  #endWithCredential(): NodeJS.Timeout | undefined {
    // A realm of paths that admits by itself looks after that itself.
    const admitted: Admitted | undefined = this.web.admitted
    const expires = this.web.method === 'GET' ? admitted?.identity.expires : undefined
    if (expires === undefined) return undefined
    const ms = Date.parse(expires) - Date.now()
    return ms > MAX_TIMER_MS ? undefined : setTimeout(() => this.#expire(), Math.max(0, ms))
  }

  #expire(): void {
    if (this.#isOver) return
    this.end()
    this.#gone()
  }

  get unsentBytes(): number {
    return this.web.response.destroyed ? 0 : this.web.response.writableLength
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** One message as one event. */
  send(line: Buffer, { id, event }: EventOptions = {}): void {
    const head = `${event === undefined ? '' : `event: ${event}\n`}${id === undefined ? '' : `id: ${id}\n`}data: `
    // A carriage return would end the field.
    const data = line.includes(RETURN) ? toOneLine(line) : line
    this.#write(Buffer.concat([Buffer.from(head), data, END]))
    this.#silence.refresh()
  }

  /** An event without data, which only says where the stream begins. */
  begin(id: string): void {
    this.#write(`id: ${id}\ndata: \n\n`)
  }

  end(): void {
    if (this.#isOver) return
    this.#stop()
    this.web.response.end()
  }

  /** Without an end that the reader could take for one. */
  destroy(): void {
    this.#stop()
    this.web.response.destroy()
  }

  #write(text: string | Buffer): void {
    if (!this.#isOver) this.web.response.write(text, this.#written)
  }

  #stop(): void {
    this.#isOver = true
    clearInterval(this.#silence)
    clearTimeout(this.#expiry)
  }
}

const END = Buffer.from('\n\n')
