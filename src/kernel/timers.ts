/**
 * All deadlines of the kernel in one heap. It reads no clock: `fire` is told what time it is, `nextAtMs` says when to ask
 * again. Deadlines that fall together fire in the order in which they were set, so that a run can be repeated. Every timer
 * knows its place, so one that is cancelled is gone at once and keeps nothing alive.
 */
export interface Timer {
  readonly atMs: number
}

interface Entry extends Timer {
  readonly order: number
  readonly fire: (nowMs: number) => void
  /** Where it stands in the heap; -1: it has fired or was cancelled. */
  place: number
}

export class Timers {
  readonly #heap: Entry[] = []
  #order = 0

  set(atMs: number, fire: (nowMs: number) => void): Timer {
    const entry: Entry = { atMs, order: this.#order++, fire, place: this.#heap.length }
    this.#heap.push(entry)
    this.#rise(entry)
    return entry
  }

  /** One that has fired or was cancelled before is left as it is. */
  cancel(timer: Timer): void {
    const entry = timer as Entry
    if (entry.place !== -1) this.#remove(entry)
  }

  /** When the next deadline falls; undefined when there is none. */
  nextAtMs(): number | undefined {
    return this.#heap[0]?.atMs
  }

  fire(nowMs: number): void {
    for (let first = this.#heap[0]; first !== undefined && first.atMs <= nowMs; first = this.#heap[0]) {
      this.#remove(first)
      first.fire(nowMs)
    }
  }

  get size(): number {
    return this.#heap.length
  }

  /** The last one takes its place and finds its own from there. */
  #remove(entry: Entry): void {
    const last = this.#heap.pop()!
    if (last !== entry) {
      this.#put(last, entry.place)
      this.#rise(last)
      this.#sink(last)
    }
    entry.place = -1
  }

  #rise(entry: Entry): void {
    while (entry.place > 0) {
      const parent = this.#heap[(entry.place - 1) >> 1]!
      if (!isBefore(entry, parent)) return
      this.#swap(entry, parent)
    }
  }

  #sink(entry: Entry): void {
    const heap = this.#heap
    for (;;) {
      const left = heap[entry.place * 2 + 1]
      if (left === undefined) return
      const right = heap[left.place + 1]
      const least = right !== undefined && isBefore(right, left) ? right : left
      if (!isBefore(least, entry)) return
      this.#swap(least, entry)
    }
  }

  /** `lower` goes where `upper` is. */
  #swap(lower: Entry, upper: Entry): void {
    const { place } = lower
    this.#put(lower, upper.place)
    this.#put(upper, place)
  }

  #put(entry: Entry, place: number): void {
    this.#heap[place] = entry
    entry.place = place
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}
