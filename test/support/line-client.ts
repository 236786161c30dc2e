/**
 * A client in the rawest sense: it sends bytes and receives lines. It knows nothing of JSON-RPC beyond `JSON.parse`,
 * keeps every byte it got, and never answers by itself.
 */
import { connect, type Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import type { ConnectionOptions } from 'node:tls'
import { dialTls } from './tls.ts'
import { PATIENCE_MS, sleep, within } from './waiting.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a peer says has no type; tests look into it
export type Message = any

const NEWLINE = 0x0a

export class LineClient {
  readonly lines: Buffer[] = []
  #held: Buffer[] = []
  #next = 0
  #marks = 0
  #wake: Array<() => void> = []
  #ended = false
  readonly input: Readable
  readonly output: Writable

  constructor(input: Readable, output: Writable) {
    this.input = input
    this.output = output
    input.on('data', (chunk: Buffer) => this.#take(chunk))
    for (const event of ['end', 'close', 'error']) input.on(event, () => this.#end())
    output.on('error', () => {})
  }

  /** True once the bus has ended its side, in whatever way. */
  get isClosed(): boolean {
    return this.#ended
  }

  /** Bytes after the last newline. */
  get rest(): Buffer {
    return Buffer.concat(this.#held)
  }

  /** Sends a message as one line; an object is written as JSON, a string or bytes go as they are. */
  send(message: object | string | Uint8Array): void {
    const body = message instanceof Uint8Array || typeof message === 'string' ? message : JSON.stringify(message)
    this.output.write(Buffer.concat([Buffer.from(body as string), Buffer.from('\n')]))
  }

  /** Sends bytes and nothing else. */
  sendRaw(bytes: string | Uint8Array): void {
    this.output.write(bytes)
  }

  /** The next line as bytes, without its newline. */
  async nextLine(timeoutMs = PATIENCE_MS): Promise<Buffer> {
    const end = Date.now() + timeoutMs
    while (this.#next >= this.lines.length) {
      if (this.#ended) throw new Error('closed before the awaited line')
      await this.#change(end - Date.now(), 'a line from the bus')
    }
    return this.lines[this.#next++] as Buffer
  }

  /** The next line, parsed. */
  async next(timeoutMs = PATIENCE_MS): Promise<Message> {
    return JSON.parse((await this.nextLine(timeoutMs)).toString())
  }

  /** The next `count` messages. */
  async take(count: number, timeoutMs = PATIENCE_MS): Promise<Message[]> {
    const taken: Message[] = []
    while (taken.length < count) taken.push(await this.next(timeoutMs))
    return taken
  }

  /** Sends a request and gives the answer with its id; other lines in between stay out of sight. */
  async ask(message: Record<string, unknown>, timeoutMs = PATIENCE_MS): Promise<Message> {
    this.send(message)
    return this.answerTo(message['id'], timeoutMs)
  }

  /** The first line from here on that answers `id`. */
  async answerTo(id: unknown, timeoutMs = PATIENCE_MS): Promise<Message> {
    for (;;) {
      const message = await this.next(timeoutMs)
      if (message.id === id && message.method === undefined) return message
    }
  }

  /**
   * Returns once the bus has taken every line sent so far: it takes them in order, and answers a method of its own that
   * it does not have at once. That answer is kept out of sight.
   */
  async taken(): Promise<void> {
    const id = `taken-${++this.#marks}`
    this.send({ id, method: 'bus::taken' })
    const isMark = (line: Buffer) => line.includes(`"${id}"`)
    const end = Date.now() + PATIENCE_MS
    while (!this.lines.some(isMark)) await this.#change(end - Date.now(), 'the bus to take what was sent')
    this.lines.splice(this.lines.findIndex(isMark), 1)
  }

  /** Everything that comes until the bus closes this connection. */
  async untilClosed(timeoutMs = PATIENCE_MS): Promise<Message[]> {
    const end = Date.now() + timeoutMs
    while (!this.#ended) await this.#change(end - Date.now(), 'the bus to close the connection')
    const rest = this.lines.slice(this.#next).map((line) => JSON.parse(line.toString()))
    this.#next = this.lines.length
    return rest
  }

  /** Proves silence: fails if a line comes or the connection ends within `ms`. */
  async staysQuiet(ms = 200): Promise<void> {
    await sleep(ms)
    if (this.#next < this.lines.length) throw new Error(`unexpected line: ${this.lines[this.#next]}`)
    if (this.#ended) throw new Error('closed by the bus')
  }

  pause(): void {
    this.input.pause()
  }

  resume(): void {
    this.input.resume()
  }

  /** Ends the writing side only. */
  endWriting(): void {
    this.output.end()
  }

  /** Goes away at once, in an orderly way. */
  close(): void {
    this.input.destroy()
    this.output.destroy()
  }

  /** Goes away so that the bus can tell: with a reset where the transport has one. */
  reset(): void {
    const socket = this.output as Socket
    if (typeof socket.resetAndDestroy === 'function' && socket.remotePort !== undefined) socket.resetAndDestroy()
    else this.close()
  }

  #take(chunk: Buffer): void {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      this.lines.push(Buffer.concat([...this.#held, chunk.subarray(start, end)]))
      this.#held = []
      start = end + 1
    }
    if (start < chunk.length) this.#held.push(chunk.subarray(start))
    this.#notify()
  }

  #end(): void {
    this.#ended = true
    this.#notify()
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake()
  }

  #change(timeoutMs: number, what: string): Promise<void> {
    return within(Math.max(timeoutMs, 1), what, new Promise<void>((resolve) => this.#wake.push(resolve)))
  }
}

/** Connects to `unix:PATH`, `tcp:HOST:PORT` or `tls:HOST:PORT`. */
export function connectTo(address: string): Promise<LineClient> {
  if (address.startsWith('tls:')) return connectTls(address)
  return address.startsWith('unix:') ? connectUnix(address.slice(5)) : connectTcp(address.replace(/^tcp:(\/\/)?/, ''))
}

export function connectTls(address: string, options: ConnectionOptions = {}): Promise<LineClient> {
  return opened(dialTls(address, options), 'secureConnect')
}

export function connectUnix(path: string): Promise<LineClient> {
  return opened(connect({ path, allowHalfOpen: true }))
}

export function connectTcp(hostPort: string): Promise<LineClient> {
  const colon = hostPort.lastIndexOf(':')
  const host = hostPort.slice(0, colon).replace(/^\[|\]$/g, '')
  return opened(connect({ host, port: Number(hostPort.slice(colon + 1)), allowHalfOpen: true }))
}

function opened(socket: Socket, event = 'connect'): Promise<LineClient> {
  const done = new Promise<LineClient>((resolve, reject) => {
    socket.once('error', reject)
    socket.once(event, () => {
      socket.off('error', reject)
      resolve(new LineClient(socket, socket))
    })
  })
  return within(3_000, 'a connection to the bus', done)
}
