import { connect } from 'node:net'
import type { Bus } from '../support/bus.ts'
import { LineClient, type Message } from '../support/line-client.ts'

/** A transport over the socket of the bus, as small as the SDKs allow. */
export class SocketTransport {
  onmessage?: (message: Message) => void
  onclose?: () => void
  onerror?: (error: Error) => void
  readonly sent: Message[] = []
  readonly received: Message[] = []
  readonly #path: string
  readonly #pool: string | undefined
  #line: LineClient | undefined

  /** `pool`: which one the connection is for; left out: the default. */
  constructor(bus: Bus, pool?: string) {
    this.#pool = pool
    this.#path = bus.addresses[0]!.slice('unix:'.length)
  }

  async start(): Promise<void> {
    const socket = connect({ path: this.#path })
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    this.#line = new LineClient(socket, socket)
    if (this.#pool !== undefined) this.#line.send({ method: 'bus::open', params: { pool: this.#pool } })
    void this.#read(this.#line)
  }

  async #read(line: LineClient): Promise<void> {
    try {
      for (;;) {
        const message = await line.next(60_000)
        this.received.push(message)
        this.onmessage?.(message)
      }
    } catch {
      this.onclose?.()
    }
  }

  async send(message: Message): Promise<void> {
    this.sent.push(message)
    this.#line!.send(message)
  }

  async close(): Promise<void> {
    this.#line?.close()
  }
}
