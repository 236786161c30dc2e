/**
 * The shell's end of one client: its connection, joined to the kernel by events and actions.
 *
 * Closing is gentle: the writing side ends first and what still comes is thrown away for a moment, because a connection
 * that is torn down over unread bytes takes its last lines with it.
 */
import type { Duplex } from 'node:stream'
import type { BusEvent } from '../../kernel/events.ts'
import type { ClientId } from '../../kernel/vocabulary.ts'
import { FairReader } from './fair-reader.ts'
import { type Writer, writerOf } from './handles.ts'

const LINGER_MS = 1_000

/** `hasMore`: what comes with it may follow at once. */
export type Tell = (event: BusEvent, hasMore?: boolean) => void

export class ClientLink {
  readonly write: Writer
  readonly #socket: Duplex
  readonly #client: ClientId
  readonly #tell: Tell
  readonly #reader: FairReader
  #isClosing = false

  constructor(client: ClientId, socket: Duplex, tell: Tell) {
    this.#client = client
    this.#tell = tell
    this.#reader = new FairReader(socket, (bytes, hasMore) => {
      if (!this.#isClosing) tell({ type: 'client-received', client, bytes }, hasMore)
    })
    this.#socket = this.#reader.stream
    this.write = writerOf(this.#socket, () => tell({ type: 'client-wrote', client, pendingBytes: 0 }))
  }

  /** From now on what comes is told. */
  open(): void {
    const client = this.#client
    const socket = this.#socket
    socket.on('error', () => socket.destroy())
    socket.on('end', () => this.#reader.finish(() => this.#ended()))
    socket.on('close', () => this.#reader.finish(() => this.#tell({ type: 'client-closed', client })))
    this.#reader.resume()
  }

  #ended(): void {
    if (this.#isClosing) this.#socket.destroy()
    else this.#tell({ type: 'client-ended', client: this.#client })
  }

  pause(): void {
    this.#reader.pause()
  }

  resume(): void {
    this.#reader.resume()
  }

  close(how: 'flush' | 'drop'): void {
    this.#isClosing = true
    if (how === 'drop') return void this.#socket.destroy()
    this.#socket.end()
    this.#reader.resume()
    if (this.#socket.readableEnded) return void this.#socket.once('finish', () => this.#socket.destroy())
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref()
  }
}
