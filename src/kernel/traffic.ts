/**
 * What has happened in the last quarter of an hour, pool by pool: counts in a ring of short spans (contract 15.7, 15.19).
 *
 * It only counts, and only where somebody may look. No timer: a span that is too old is emptied by whoever meets it next.
 * How long requests took is a histogram of fixed buckets, each a tenth wider than the one before.
 */
import { FIXED } from './limits.ts'
import type { PoolId } from './vocabulary.ts'

/** Each bucket is wider than the one before by this; the last takes whatever is longer than about an hour and a half. */
const GROWTH = 1.1
const LOG_GROWTH = Math.log(GROWTH)
const { trafficSpanMs, trafficSpans, trafficFirstMs, trafficBuckets } = FIXED

interface Span {
  /** The number of the span, counted from the beginning of time; -1: none. */
  number: number
  requests: number
  errors: number
  readonly buckets: Uint32Array
}

/** One span as it is told: how many requests ended in it, how many of them badly, and how long they took. */
export interface SpanCounts {
  /** When it ended, on the clock of the kernel. */
  readonly atMs: number
  readonly requests: number
  readonly errors: number
  readonly p50Ms: number | null
  readonly p95Ms: number | null
  readonly p99Ms: number | null
}

export class PoolTraffic {
  readonly #spans: Span[] = []

  count(nowMs: number, durationMs: number, isError: boolean): void {
    const span = this.#spanAt(Math.floor(nowMs / trafficSpanMs))
    span.requests++
    if (isError) span.errors++
    span.buckets[bucketOf(durationMs)]!++
  }

  /** The spans up to now, the oldest first; those in which nothing happened too. */
  counts(nowMs: number): SpanCounts[] {
    const current = Math.floor(nowMs / trafficSpanMs)
    return Array.from({ length: trafficSpans }, (_, index) => {
      const number = current - trafficSpans + 1 + index
      const span = number < 0 ? undefined : this.#spans[number % trafficSpans]
      return countsOf(number, span?.number === number ? span : undefined)
    })
  }

  #spanAt(number: number): Span {
    const place = number % trafficSpans
    this.#spans[place] ??= { number: -1, requests: 0, errors: 0, buckets: new Uint32Array(trafficBuckets) }
    const span = this.#spans[place]!
    if (span.number === number) return span
    span.number = number
    span.requests = 0
    span.errors = 0
    span.buckets.fill(0)
    return span
  }
}

/** The traffic of all pools that there are. */
export class Traffic {
  readonly #byPool = new Map<PoolId, PoolTraffic>()

  of(pool: PoolId): PoolTraffic {
    const known = this.#byPool.get(pool)
    if (known !== undefined) return known
    const traffic = new PoolTraffic()
    this.#byPool.set(pool, traffic)
    return traffic
  }

  /** Pools that are no more have no past. */
  keep(pools: ReadonlySet<PoolId>): void {
    for (const pool of this.#byPool.keys()) if (!pools.has(pool)) this.#byPool.delete(pool)
  }
}

function countsOf(number: number, span: Span | undefined): SpanCounts {
  const { requests = 0, errors = 0 } = span ?? {}
  const at = (share: number): number | null => (span === undefined ? null : quantile(span, share))
  return { atMs: (number + 1) * trafficSpanMs, requests, errors, p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) }
}

/** The upper end of the bucket in which the request lies that as large a share was faster than. */
function quantile({ requests, buckets }: Span, share: number): number | null {
  if (requests === 0) return null
  let left = Math.ceil(requests * share)
  for (let bucket = 0; bucket < trafficBuckets; bucket++) {
    left -= buckets[bucket]!
    if (left <= 0) return trafficFirstMs * GROWTH ** bucket
  }
  return trafficFirstMs * GROWTH ** (trafficBuckets - 1)
}

function bucketOf(durationMs: number): number {
  if (durationMs <= trafficFirstMs) return 0
  return Math.min(trafficBuckets - 1, Math.ceil(Math.log(durationMs / trafficFirstMs) / LOG_GROWTH))
}
