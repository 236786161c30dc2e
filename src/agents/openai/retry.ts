/**
 * When a refused request is tried again, and after how long.
 *
 * It holds no clock and no timer: time and chance come in as arguments. Invariant: nobody waits longer than a minute.
 */

/** The longest `Retry-After` that is honoured; beyond it the user is told at once. */
export const maxRetryAfterMs = 60_000

const firstDelayMs = 500
const maxDelayMs = 8_000

/** Statuses that may pass by themselves. */
export function isRetryable(status: number): boolean {
  return status === 429 || status >= 500
}

/** The wait before retry number `attempt` (from 0), or `undefined` when waiting is pointless. */
export function retryDelayMs(
  attempt: number,
  retryAfter: string | null,
  nowMs: number,
  random: number,
): number | undefined {
  const asked = retryAfter === null ? undefined : parseRetryAfterMs(retryAfter, nowMs)
  if (asked !== undefined) return asked > maxRetryAfterMs ? undefined : asked
  const delayMs = Math.min(maxDelayMs, firstDelayMs * 2 ** attempt)
  return delayMs / 2 + (delayMs / 2) * random
}

/** `Retry-After` in seconds or as a date; anything else counts as not given. */
export function parseRetryAfterMs(value: string, nowMs: number): number | undefined {
  const text = value.trim()
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
  const dateMs = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(dateMs) ? undefined : Math.max(0, dateMs - nowMs)
}
