/**
 * Waiting for something to become true, with an end. A test never sleeps for a guess: it waits for a fact, and a fact
 * that does not come is a failure that says what was awaited.
 */
import { setTimeout as sleep } from 'node:timers/promises'

export { sleep }

/** A fact that is coming comes on a busy machine too. */
export const PATIENCE_MS = 15_000

/** Settles with `promise`, or fails after `timeoutMs` naming what was awaited. */
export async function within<T>(timeoutMs: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${timeoutMs} ms: ${what}`)), timeoutMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Asks `probe` again and again until it gives something other than `undefined` or `false`. */
export async function eventually<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = PATIENCE_MS,
): Promise<T> {
  const end = Date.now() + timeoutMs
  for (;;) {
    const found = await probe()
    if (found !== undefined && found !== false) return found
    if (Date.now() > end) throw new Error(`not within ${timeoutMs} ms: ${what}`)
    await sleep(25)
  }
}
