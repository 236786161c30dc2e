/**
 * What a worker has lately been done with: how deep its calls were, and whether anybody still wanted them.
 *
 * A worker may call others after it has answered, or go on with what was given up; then none of its calls is open, and
 * only this tells where it stands. It lasts for a second, so a chain that is faster than that reaches its bound.
 */
const LASTS_MS = 1_000

export class Afterglow {
  /** When a call of that depth was last let go. */
  readonly #byDepth: number[] = []
  #wantedAtMs = Number.NEGATIVE_INFINITY
  #givenUpAtMs = Number.NEGATIVE_INFINITY

  /** A call was answered, or written and done. */
  done(depth: number, nowMs: number): void {
    this.#byDepth[depth] = nowMs
    this.#wantedAtMs = nowMs
  }

  /** A call was given up: the worker may be at it still. */
  givenUp(depth: number, nowMs: number): void {
    this.#byDepth[depth] = nowMs
    this.#givenUpAtMs = nowMs
  }

  /** The depth of the deepest of them; 0: there are none. */
  depth(nowMs: number): number {
    return Math.max(
      0,
      this.#byDepth.findLastIndex((atMs) => isFresh(atMs, nowMs)),
    )
  }

  /** All of them were given up. Whoever asks is at it still, so it lasts. */
  isUnwanted(nowMs: number): boolean {
    if (!isFresh(this.#givenUpAtMs, nowMs) || isFresh(this.#wantedAtMs, nowMs)) return false
    this.#givenUpAtMs = nowMs
    return true
  }
}

function isFresh(atMs: number | undefined, nowMs: number): boolean {
  return atMs !== undefined && nowMs - atMs < LASTS_MS
}
