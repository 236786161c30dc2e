/** Waiting for time and for facts; whoever waits for a fact says how long, and gets what was found or undefined. */
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** The first truthy result of `probe`, or undefined after `timeoutMs`. */
export async function eventually(probe, timeoutMs, everyMs = 25) {
  for (const endMs = performance.now() + timeoutMs; ; await sleep(everyMs)) {
    const found = await probe()
    if (found) return found
    if (performance.now() >= endMs) return undefined
  }
}
