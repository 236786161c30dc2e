/**
 * What is up and what is wrong, as one picture (contract 15.7): problems with their causes and what to do, pools, workers, figures.
 *
 * It looks at the state of the bus and decides nothing. Since when a problem is there it remembers, and that it has gone for a
 * moment, so that none flickers.
 */
import { FIXED } from '../../kernel/limits.ts'
import type { Status, WorkerStatus } from '../status.ts'
import { type ApiCall, maySee } from './api-call.ts'
import type { ConsolePort } from './port.ts'
import { type Evidence, type Found, findProblems } from './problems.ts'

export type Problem = Omit<Found, 'sinceMs'> & { readonly since: string }

/** A problem whose cause has gone is shown for so long, and no longer. */
const LINGER_MS = 1_500

export class Overview {
  readonly #port: ConsolePort
  readonly #now: () => number
  readonly #seen = new Map<string, { readonly found: Found; readonly sinceMs: number; lastMs: number }>()

  constructor(port: ConsolePort, now: () => number = Date.now) {
    this.#port = port
    this.#now = now
  }

  take(call: Pick<ApiCall, 'admitted'>): unknown {
    const status = this.#port.status()
    const workers = status.workers.filter(({ pool }) => maySee(call, pool))
    const pools = this.#port.pools().filter((pool) => maySee(call, pool))
    return {
      at: new Date(this.#now()).toISOString(),
      version: status.version,
      problems: this.#problemsFor(call, status),
      pools: pools.map((id) => ({
        id,
        workers: workers.filter(({ pool }) => pool === id).length,
        ready: readyOf(workers, id),
      })),
      workers,
      totals: totalsOf(status),
      rates: Object.fromEntries(pools.map((pool) => [pool, this.#rateOf(pool)])),
    }
  }

  problems(call: Pick<ApiCall, 'admitted'>): readonly Problem[] {
    return this.#problemsFor(call, this.#port.status())
  }

  #problemsFor(call: Pick<ApiCall, 'admitted'>, status: Status): Problem[] {
    this.#look(status)
    const isAdmin = call.admitted.identity.rights.role === 'admin'
    return [...this.#seen.values()]
      .filter(({ found }) => (found.pool === null ? isAdmin : maySee(call, found.pool)))
      .map(({ found: { sinceMs: _known, ...found }, sinceMs }) => ({
        ...found,
        since: new Date(sinceMs).toISOString(),
      }))
      .sort((one, other) => rank(one) - rank(other) || one.since.localeCompare(other.since))
  }

  #look(status: Status): void {
    const nowMs = this.#now()
    for (const found of findProblems(this.#gather(status, nowMs))) {
      const known = this.#seen.get(found.id)
      this.#seen.set(found.id, { found, sinceMs: known?.sinceMs ?? found.sinceMs ?? nowMs, lastMs: nowMs })
    }
    for (const [id, { lastMs }] of this.#seen) if (nowMs - lastMs > LINGER_MS) this.#seen.delete(id)
  }

  #gather(status: Status, nowMs: number): Evidence {
    const pools = this.#port.pools()
    return {
      nowMs,
      status,
      pools,
      remote: new Set(pools.filter((pool) => this.#port.isRemote(pool))),
      questions: this.#port.sessions.openQuestions(),
      file: this.#port.fileChange(),
      expiries: this.#port.expiries(),
    }
  }

  /** Of the last whole span. */
  #rateOf(pool: string): unknown {
    const { requests = 0, errors = 0, p50Ms, p95Ms, p99Ms } = this.#port.history(pool).at(-2) ?? {}
    const perSec = (count: number): number => count / (FIXED.trafficSpanMs / 1_000)
    const times = { p50_ms: p50Ms, p95_ms: p95Ms, p99_ms: p99Ms }
    return { requests_per_sec: perSec(requests), errors_per_sec: perSec(errors), ...times }
  }
}

const rank = ({ severity }: Problem): number => (severity === 'error' ? 0 : 1)

function readyOf(workers: readonly WorkerStatus[], pool: string): number {
  return workers.filter((worker) => worker.pool === pool && worker.state === 'ready').length
}

function totalsOf({
  clients,
  sessions,
  outstanding,
  queue_bytes,
  paused,
  restarts,
  uptime_sec,
  rss_bytes,
}: Status): unknown {
  return { clients, sessions, outstanding, queue_bytes, paused, restarts, uptime_sec, rss_bytes }
}
