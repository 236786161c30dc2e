/**
 * One stream between two nodes: a pipe of bytes each way, with who is at this end of it (contract 14.4, 14.5).
 *
 * What was written is the writer's until it has left; what is received is lent. Whoever is here is told of the end once, and
 * after that nothing. It is forgotten when both directions have ended and both sides know it.
 */
import { type StreamEnding, writeEnding } from './ending.ts'
import { Incoming } from './incoming.ts'
import { Outgoing } from './outgoing.ts'

/** Who is at this end of a stream. Nothing it is told may make it throw. */
export interface StreamOwner {
  received(bytes: Buffer): void
  /** Everything that was written has left. */
  drained(): void
  ended(ending: StreamEnding): void
}

/** What a stream wants of its link. */
export interface StreamHost {
  /** There is something to be sent, or to be acknowledged. */
  wants(stream: Stream): void
  /** What it was written is sent as far as there is credit. */
  fill(stream: Stream): void
}

export class Stream {
  readonly number: number
  /** This side has opened it. */
  readonly isOurs: boolean
  /** What it is begun with, until the other side is known to have it. */
  opening: Buffer | undefined
  readonly out = new Outgoing()
  readonly in = new Incoming()
  owner: StreamOwner | undefined
  /** Something has come that is not acknowledged yet, since then. */
  owesAckSinceMs: number | undefined
  #isBehind = false
  readonly #host: StreamHost

  constructor(number: number, isOurs: boolean, host: StreamHost) {
    this.number = number
    this.isOurs = isOurs
    this.#host = host
  }

  /** Returns how much of it, and of what was written before, has not left. */
  write(buffers: readonly Buffer[]): number {
    if (this.out.isEnding) return 0
    this.out.write(buffers)
    this.#host.fill(this)
    this.#isBehind = this.out.waitingBytes > 0
    return this.out.waitingBytes
  }

  /** Some of what waited has left. */
  moved(): void {
    if (!this.#isBehind || this.out.waitingBytes > 0) return
    this.#isBehind = false
    this.owner?.drained()
  }

  pause(): void {
    this.in.isPaused = true
  }

  resume(): void {
    this.in.isPaused = false
    this.in.release((bytes) => this.owner?.received(bytes))
    this.tellEnd()
    this.#host.wants(this)
  }

  /** Somebody takes it: what has come before is told now. */
  adopt(owner: StreamOwner): void {
    this.owner = owner
    this.resume()
  }

  /** This side wants nothing more, and has no more to say; `isAtOnce`: what has not left is not sent. */
  leave(ending: StreamEnding, isAtOnce: boolean): void {
    this.owner = undefined
    this.in.discard()
    this.out.end(writeEnding(ending), isAtOnce)
    this.#host.fill(this)
    this.#host.wants(this)
  }

  /** The other side has ended and all it said was taken. */
  tellEnd(ending?: StreamEnding): void {
    const { owner } = this
    if (owner === undefined || (ending === undefined && !this.in.isOver)) return
    this.owner = undefined
    owner.ended(ending ?? this.in.ending)
  }

  get isOver(): boolean {
    return this.out.isEnded && this.in.isOver
  }
}
