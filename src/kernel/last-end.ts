/** How a worker's last process ended, as it is told to people: what its source said of it, in words. */
import type { Worker } from './peers.ts'

export interface LastEnd {
  readonly atMs: number
  readonly reason: string
  /** Why, or what its source knows of it: an exit code, a signal. */
  readonly detail: Readonly<Record<string, unknown>>
}

/** As in `exit code 3`. */
export function sayEnd({ detail, reason }: LastEnd): string {
  if (typeof detail['why'] === 'string') return detail['why']
  const known = Object.entries(detail).filter(([, value]) => value !== null && value !== undefined)
  return known.map(([name, value]) => `${inWords(name)} ${value}`).join(', ') || reason
}

/** Why the slot is parked though trying again may help. */
export function sayParked({ lastEnd, pool }: Worker): string {
  const { maxRestarts, restartWindowMs } = pool.spec.limits
  const bound = `max_restarts is ${maxRestarts} in ${restartWindowMs / 1000} s`
  if (lastEnd === undefined) return `it keeps ending: ${bound}`
  const why = sayEnd(lastEnd)
  return lastEnd.detail['why'] === why ? `${why} (${bound})` : `it keeps ending (${why}): ${bound}`
}

/** `exitCode` as people say it. */
function inWords(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
}
