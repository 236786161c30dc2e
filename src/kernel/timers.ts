/**
 * All deadlines of the kernel in one heap. It reads no clock: `fire` is told what time it is, `nextAtMs` says when to ask
 * again. Deadlines that fall together fire in the order in which they were set, so that a run can be repeated.
 */
export interface Timer {
  readonly atMs: number
  cancelled: boolean
}

interface Entry extends Timer {
  readonly order: number
  readonly fire: (nowMs: number) => void
}

export class Timers {
  #heap: Entry[] = []
  #order = 0

  set(atMs: number, fire: (nowMs: number) => void): Timer {
    const entry: Entry = { atMs, cancelled: false, order: this.#order++, fire }
    this.#heap.push(entry)
    this.#rise(this.#heap.length - 1)
    return entry
  }

  cancel(timer: Timer): void {
    timer.cancelled = true
  }

  /** When the next deadline falls; undefined when there is none. */
  nextAtMs(): number | undefined {
    while (this.#heap.length > 0 && this.#heap[0]!.cancelled) this.#pop()
    return this.#heap[0]?.atMs
  }

  fire(nowMs: number): void {
    for (let at = this.nextAtMs(); at !== undefined && at <= nowMs; at = this.nextAtMs()) this.#pop().fire(nowMs)
  }

  get size(): number {
    return this.#heap.length
  }

  #pop(): Entry {
    const top = this.#heap[0]!
    const last = this.#heap.pop()!
    if (this.#heap.length > 0) {
      this.#heap[0] = last
      this.#sink(0)
    }
    return top
  }

  #rise(index: number): void {
    const heap = this.#heap
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(heap[index]!, heap[parent]!)) return
      swap(heap, index, parent)
      index = parent
    }
  }

  #sink(index: number): void {
    const heap = this.#heap
    for (;;) {
      const left = index * 2 + 1
      if (left >= heap.length) return
      const right = left + 1
      const least = right < heap.length && isBefore(heap[right]!, heap[left]!) ? right : left
      if (!isBefore(heap[least]!, heap[index]!)) return
      swap(heap, index, least)
      index = least
    }
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}

function swap(heap: Entry[], a: number, b: number): void {
  const entry = heap[a]!
  heap[a] = heap[b]!
  heap[b] = entry
}
