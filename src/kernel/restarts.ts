/**
 * When a worker that ended may come back: a window of restarts and a back-off that doubles (contract 7.2).
 *
 * Counted per worker. It reads no clock and throws no dice: time and chance are given. Invariant: never more than
 * `maxRestarts` restarts within any `restartWindowMs`.
 */
import { FIXED, type Limits } from './limits.ts'

export class Restarts {
  total = 0
  #stampsMs: number[] = []
  #failuresInRow = 0

  /** The worker lived from then to now; a stable life starts the back-off anew. */
  lived(lifeMs: number): void {
    if (lifeMs >= FIXED.stableMs) this.#failuresInRow = 0
  }

  /** When the window has room for another restart: now, later, or never. */
  roomAtMs(limits: Limits, nowMs: number): number {
    this.#stampsMs = this.#stampsMs.filter((stampMs) => stampMs > nowMs - limits.restartWindowMs)
    if (this.#stampsMs.length < limits.maxRestarts) return nowMs
    const leaving = this.#stampsMs[this.#stampsMs.length - limits.maxRestarts]
    return leaving === undefined ? Number.POSITIVE_INFINITY : leaving + limits.restartWindowMs
  }

  record(nowMs: number): void {
    this.total++
    this.#stampsMs.push(nowMs)
  }

  /** 0.1 s, doubling to 30 s, with jitter between half and the whole; `chance` lies in [0, 1). */
  backoffMs(chance: number): number {
    const fullMs = Math.min(FIXED.backoffFirstMs * 2 ** this.#failuresInRow, FIXED.backoffMaxMs)
    this.#failuresInRow++
    return Math.round(fullMs * (0.5 + chance / 2))
  }
}
