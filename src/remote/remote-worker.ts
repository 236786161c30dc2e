/**
 * A worker that is an upstream: it connects, and is ended, as a process is started and ended (contract 11.2).
 *
 * It frames nothing and decides nothing: when to connect again is the kernel's. Success and failure are told by events,
 * never before whoever made it could listen, and after `failed` or `exited` nothing is told any more.
 */
import { EventEmitter } from 'node:events'
import { Duplex } from 'node:stream'
import { showAddress } from './address.ts'
import { Notices } from './notices.ts'
import { BROKEN_OFF, type Connect, type Connection, type Upstream, UpstreamFailure, type Via } from './upstream.ts'

interface RemoteEvents {
  spawned: [facts: { readonly address: string }]
  failed: [failure: { readonly reason: string; readonly again?: 'later' }]
  exited: [ending: { readonly isClean: boolean; readonly how: { readonly why: string }; readonly again?: 'later' }]
  /** A line for people, printable, and where it comes from. */
  diagnostic: [line: string, stream: 'upstream']
}

/** How long it may take to end once it is asked to. */
const STOP_MS = 2_500
const NOWHERE = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() }).destroy()

export class RemoteWorker extends EventEmitter<RemoteEvents> {
  readonly #address: string
  readonly #controller = new AbortController()
  /** Resolves when nothing of it is left. */
  readonly #gone: Promise<void>
  #leave: () => void = () => {}
  #connection: Connection | undefined
  #vias: Via[]
  #isStopped = false
  #isOver = false

  constructor(connect: Connect, upstream: Upstream, vias: readonly Via[] = []) {
    super()
    this.#address = showAddress(upstream.url)
    this.#vias = [...vias]
    this.#gone = new Promise((resolve) => {
      this.#leave = resolve
    })
    process.nextTick(() => void this.#connect(connect, upstream))
  }

  get stdin(): Duplex {
    return this.#connection?.stream ?? NOWHERE
  }

  get stdout(): Duplex {
    return this.stdin
  }

  passOn(via: Via): void {
    if (this.#connection === undefined) this.#vias.push(via)
    else this.#connection.passOn(via)
  }

  /** Ends the stream, which says goodbye, and tears it down if that takes too long. */
  async stop(_reason: string): Promise<void> {
    this.#isStopped = true
    const { stdin } = this
    if (this.#connection === undefined) this.#controller.abort()
    else if (!stdin.destroyed) {
      stdin.end()
      setTimeout(() => stdin.destroy(), STOP_MS).unref()
    }
    await this.#gone
  }

  terminate(reason: string): Promise<void> {
    return this.kill(reason)
  }

  async kill(_reason: string): Promise<void> {
    this.#isStopped = true
    this.#controller.abort()
    this.#connection?.stream.destroy()
    await this.#gone
  }

  async #connect(connect: Connect, upstream: Upstream): Promise<void> {
    // Others may become known while it connects.
    const vias = [...this.#vias]
    const notices = new Notices((line) => this.emit('diagnostic', line, 'upstream'))
    try {
      const connection = await connect(upstream, {
        vias,
        signal: this.#controller.signal,
        lost: (failure) => this.#end(failure),
        note: (sentence) => notices.add(sentence),
      })
      this.#adopt(connection)
      for (const via of this.#vias.slice(vias.length)) connection.passOn(via)
    } catch (cause) {
      this.#fail(cause)
    }
  }

  #adopt(connection: Connection): void {
    const { stream } = connection
    this.#connection = connection
    if (this.#controller.signal.aborted || stream.destroyed) {
      stream.destroy()
      throw new UpstreamFailure(this.#isStopped ? 'it was ended before it was connected' : BROKEN_OFF)
    }
    stream.once('close', () => {
      this.#end(new UpstreamFailure(this.#isStopped ? 'it was ended' : 'it closed the connection'))
      this.#leave()
    })
    this.emit('spawned', { address: this.#address })
  }

  #fail(cause: unknown): void {
    if (!(cause instanceof UpstreamFailure)) throw cause
    if (this.#isOver) return
    this.#isOver = true
    this.emit('failed', { reason: `${this.#address}: ${cause.why}`, ...(cause.isRefusal ? { again: 'later' } : {}) })
    this.#leave()
  }

  #end({ why, isRefusal }: UpstreamFailure): void {
    if (this.#isOver) return
    this.#isOver = true
    const how = { why: `${this.#address}: ${why}` }
    this.emit('exited', { isClean: this.#isStopped, how, ...(isRefusal ? { again: 'later' } : {}) })
  }
}
