/**
 * The shell's end of one client: its connection, joined to the kernel by events and actions.
 *
 * Closing is gentle: the writing side ends first and what still comes is thrown away for a moment, because a connection
 * that is torn down over unread bytes takes its last lines with it.
 *
 * Reading is fair: the runtime would read one socket many times in a row as long as it is full, and everybody else would
 * wait; after a whole chunk the others have their turn.
 */
import type { Duplex } from 'node:stream'
import type { BusEvent } from '../../kernel/events.ts'
import type { ClientId } from '../../kernel/vocabulary.ts'
import { Channel } from './channel.ts'

const LINGER_MS = 1_000
/** What the runtime reads at once at the most; a chunk of this size says that more is waiting. */
const WHOLE_CHUNK_BYTES = 64 * 1024

export class ClientLink {
  readonly channel: Channel
  readonly #socket: Duplex
  readonly #client: ClientId
  readonly #tell: (event: BusEvent) => void
  #isClosing = false
  #isPaused = false
  #isTurnOver = false

  constructor(client: ClientId, socket: Duplex, tell: (event: BusEvent) => void) {
    this.#client = client
    this.#socket = socket
    this.#tell = tell
    this.channel = new Channel(socket, () => tell({ type: 'client-wrote', client, pendingBytes: 0 }))
  }

  /** From now on what comes is told. */
  open(): void {
    const client = this.#client
    const socket = this.#socket
    socket.on('error', () => socket.destroy())
    socket.on('data', (bytes: Buffer) => {
      if (this.#isClosing) return
      this.#tell({ type: 'client-received', client, bytes })
      if (bytes.length >= WHOLE_CHUNK_BYTES) this.#endTurn()
    })
    socket.on('end', () => (this.#isClosing ? socket.destroy() : this.#tell({ type: 'client-ended', client })))
    socket.on('close', () => this.#tell({ type: 'client-closed', client }))
  }

  pause(): void {
    this.#isPaused = true
    this.#socket.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (!this.#isTurnOver) this.#socket.resume()
  }

  #endTurn(): void {
    if (this.#isTurnOver || this.#isClosing) return
    this.#isTurnOver = true
    this.#socket.pause()
    setImmediate(() => {
      this.#isTurnOver = false
      if (!this.#isPaused) this.#socket.resume()
    })
  }

  close(how: 'flush' | 'drop'): void {
    this.#isClosing = true
    if (how === 'drop') return void this.#socket.destroy()
    this.#socket.end()
    this.#socket.resume()
    if (this.#socket.readableEnded) return void this.#socket.once('finish', () => this.#socket.destroy())
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref()
  }
}
