/**
 * A connection to the bus for programs, with four faces of which one is used: streams for the ACP SDK, a transport for
 * the MCP SDKs, agents that are called by name, or plain lines.
 *
 * All that happens between the program and the bus happens in `link.ts`; here it only changes its shape.
 */
import { type AcpStream, acpStream } from './acp-stream.ts'
import { AgentFace, type AgentMethod, type AgentOptions, type ServedAgent } from './agent-face.ts'
import { type BusError, ConnectionClosed } from './errors.ts'
import { Inbox } from './inbox.ts'
import { Link, type LinkEvents, type LinkOptions } from './link.ts'
import { McpTransport } from './mcp-transport.ts'

/** What a face needs of the connection. */
export interface LineChannel {
  /** Resolves when the line is on its way and there is room for another. */
  send(line: string | Uint8Array): Promise<void>
  /** The next line without its newline; undefined once this side has closed, an error when the bus has gone. */
  take(): Promise<Buffer | undefined>
  close(): Promise<void>
}

type Face = 'acp' | 'mcp' | 'agent' | 'lines'
type Told = Pick<LinkEvents, 'lost' | 'restored'>

const NEWLINE = 10
const LINE_END = Buffer.from([NEWLINE])

export class BusConnection {
  readonly #link: Link
  readonly #inbox: Inbox
  readonly #channel: LineChannel
  #face: Face | undefined
  #agents: AgentFace | undefined
  #hasEnded = false
  #error: BusError | undefined
  #room: Promise<void> = Promise.resolve()
  #makeRoom: () => void = () => {}
  #tellClosed: (error: BusError | undefined) => void = () => {}
  /** Resolves when nothing more comes: with the reason, or with undefined when this side has closed it. */
  readonly closed: Promise<BusError | undefined>

  /** Use `connect()`. */
  constructor(options: LinkOptions, told: Told) {
    this.closed = new Promise((resolve) => {
      this.#tellClosed = resolve
    })
    this.#link = new Link(options, {
      ...told,
      restored: () => {
        this.#agents?.restored()
        told.restored?.()
      },
      received: (lines) => this.#inbox.put(lines),
      drained: () => this.#makeRoom(),
      ended: (error) => this.#end(error),
    })
    this.#inbox = new Inbox(this.#link)
    this.#channel = {
      send: (line) => this.#send(line),
      take: () => this.#inbox.take(),
      close: () => this.close(),
    }
  }

  /** @internal */
  open(): Promise<void> {
    return this.#link.open()
  }

  /** The streams that `client().connect(...)` of `@agentclientprotocol/sdk` takes. */
  acp(): AcpStream {
    this.#choose('acp')
    return acpStream(this.#channel)
  }

  /** The transport that `client.connect(...)` of both generations of the MCP SDK takes. */
  mcp(): McpTransport {
    this.#choose('mcp')
    return new McpTransport(this.#channel)
  }

  /** Makes this program an agent of that name, which others call; several names may share a connection. */
  agent(
    name: string,
    methods: Readonly<Record<string, AgentMethod>>,
    options: AgentOptions = {},
  ): Promise<ServedAgent> {
    if (this.#agents === undefined) this.#choose('agent')
    this.#agents ??= new AgentFace(this.#channel)
    return this.#agents.serve(name, methods, options)
  }

  /** Every line of the bus, without its newline, until this side closes; fails with the reason when the bus has gone. */
  async *lines(): AsyncGenerator<Buffer, void, undefined> {
    this.#choose('lines')
    for (let line = await this.#inbox.take(); line !== undefined; line = await this.#inbox.take()) yield line
  }

  /** Sends one line; the newline is added. Goes with `lines()`. */
  send(line: string | Uint8Array): Promise<void> {
    if (this.#face !== undefined && this.#face !== 'lines')
      throw new TypeError(`this connection is used through ${this.#face}()`)
    return this.#send(line)
  }

  /** Says nothing more, and closes once every answer that is owed has come (at most 30 s). */
  async finish(): Promise<void> {
    this.#link.finish()
    await this.closed
  }

  /** Closes now; requests without an answer fail. */
  async close(): Promise<void> {
    this.#link.close()
    await this.closed
  }

  #choose(face: Face): void {
    if (this.#face !== undefined) {
      throw new TypeError(`this connection is used through ${this.#face}() already: call connect() again for another`)
    }
    this.#face = face
  }

  async #send(line: string | Uint8Array): Promise<void> {
    const bytes = Buffer.from(line as Uint8Array)
    if (bytes.includes(NEWLINE)) throw new TypeError('a message is one line: it must not hold a newline')
    await this.#room
    if (this.#hasEnded) throw this.#error ?? new ConnectionClosed()
    if (this.#link.write(Buffer.concat([bytes, LINE_END]))) return
    this.#room = new Promise((resolve) => {
      this.#makeRoom = resolve
    })
    await this.#room
  }

  #end(error: BusError | undefined): void {
    this.#hasEnded = true
    this.#error = error
    this.#inbox.end(error)
    this.#makeRoom()
    this.#tellClosed(error)
  }
}
