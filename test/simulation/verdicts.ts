/**
 * Whether whoever the bus ended for being stuck, silent or large deserved it (contract 7.2, 8.3).
 *
 * It keeps an account of its own of every peer: how long its queue was full while nobody else was to blame, when a worker
 * last read or wrote, who holds how much. The bus says in its log whom it ends and why; this says whether that is true.
 */
import type { Core } from '../../src/kernel/core.ts'
import type { Action, BusEvent, Write } from '../../src/kernel/events.ts'
import type { Peer } from '../../src/kernel/peers.ts'
import { demand } from './violation.ts'
import type { World } from './world.ts'

type LogAction = Extract<Action, { do: 'log' }>

interface Account {
  /** Its queue was full for so long while its clock had to run. */
  readonly guiltyMs: number
  readonly isGuilty: boolean
  readonly bytes: number
}

/** The bus looks at its clocks now and then: it may have taken what it saw for what was so since the look before. */
const LOOKS = 2
/** Who holds more than the closed one by so much was to be closed first. */
const SLACK_BYTES = 1_000

export class Verdicts {
  readonly #world: World
  #accounts = new Map<string, Account>()
  #lookedAtMs = 0
  #totalBytes = 0
  readonly #stirredAtMs = new Map<string, number>()
  /** Closed in the event at hand because the bus retains too much. */
  #closed: string[] = []

  constructor(world: World) {
    this.#world = world
  }

  /** A worker has read or written: it is not silent. */
  heard(event: BusEvent): void {
    if (event.type === 'worker-received' || event.type === 'worker-wrote' || event.type === 'worker-spawned')
      this.#stirredAtMs.set(workerKey(event.worker, event.generation), this.#world.nowMs)
  }

  wrote(write: Write): void {
    if (write.kind === 'worker') this.#stirredAtMs.set(workerKey(write.id, write.generation), this.#world.nowMs)
  }

  /** The bus says whom it ends. */
  hear({ text, about }: LogAction): void {
    const client = `client ${about['client']}`
    if (text === 'client closed: its queue stayed full') this.#demandGuilty(client)
    if (text === 'client closed: the bus retains more than max_total_buffer') this.#closed.push(client)
    if (text !== 'worker is ended' || about['reason'] !== 'worker_stalled') return
    const worker = workerKey(about['worker'] as number, about['generation'] as number)
    if (String(about['why']).includes('hang_timeout_sec')) this.#demandSilent(worker)
    else if (!this.#isOverTotal) this.#demandGuilty(worker)
  }

  #demandGuilty(key: string): void {
    const account = this.#accounts.get(key)
    if (account === undefined) return
    const { backpressureTimeoutMs, blockingTimeoutMs } = this.#world.spec.limits
    const isWorker = key.startsWith('worker')
    // A client that holds up others has less.
    const patienceMs = isWorker ? backpressureTimeoutMs : Math.min(backpressureTimeoutMs, blockingTimeoutMs)
    const guiltyMs = account.guiltyMs + (account.isGuilty ? this.#world.nowMs - this.#lookedAtMs : 0)
    demand(
      guiltyMs * LOOKS >= patienceMs,
      'justified',
      () => `${key} was ended for its full queue, but it was to blame for ${guiltyMs} of ${patienceMs} ms only`,
    )
  }

  #demandSilent(key: string): void {
    const { nowMs, workers } = this.#world
    const worker = workers.find(({ slot, generation }) => workerKey(slot, generation) === key)
    if (worker === undefined) return
    demand(!worker.isPaused, 'justified', () => `${key} was ended for its silence while the bus did not read from it`)
    const quietMs = nowMs - (this.#stirredAtMs.get(key) ?? 0)
    const { hangTimeoutMs } = worker.spec
    demand(quietMs >= hangTimeoutMs, 'justified', () => `${key} was ended after ${quietMs} ms of ${hangTimeoutMs}`)
  }

  /** Whoever was stopped for it goes on below half of the bound. */
  get #isOverTotal(): boolean {
    return this.#totalBytes * 2 >= this.#world.spec.limits.maxTotalBufferBytes
  }

  /** The event is over. */
  look(core: Core): void {
    const { nowMs } = this.#world
    const before = this.#accounts
    const passedMs = nowMs - this.#lookedAtMs
    this.#lookedAtMs = nowMs
    this.#accounts = new Map()
    for (const client of core.clients.values()) this.#keep(`client ${client.id}`, client, before, passedMs)
    for (const worker of core.workers.values())
      if (worker.isAlive) this.#keep(workerKey(worker.id, worker.generation), worker, before, passedMs)
    for (const key of this.#closed) this.#demandLargest(key, before)
    this.#closed = []
    this.#totalBytes = 0
    for (const client of core.everyClient()) this.#totalBytes += client.retainedBytes
    for (const worker of core.workers.values()) this.#totalBytes += worker.retainedBytes
  }

  #keep(key: string, peer: Peer, before: ReadonlyMap<string, Account>, passedMs: number): void {
    const known = before.get(key)
    const isFull = !peer.outbox.isReleased
    const guiltyMs = isFull && known?.isGuilty ? known.guiltyMs + passedMs : isFull ? (known?.guiltyMs ?? 0) : 0
    this.#accounts.set(key, { guiltyMs, isGuilty: isFull && !isHeldUp(peer), bytes: peer.retainedBytes })
  }

  /** Above the total bound those who hold most go first. */
  #demandLargest(key: string, before: ReadonlyMap<string, Account>): void {
    const closed = before.get(key)
    if (closed === undefined) return
    for (const other of this.#accounts.keys()) {
      const bytes = before.get(other)?.bytes ?? 0
      demand(
        bytes <= closed.bytes * 1.5 + SLACK_BYTES,
        'justified',
        () => `${key} was closed for its ${closed.bytes} bytes, and ${other} with ${bytes} was not`,
      )
    }
  }
}

function workerKey(slot: number, generation: number): string {
  return `worker ${slot}.${generation}`
}

/** The bus does not read from it, and whoever it waits for does not wait for it in turn (contract 8.3). */
function isHeldUp(peer: Peer): boolean {
  if (peer.blockedOn === undefined) return false
  const seen = new Set<Peer>()
  for (let at = peer.blockedOn.owner; at !== undefined && !seen.has(at); at = at.blockedOn?.owner) {
    if (at === peer) return peer.kind === 'worker' && [...seen].some(({ kind }) => kind === 'client')
    seen.add(at)
  }
  return true
}
