/**
 * Gives every call of a trace its integer: the client's own where it can, the next free one otherwise (aio.md 3.7).
 *
 * Bounded: for traces not heard of lately only the last number is remembered, and numbering goes on above it.
 */
import { MAX_CONTINUED_ID } from './row.ts'

interface Numbering {
  /** Every number up to this one counts as used. */
  floor: number
  readonly used: Set<number>
  /** Asked for since it was last looked at for retirement. */
  isBusy: boolean
}

const MAX_TRACES = 10_000
const MAX_USED = 10_000
const MAX_REMEMBERED = 50_000

export class CallIds {
  readonly #lively = new Map<string, Numbering>()
  readonly #lastIds = new Map<string, number>()

  allocate(traceId: string, requestId: string | number | null): number {
    const numbering = this.#numberingOf(traceId)
    const id = isFree(requestId, numbering) ? requestId : nextFree(numbering)
    numbering.used.add(id)
    advance(numbering)
    if (numbering.used.size > MAX_USED) settle(numbering)
    return id
  }

  /** What an earlier run has used, newest trace first. */
  remember(lastIds: Iterable<readonly [traceId: string, maxId: number]>): void {
    for (const [traceId, maxId] of lastIds) if (!this.#lively.has(traceId)) this.#keepLast(traceId, maxId)
  }

  #numberingOf(traceId: string): Numbering {
    const known = this.#lively.get(traceId)
    if (known !== undefined) {
      known.isBusy = true
      return known
    }
    if (this.#lively.size >= MAX_TRACES) this.#retireOne()
    const fresh = { floor: this.#lastIds.get(traceId) ?? 0, used: new Set<number>(), isBusy: false }
    this.#lively.set(traceId, fresh)
    return fresh
  }

  /** The oldest that nobody asked for lately. Moving a trace at every use would be simpler, and slow for one that is hot. */
  #retireOne(): void {
    for (const [traceId, numbering] of this.#lively) {
      this.#lively.delete(traceId)
      if (numbering.isBusy) {
        numbering.isBusy = false
        this.#lively.set(traceId, numbering)
        continue
      }
      settle(numbering)
      return this.#keepLast(traceId, numbering.floor)
    }
  }

  #keepLast(traceId: string, maxId: number): void {
    this.#lastIds.delete(traceId)
    this.#lastIds.set(traceId, maxId)
    if (this.#lastIds.size <= MAX_REMEMBERED) return
    const [oldest] = this.#lastIds.keys()
    if (oldest !== undefined) this.#lastIds.delete(oldest)
  }
}

function isFree(id: string | number | null, { floor, used }: Numbering): id is number {
  return typeof id === 'number' && Number.isSafeInteger(id) && id > floor && !used.has(id)
}

function nextFree({ floor, used }: Numbering): number {
  let id = floor + 1
  while (used.has(id)) id += 1
  return id
}

/** Numbers that are used without a gap need not be remembered one by one. */
function advance(numbering: Numbering): void {
  while (numbering.used.delete(numbering.floor + 1)) numbering.floor += 1
}

/** Forgets the gaps: everything up to the largest sensible number counts as used from now on. */
function settle(numbering: Numbering): void {
  for (const id of numbering.used) {
    if (id <= MAX_CONTINUED_ID) numbering.floor = Math.max(numbering.floor, id)
  }
  numbering.used.clear()
}
