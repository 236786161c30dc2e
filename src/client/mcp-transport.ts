/**
 * The connection as a transport of the MCP SDKs, generation 1 (`@modelcontextprotocol/sdk`) and 2
 * (`@modelcontextprotocol/client`).
 *
 * The two declare the same interface with types of their own, so it is met by shape and imports neither.
 */
import type { LineChannel } from './connection.ts'
import { asError } from './errors.ts'

export class McpTransport {
  onclose?: (() => void) | undefined
  onerror?: ((error: Error) => void) | undefined
  // biome-ignore lint/suspicious/noExplicitAny: each SDK has its own type of message, and sets this itself
  onmessage?: ((message: any, extra?: any) => void) | undefined
  sessionId?: string | undefined
  readonly #channel: LineChannel
  #hasStarted = false

  /** Use `connection.mcp()`. */
  constructor(channel: LineChannel) {
    this.#channel = channel
  }

  /** Called by the SDK. */
  async start(): Promise<void> {
    if (this.#hasStarted) throw new TypeError('the transport has started already: a client starts it by itself')
    this.#hasStarted = true
    void this.#listen()
  }

  send(message: object): Promise<void> {
    return this.#channel.send(JSON.stringify(message))
  }

  async close(): Promise<void> {
    await this.#channel.close()
    // A client that never started it waits for this call all the same.
    if (!this.#hasStarted) this.onclose?.()
  }

  async #listen(): Promise<void> {
    try {
      for (let line = await this.#channel.take(); line !== undefined; line = await this.#channel.take()) {
        this.onmessage?.(JSON.parse(line.toString('utf8')))
      }
    } catch (error) {
      this.onerror?.(asError(error))
    }
    this.onclose?.()
  }
}
