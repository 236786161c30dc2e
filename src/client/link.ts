/**
 * A connection to a bus that outlives the bus: the one core behind `stdio-bus connect` and the client library.
 *
 * Bytes of whole lines go in and come out untouched. If the bus goes, everything that was pending is failed with
 * `bus_gone`, what is said meanwhile waits (bounded: the writer is told to stop), and the bus that comes back is told
 * `bus::open` and the recorded introduction, nothing else twice (contract 6.10).
 * Invariant: every request gets exactly one answer, and `ended` is the last thing that is told, once.
 */
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { CODE, errorLine } from '../wire/jsonrpc.ts'
import { Crossing } from './crossing.ts'
import {
  type BusError,
  BusGone,
  BusRefused,
  BusUnavailable,
  didNotComeBack,
  type LocalReason,
  lineTooLong,
  localFaultLine,
} from './errors.ts'
import { greet } from './greeting.ts'
import { HANG_UP_TIMEOUT_MS, hangUp, tearDown } from './hang-up.ts'
import { LineFlow } from './line-flow.ts'
import { LineQueue } from './line-queue.ts'
import { type TurnedAway, watchForTurningAway } from './turned-away.ts'

/** One attempt to reach the bus, `awayMs` after it was lost (0 at first): a socket, or whatever takes and gives lines. */
export type Dial = (awayMs: number) => Promise<Duplex>

export interface LinkEvents {
  /** Whole lines for this side, each with its newline. */
  received(lines: Buffer): void
  /** After a `write` that gave false: there is room again. */
  drained(): void
  /** The bus has gone, and is being looked for. */
  lost?(failedRequests: number): void
  /** The bus is back, and knows this side again. */
  restored?(): void
  /** Nothing comes any more; without an error it was this side that ended. */
  ended(error: BusError | undefined): void
}

export interface LinkOptions {
  readonly dial: Dial
  readonly pool?: string | undefined
  /** Asked before every attempt: what this side proves itself with. */
  readonly token?: (() => string | undefined) | undefined
  /** How long a bus that went is looked for; 0: not at all. */
  readonly reconnectTimeoutMs?: number
  readonly maxLineBytes?: number
}

export const RECONNECT_TIMEOUT_MS = 30_000
export const MAX_LINE_BYTES = 64 * 1024 * 1024
const FINISH_TIMEOUT_MS = 30_000
const FIRST_DELAY_MS = 50
const MAX_DELAY_MS = 1_000
/** Above this, what waits for the bus to come back makes the writer wait too. */
const MAX_WAITING_BYTES = 1024 * 1024

export class Link {
  readonly #options: LinkOptions
  readonly #events: LinkEvents
  readonly #crossing = new Crossing()
  readonly #outward: LineFlow
  readonly #maxLineBytes: number
  readonly #waiting = new LineQueue(MAX_WAITING_BYTES)
  readonly #stop = new AbortController()
  #inward: LineFlow | undefined
  #socket: Duplex | undefined
  #isOpen = false
  #hasEnded = false
  #isFinishing = false
  #isLeaving = false
  #isPaused = false
  #owesDrain = false

  constructor(options: LinkOptions, events: LinkEvents) {
    this.#options = options
    this.#events = events
    this.#maxLineBytes = options.maxLineBytes ?? MAX_LINE_BYTES
    this.#outward = new LineFlow(this.#maxLineBytes, {
      judge: (bytes, start, end) => this.#crossing.outward(bytes, start, end),
      on: (lines) => this.#say(lines),
      back: (line) => this.#deliver(line),
    })
  }

  /** Reaches the bus for the first time; fails with BusUnavailable or BusRefused and is then of no more use. */
  async open(): Promise<void> {
    try {
      await this.#attempt(0)
    } catch (error) {
      this.#hasEnded = true
      throw error
    }
  }

  /** Bytes of this side, in any portions. False: wait for `drained` before the next. */
  write(chunk: Buffer): boolean {
    if (this.#hasEnded) return true
    if (!this.#outward.push(chunk)) this.#refuseLongLine()
    this.#owesDrain = !this.#hasEnded && this.#isFull()
    return !this.#owesDrain
  }

  /** This side says nothing more: ends once what it is owed has come, within a bound (contract 4.1.2). */
  finish(timeoutMs: number = FINISH_TIMEOUT_MS): void {
    if (this.#hasEnded || this.#isFinishing) return
    this.#outward.finish()
    this.#isFinishing = true
    this.#crossing.isDeaf = true
    for (const spelling of this.#crossing.questions.takeAll()) this.#say(localFaultLine(spelling, 'client_gone'))
    const timer = setTimeout(() => {
      this.#fail('request_timeout')
      this.#end()
    }, timeoutMs)
    this.#stop.signal.addEventListener('abort', () => clearTimeout(timer))
    this.#endIfSettled()
  }

  /** Ends now; what is pending is failed. */
  close(): void {
    if (this.#hasEnded) return
    this.#fail('bus_gone')
    this.#end()
  }

  /** Nobody is left on this side: the bus sees this client gone at once, whatever is still owed to it. */
  abandon(): void {
    if (!this.#hasEnded) this.#leave(tearDown)
  }

  /** Something is owed in either direction. */
  get isOwed(): boolean {
    return !this.#crossing.requests.isSettled || !this.#crossing.questions.isEmpty
  }

  /** Takes nothing more from the bus until `resume`. */
  pause(): void {
    this.#isPaused = true
    // The connection's own answers must arrive whether this side reads or not.
    if (this.#isOpen) this.#socket?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#socket?.resume()
  }

  async #attempt(awayMs: number): Promise<void> {
    const { pool, token, dial } = this.#options
    const socket = await dial(awayMs)
    if (this.#hasEnded) return void socket.destroy()
    if (socket.destroyed) throw new BusUnavailable('the bus closed the connection at once')
    const turnedAway = this.#attach(socket)
    try {
      await greet({ socket, crossing: this.#crossing, turnedAway }, { pool, token: token?.() })
    } catch (error) {
      this.#detach(socket)
      throw error
    }
    if (this.#hasEnded) return
    this.#isOpen = true
    if (this.#isPaused) socket.pause()
    this.#release(socket)
  }

  #attach(socket: Duplex): TurnedAway {
    const turnedAway = watchForTurningAway(socket)
    const inward = new LineFlow(this.#maxLineBytes, {
      judge: (bytes, start, end) => this.#crossing.inward(bytes, start, end),
      on: (lines) => this.#deliver(lines),
      back: (line) => this.#say(line),
    })
    this.#socket = socket
    this.#inward = inward
    this.#crossing.lastWord = undefined
    socket.on('data', (chunk: Buffer) => this.#hear(socket, chunk))
    socket.on('drain', () => this.#socket === socket && this.#tellDrained())
    socket.on('error', () => {})
    // When the bus has ended its side it hears us no more; `close` follows, and comes alone when the connection broke.
    socket.on('end', () => this.#socket === socket && socket.destroy())
    socket.on('close', () => this.#lose(socket, turnedAway()))
    return turnedAway
  }

  #detach(socket: Duplex): void {
    if (this.#socket === socket) this.#socket = undefined
    this.#isOpen = false
    this.#crossing.own.clear()
    socket.destroy()
  }

  #hear(socket: Duplex, chunk: Buffer): void {
    if (this.#socket !== socket) return
    if (!this.#inward!.push(chunk)) return this.#end(lineTooLong(this.#maxLineBytes))
    this.#endIfSettled()
  }

  #deliver(lines: Buffer): void {
    if (!this.#hasEnded) this.#events.received(lines)
  }

  /** Lines of this side, towards the bus or to wait for it. */
  #say(lines: Buffer): void {
    if (this.#isLeaving) return
    if (this.#isOpen) this.#send(lines)
    else this.#waiting.add(lines)
  }

  #send(lines: Buffer): void {
    const socket = this.#socket!
    if (socket.writableCorked === 0) {
      socket.cork()
      process.nextTick(() => socket.uncork())
    }
    socket.write(lines)
  }

  #isFull(): boolean {
    if (!this.#isOpen) return this.#waiting.isFull
    return this.#socket!.writableLength > this.#socket!.writableHighWaterMark
  }

  #release(socket: Duplex): void {
    for (const lines of this.#waiting.takeAll()) socket.write(lines)
    if (!this.#isFull()) this.#tellDrained()
    this.#endIfSettled()
  }

  #tellDrained(): void {
    if (!this.#owesDrain) return
    this.#owesDrain = false
    this.#events.drained()
  }

  #lose(socket: Duplex, turnedAway: BusRefused | undefined): void {
    if (this.#socket !== socket || !this.#isOpen) return
    this.#detach(socket)
    const failed = this.#fail('bus_gone')
    const refusal = this.#crossing.refusal ?? turnedAway ?? this.#strangerRefused()
    if (refusal !== undefined) return this.#end(refusal)
    if (this.#isFinishing) return this.#end()
    const { reconnectTimeoutMs = RECONNECT_TIMEOUT_MS } = this.#options
    if (reconnectTimeoutMs === 0) return this.#end(new BusGone('the bus has gone'))
    this.#events.lost?.(failed)
    // A writer that was told to stop would not notice that there is room again.
    this.#tellDrained()
    void this.#comeBack(reconnectTimeoutMs)
  }

  /** Without a token there is nothing to prove oneself with the next time either; one that has expired may be a new one. */
  #strangerRefused(): BusRefused | undefined {
    const { lastWord } = this.#crossing
    return this.#options.token === undefined && lastWord?.reason === 'unauthenticated' ? lastWord : undefined
  }

  /** The bus would do the same: say why, then close (contract 8.2). */
  #refuseLongLine(): void {
    const error = lineTooLong(this.#maxLineBytes)
    const data = { reason: error.reason, limit: this.#maxLineBytes }
    this.#events.received(errorLine('null', { code: CODE.invalidRequest, message: error.message, data }))
    this.#end(error)
  }

  async #comeBack(timeoutMs: number): Promise<void> {
    const lostAtMs = performance.now()
    for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(delayMs * 2, MAX_DELAY_MS)) {
      await sleep(delayMs * (0.5 + Math.random()), undefined, { signal: this.#stop.signal }).catch(() => {})
      if (this.#hasEnded) return
      const awayMs = performance.now() - lostAtMs
      try {
        await this.#attempt(awayMs)
        if (!this.#hasEnded) this.#events.restored?.()
        return
      } catch (error) {
        if (this.#hasEnded) return
        if (error instanceof BusRefused && !error.isRetryable) return this.#end(error)
        if (awayMs > timeoutMs) return this.#end(didNotComeBack(awayMs, error))
      }
    }
  }

  /** Answers everything that is pending with an error; how many. */
  #fail(reason: LocalReason): number {
    const spellings = this.#crossing.lose()
    if (spellings.length > 0) {
      this.#events.received(Buffer.concat(spellings.map((spelling) => localFaultLine(spelling, reason))))
    }
    return spellings.length
  }

  #endIfSettled(): void {
    if (!this.#isFinishing || this.#isLeaving || this.#hasEnded) return
    if (!this.#crossing.requests.isSettled || !this.#waiting.isEmpty) return
    if (!this.#isOpen) return this.#end()
    this.#isLeaving = true
    const socket = this.#socket!
    // What the bus still has to say, it says before it closes its side too.
    socket.end()
    const timer = setTimeout(() => (this.#isPaused ? timer.refresh() : socket.destroy()), HANG_UP_TIMEOUT_MS)
    this.#stop.signal.addEventListener('abort', () => clearTimeout(timer))
  }

  #end(error?: BusError): void {
    if (this.#hasEnded) return
    if (error !== undefined) this.#fail('bus_gone')
    this.#leave(hangUp, error)
  }

  #leave(how: typeof hangUp, error?: BusError): void {
    this.#hasEnded = true
    this.#stop.abort()
    const socket = this.#socket
    this.#socket = undefined
    this.#isOpen = false
    if (socket === undefined) return this.#events.ended(error)
    how(socket, () => this.#events.ended(error))
  }
}
