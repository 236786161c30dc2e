/**
 * When and how a principal was last there, and how often it was refused, for people who look on (contract 15.12).
 *
 * It holds names and no credential. Beyond a bound the one that was not seen for longest is forgotten.
 */
import type { AuditEvent } from './audit-line.ts'

const MAX_NAMES = 1_000

export interface Sighting {
  readonly via: string | null
  readonly lastSeenMs: number
  readonly refused: number
}

export class Sightings {
  readonly #byName = new Map<string, Sighting>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  /** Calls are many and say nothing more than that somebody is there. */
  take({ event, principal, via }: AuditEvent): void {
    if (principal === undefined || event === 'call') return
    const known = this.#byName.get(principal)
    const refused = (known?.refused ?? 0) + (event === 'refused' || event === 'denied' ? 1 : 0)
    this.#byName.delete(principal)
    this.#byName.set(principal, { via: via ?? known?.via ?? null, lastSeenMs: this.#now(), refused })
    if (this.#byName.size > MAX_NAMES) this.#byName.delete(this.#byName.keys().next().value!)
  }

  of(name: string): Sighting | undefined {
    return this.#byName.get(name)
  }
}
