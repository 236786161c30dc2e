/**
 * The requests of this side that the bus still owes an answer, by id.
 *
 * It keeps no payload: only how the id was spelled, so that an error finds its request again. Invariant: an entry is
 * there from the moment its request was taken until its answer, its cancellation or the loss of the bus.
 */
import type { IdKey } from '../wire/envelope.ts'

/** The same id may be in flight twice; both are owed an answer (contract 4.2.3). */
interface Entry {
  readonly spelling: string
  count: number
  /** How many of them the end of input waits for. */
  awaited: number
}

/** Far above what a bus accepts from one client (`max_pending_per_client`). */
const MAX_REQUESTS = 65_536

export class Requests {
  readonly #entries = new Map<IdKey, Entry>()
  #awaited = 0

  get isFull(): boolean {
    return this.#entries.size >= MAX_REQUESTS
  }

  /** Nothing is owed that is worth waiting for. */
  get isSettled(): boolean {
    return this.#awaited === 0
  }

  add(key: IdKey, spelling: string, isAwaited: boolean): void {
    const entry = this.#entries.get(key) ?? { spelling, count: 0, awaited: 0 }
    entry.count++
    if (isAwaited) this.#await(entry)
    this.#entries.set(key, entry)
  }

  answer(key: IdKey): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    entry.count--
    if (entry.awaited > entry.count) this.#forgo(entry)
    if (entry.count === 0) this.#entries.delete(key)
  }

  /** The requester no longer wants the answer, but may still be told how it ended. */
  forgo(key: IdKey): void {
    const entry = this.#entries.get(key)
    if (entry !== undefined && entry.awaited > 0) this.#forgo(entry)
  }

  /** Empties the table and gives the spelling of every id that is owed an error, once for each request. */
  takeAll(): string[] {
    const spellings: string[] = []
    for (const { spelling, count } of this.#entries.values()) {
      for (let i = 0; i < count; i++) spellings.push(spelling)
    }
    this.#entries.clear()
    this.#awaited = 0
    return spellings
  }

  #await(entry: Entry): void {
    entry.awaited++
    this.#awaited++
  }

  #forgo(entry: Entry): void {
    entry.awaited--
    this.#awaited--
  }
}
