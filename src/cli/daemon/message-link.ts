/**
 * The shell's end of one client whose door carries messages: what the kernel writes to it is handed to the door line by line,
 * after the kernel has its buffers back.
 *
 * The door says what it has not sent on yet. While that is something, the kernel is told that what it wrote is still on its
 * way, so that everything further waits in the client's bounded queue.
 */
import type { BusEvent, WorkerGeneration } from '../../kernel/events.ts'
import type { Reason } from '../../kernel/faults.ts'
import type { ClientId } from '../../kernel/vocabulary.ts'
import type { MessageClient, MessageListener } from '../../transports/messages.ts'
import { Envelope, SHAPE } from '../../wire/envelope.ts'
import { WrittenLines } from './written-lines.ts'

const NEWLINE = Buffer.from('\n')
const envelope = new Envelope()

export class MessageLink implements MessageClient {
  readonly id: ClientId
  readonly #listener: MessageListener
  readonly #tell: (event: BusEvent) => void
  readonly #lines = new WrittenLines()
  /** Answers of the bus's own that are on their way here. */
  readonly #faults: { readonly id: string; readonly reason: Reason }[] = []
  /** Answers to calls of agents that are the bus's own and on their way here. */
  readonly #refusals: { readonly id: string; readonly reason: string }[] = []
  /** The kernel was told that not everything has left. */
  #isBehind = false
  #isOver = false

  constructor(id: ClientId, listener: MessageListener, tell: (event: BusEvent) => void) {
    this.id = id
    this.#listener = listener
    this.#tell = tell
  }

  // ---- for the door ----

  send(line: Buffer): void {
    if (this.#isOver) return
    this.#tell({ type: 'client-received', client: this.id, bytes: Buffer.concat([line, NEWLINE]) })
  }

  drained(): void {
    if (!this.#isBehind || this.#isOver) return
    this.#isBehind = false
    this.#tell({ type: 'client-wrote', client: this.id, pendingBytes: 0 })
  }

  leave(isSettled = false): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#tell({ type: 'client-closed', client: this.id, isSettled })
  }

  // ---- for the kernel ----

  write(buffers: readonly Buffer[]): number {
    this.#lines.take(buffers)
    const { unsentBytes } = this.#listener
    this.#isBehind = unsentBytes > 0
    return unsentBytes
  }

  /** The listener hears what was written. */
  deliver(): void {
    for (const line of this.#lines.release()) {
      const id = this.#idOf(line)
      this.#listener.received(line, take(this.#faults, id), take(this.#refusals, id))
    }
  }

  faulted(id: string, reason: Reason): void {
    this.#faults.push({ id, reason })
  }

  /** `answer`: the line that follows. */
  refusing(answer: Buffer, reason: string): void {
    if (this.#isOver || envelope.read(answer, 0, answer.length - 1) !== SHAPE.response) return
    this.#refusals.push({ id: envelope.idSpelling(), reason })
  }

  routed({ worker }: WorkerGeneration): void {
    this.#listener.routed(worker)
  }

  pause(): void {
    this.#listener.pause()
  }

  resume(): void {
    this.#listener.resume()
  }

  close(how: 'flush' | 'drop'): void {
    if (this.#isOver) return
    // The kernel may close it as soon as it has written its last words.
    if (how === 'flush') this.deliver()
    this.#isOver = true
    this.#listener.closed(how)
  }

  /** Of an answer, where something is known of one. */
  #idOf(line: Buffer): string | undefined {
    if (this.#faults.length + this.#refusals.length === 0) return undefined
    return envelope.read(line, 0, line.length) === SHAPE.response ? envelope.idSpelling() : undefined
  }
}

function take<Why>(known: { readonly id: string; readonly reason: Why }[], id: string | undefined): Why | undefined {
  const index = id === undefined ? -1 : known.findIndex((each) => each.id === id)
  return index === -1 ? undefined : known.splice(index, 1)[0]!.reason
}
