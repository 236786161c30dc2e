/** When calls were, on a common axis: from the first start to the last end. */
import type { Call } from './trace.ts'

type Timed = Pick<Call, 'started_at' | 'duration_ms'>

export interface Extent {
  readonly startMs: number
  readonly totalMs: number
}

/** An open call lasts as long as anything else is known. */
export function extentOf(calls: readonly Timed[]): Extent {
  let startMs = Number.POSITIVE_INFINITY
  let endMs = Number.NEGATIVE_INFINITY
  for (const { started_at, duration_ms } of calls) {
    const at = Date.parse(started_at)
    startMs = Math.min(startMs, at)
    endMs = Math.max(endMs, at + (duration_ms ?? 0))
  }
  return calls.length === 0 ? { startMs: 0, totalMs: 1 } : { startMs, totalMs: Math.max(endMs - startMs, 0.001) }
}

/** Where a call begins and how long it is, in parts of a hundred of the axis. */
export function placeOf(
  { started_at, duration_ms }: Timed,
  { startMs, totalMs }: Extent,
): { left: number; width: number } {
  const fromMs = Date.parse(started_at) - startMs
  const left = Math.min(100, (100 * fromMs) / totalMs)
  return { left, width: Math.min(100 - left, (100 * (duration_ms ?? totalMs - fromMs)) / totalMs) }
}
