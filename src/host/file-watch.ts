/**
 * Looks twice a second whether one of a few files has become another, and says so; it reads none of them.
 *
 * Looking, because what the system tells by itself gets lost with links, mounts and files that are moved into place.
 * Invariant: what changes after the watch was made is told, so whoever makes it first and reads then misses nothing. The
 * same content may be told twice: a file is taken for changed once more when it is old enough for its time to be trusted.
 */
import { type BigIntStats, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'

const LOOK_EVERY_MS = 500
/** Clocks of file systems tick as coarsely as this: two changes in a row may leave the same time. */
const YOUNG_MS = 2_000

export class FileWatch {
  readonly #paths: readonly string[]
  readonly #changed: () => void
  readonly #timer: NodeJS.Timeout
  #seen: string
  #isLooking = false
  #isClosed = false

  constructor(paths: readonly string[], changed: () => void) {
    this.#paths = paths
    this.#changed = changed
    this.#seen = paths.map(lookAtOnce).join()
    this.#timer = setInterval(() => void this.#look(), LOOK_EVERY_MS)
    this.#timer.unref()
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#timer)
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    const found = (await Promise.all(this.#paths.map(look))).join()
    this.#isLooking = false
    if (this.#isClosed || found === this.#seen) return
    this.#seen = found
    this.#changed()
  }
}

function lookAtOnce(path: string): string {
  try {
    return fingerprint(statSync(path, { bigint: true }))
  } catch {
    return ''
  }
}

async function look(path: string): Promise<string> {
  return stat(path, { bigint: true }).then(fingerprint, () => '')
}

function fingerprint({ dev, ino, size, mtimeNs, ctimeNs, ctimeMs }: BigIntStats): string {
  const isYoung = Math.abs(Date.now() - Number(ctimeMs)) < YOUNG_MS
  return [dev, ino, size, mtimeNs, ctimeNs, isYoung].join(':')
}
