/**
 * Whose queue stays full too long is closed; the innocent are not (contract 8.3).
 *
 * The clock of a peer runs while its queue is full, and stands still while the bus itself does not read from it, for then
 * it may only be waiting for somebody else. A client that is the cause of its own waiting is not innocent: if the chain of
 * who waits for whom leads back to it, its clock runs. A worker is blamed only for a chain without a client: one that asks
 * and does not read the answers waits for itself.
 */
import type { Core } from './core.ts'
import type { Flow } from './flow.ts'
import { FIXED } from './limits.ts'
import type { Client, Peer, Worker } from './peers.ts'

export interface Verdicts {
  closeStuckClient(client: Client, why: string): void
  endStuckWorker(worker: Worker): void
}

export class StuckClock {
  readonly #core: Core
  readonly #flow: Flow
  readonly #verdicts: Verdicts
  #lastLookMs = 0
  #isArmed = false
  #overTotalMs = 0

  constructor(core: Core, flow: Flow, verdicts: Verdicts) {
    this.#core = core
    this.#flow = flow
    this.#verdicts = verdicts
  }

  /** Called after every event: the clock ticks only while somebody is full. */
  arm(): void {
    if (this.#isArmed || !this.#isNeeded()) return
    this.#isArmed = true
    this.#lastLookMs = this.#core.nowMs
    this.#core.timers.set(this.#core.nowMs + this.#intervalMs(), () => this.#look())
  }

  #isNeeded(): boolean {
    return this.#flow.full.size > 0 || this.#flow.totalGate.sources.size > 0
  }

  /** What lies between two looks counts whole: it is a small part of the shortest time that anybody has. */
  #intervalMs(): number {
    const { limits, pools } = this.#core.spec
    const timesMs = pools.map((pool) => pool.limits.backpressureTimeoutMs)
    const shortestMs = Math.min(limits.backpressureTimeoutMs, limits.blockingTimeoutMs, ...timesMs)
    return Math.max(FIXED.minLookMs, Math.min(FIXED.maxLookMs, shortestMs / 8))
  }

  #look(): void {
    this.#isArmed = false
    const passedMs = this.#core.nowMs - this.#lastLookMs
    // Clients first: a worker that waits for one of them is released by its end.
    const full = [...this.#flow.full].sort((a, b) => (a.kind === b.kind ? 0 : a.kind === 'client' ? -1 : 1))
    for (const peer of full) if (this.#flow.full.has(peer)) this.#judge(peer, passedMs)
    this.#judgeTotal(passedMs)
    this.arm()
  }

  #judge(peer: Peer, passedMs: number): void {
    if (!this.#clockRuns(peer)) return
    peer.stuckMs += passedMs
    if (peer.stuckMs < this.#patienceMs(peer)) return
    if (peer.kind === 'client') this.#verdicts.closeStuckClient(peer, 'its queue stayed full')
    else this.#verdicts.endStuckWorker(peer)
  }

  #patienceMs(peer: Peer): number {
    if (peer.kind === 'worker') return peer.pool.spec.limits.backpressureTimeoutMs
    const { backpressureTimeoutMs, blockingTimeoutMs } = this.#core.spec.limits
    return holdsUpOthers(peer) ? Math.min(blockingTimeoutMs, backpressureTimeoutMs) : backpressureTimeoutMs
  }

  #clockRuns(peer: Peer): boolean {
    if (peer.blockedOn === undefined) return true
    const seen = new Set<Peer>()
    let at: Peer | undefined = peer.blockedOn.owner
    while (at !== undefined && !seen.has(at)) {
      if (at === peer) return peer.kind === 'client' || !hasClient(seen)
      seen.add(at)
      at = at.blockedOn?.owner
    }
    return false
  }

  /** Above the total bound, those who hold most are closed when pausing has not helped, as many as it takes. */
  #judgeTotal(passedMs: number): void {
    if (this.#flow.totalGate.sources.size === 0) {
      this.#overTotalMs = 0
      return
    }
    this.#overTotalMs += passedMs
    const { blockingTimeoutMs, maxTotalBufferBytes } = this.#core.spec.limits
    if (this.#overTotalMs < blockingTimeoutMs) return
    this.#overTotalMs = 0
    // One at a time, many small holders would keep everybody waiting for minutes.
    let excessBytes = this.#core.retainedBytes - maxTotalBufferBytes / 2
    for (const holder of this.#holders()) {
      if (excessBytes < 0) return
      excessBytes -= holder.countedBytes
      this.#closeHolder(holder)
    }
  }

  #closeHolder(holder: Peer): void {
    if (holder.kind === 'client') this.#verdicts.closeStuckClient(holder, 'the bus retains more than max_total_buffer')
    else this.#verdicts.endStuckWorker(holder)
  }

  /** Whoever retains anything, the largest first. */
  #holders(): Peer[] {
    const peers: Peer[] = [...this.#core.clients.values(), ...this.#core.workers.values()]
    return peers.filter((peer) => peer.countedBytes > 0).sort((a, b) => b.countedBytes - a.countedBytes)
  }
}

function hasClient(peers: ReadonlySet<Peer>): boolean {
  for (const { kind } of peers) if (kind === 'client') return true
  return false
}

/** Its full queue keeps a worker from being read on which others depend. */
function holdsUpOthers(client: Client): boolean {
  for (const source of client.gate.sources) {
    if (source.kind === 'worker' && isUsedByOthers(source, client)) return true
  }
  return false
}

function isUsedByOthers(worker: Worker, client: Client): boolean {
  for (const request of worker.outstanding.values())
    if (request.client !== undefined && request.client !== client) return true
  for (const session of worker.sessions.values()) if (session.driver !== client) return true
  return false
}
