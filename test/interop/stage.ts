/**
 * The kernel on a clock of the test's own, with clients and workers that say what the test writes: for waits and bounds that
 * are too long or too large to be met with the real program.
 */
import type { Bus } from '../../src/kernel/bus.ts'
import type { Action, BusEvent, JournalOrder } from '../../src/kernel/events.ts'
import type { Limits } from '../../src/kernel/limits.ts'
import type { Role } from '../../src/kernel/rights.ts'
import type { ClientId, WorkerId } from '../../src/kernel/vocabulary.ts'
import { type BusPart, busOf, identityOf, type PoolPart, specOf } from '../support/kernel-rig.ts'
import type { Message } from '../support/line-client.ts'

const POOL: PoolPart = { maxInstances: 32, protocol: 'auto', startTimeoutMs: 600_000 }

export class Stage {
  nowMs = 1_000
  /** What each worker and each client has been sent, in order. */
  readonly atWorker = new Map<number, Message[]>()
  readonly atClient = new Map<number, Message[]>()
  readonly #bus: Bus
  /** How workers were asked to end, in order, and the clients that are not read from now. */
  readonly stops: { readonly worker: number; readonly how: string }[] = []
  readonly paused = new Set<number>()
  readonly #limits: Partial<Limits>
  readonly #generations = new Map<number, number>()
  readonly #stalled = new Set<number>()
  #clients = 0

  /** Messages that name no pool go to the first one; the limits are those of the bus and of every pool. */
  constructor(pools: PoolPart | readonly PoolPart[], limits: Partial<Limits> = {}) {
    this.#limits = limits
    this.#bus = busOf(this.#part(pools))
    this.#perform(this.#bus.start(this.nowMs))
  }

  #part(pools: PoolPart | readonly PoolPart[]): BusPart {
    const list = (Array.isArray(pools) ? pools : [pools]) as readonly PoolPart[]
    const limits = { maxRestarts: 1_000, ...this.#limits }
    const parts = list.map((pool) => ({ ...POOL, ...pool, limits: { ...limits, ...pool.limits } }))
    return { pools: parts, defaultPool: parts[0]!.id ?? 'p', limits: this.#limits }
  }

  /** Another configuration takes the place of this one. */
  reload(pools: PoolPart | readonly PoolPart[]): void {
    this.#apply({ type: 'reload', spec: specOf(this.#part(pools)) })
  }

  get snapshot() {
    return this.#bus.snapshot()
  }

  /** `as` names the principal that it is, a user of every pool unless its role is said. */
  connect(as?: string, role: Role = 'user'): number {
    const client = ++this.#clients
    this.atClient.set(client, [])
    const identity = as === undefined ? {} : { identity: identityOf(as, { role }) }
    this.#apply({ type: 'client-opened', client: client as ClientId, door: 'unix', ...identity })
    return client
  }

  /** The shell tells something of its own. */
  tell(event: BusEvent): void {
    this.#apply(event)
  }

  /** The client reads nothing, or reads again. */
  setReading(client: number, isReading: boolean): void {
    if (isReading) this.#stalled.delete(client)
    else this.#stalled.add(client)
    if (isReading) this.#apply({ type: 'client-wrote', client: client as ClientId, pendingBytes: 0 })
  }

  /** What the journal was told, in order. */
  readonly journal: JournalOrder[] = []

  leave(client: number): void {
    this.#apply({ type: 'client-closed', client: client as ClientId })
  }

  /** The client ends its writing side. */
  endWriting(client: number): void {
    this.#apply({ type: 'client-ended', client: client as ClientId })
  }

  /** The client sends a message. */
  send(client: number, message: object): void {
    this.#apply({ type: 'client-received', client: client as ClientId, bytes: lineOf(message) })
  }

  /** The worker writes a message, or these bytes. */
  say(worker: number, message: object | string): void {
    const generation = this.#generations.get(worker)!
    this.#apply({ type: 'worker-received', worker: worker as WorkerId, generation, bytes: lineOf(message) })
  }

  exit(worker: number): void {
    const at = { worker: worker as WorkerId, generation: this.#generations.get(worker)! }
    this.#apply({ type: 'worker-silent', ...at, pipe: 'stdout' })
    this.#apply({ type: 'worker-ended', ...at, isClean: false, how: { exitCode: 1, signal: null } })
  }

  /** The bus is asked to stop, in its own time. */
  shutDown(): void {
    this.#apply({ type: 'shutdown', at: 'leisure' })
  }

  /** The last message with `method` that the worker was sent. */
  told(worker: number, method: string): Message {
    return this.atWorker.get(worker)?.findLast((message) => message.method === method)
  }

  /** Lets the time pass, with every tick that falls due. */
  advance(ms: number): void {
    const endMs = this.nowMs + ms
    for (let due = this.#bus.nextDeadlineMs(); due !== undefined && due <= endMs; due = this.#bus.nextDeadlineMs()) {
      this.nowMs = Math.max(this.nowMs + 1, due)
      this.#apply({ type: 'tick' })
    }
    this.nowMs = endMs
    this.#apply({ type: 'tick' })
  }

  #apply(event: BusEvent): void {
    this.#perform(this.#bus.apply(event, this.nowMs))
  }

  #perform(actions: readonly Action[]): void {
    const spawns = actions.filter((action) => action.do === 'open-worker')
    for (const action of actions) {
      if (action.do === 'close-worker') this.stops.push({ worker: action.worker, how: action.how })
      if (action.do === 'journal') this.journal.push(action.what)
      if (action.do === 'pause-client') this.paused.add(action.client)
      if (action.do === 'resume-client') this.paused.delete(action.client)
    }
    this.#carry()
    for (const { worker, generation } of spawns) {
      this.#generations.set(worker, generation)
      this.#apply({ type: 'worker-opened', worker, generation })
    }
  }

  /** Whatever waits to be written arrives at once. */
  #carry(): void {
    for (const write of this.#bus.takeWrites()) {
      const lines = Buffer.concat(write.buffers).toString().split('\n').filter(Boolean)
      const received = write.kind === 'worker' ? this.atWorker : this.atClient
      received.set(write.id, [...(received.get(write.id) ?? []), ...lines.map((line) => JSON.parse(line))])
      const isStalled = write.kind === 'client' && this.#stalled.has(write.id)
      const pendingBytes = isStalled ? Buffer.concat(write.buffers).length : 0
      this.#perform(this.#bus.wrote(write, pendingBytes, this.nowMs))
    }
  }
}

function lineOf(message: object | string): Buffer {
  return Buffer.from(typeof message === 'string' ? message : `${JSON.stringify(message)}\n`)
}
