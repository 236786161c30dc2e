/**
 * Gives every call of a trace its integer: the client's own where it can, the next free one otherwise (spec T2).
 *
 * Bounded: for traces not heard of lately only the last number is remembered, and numbering goes on above it.
 */
import { Generations } from './generations.ts'
import { MAX_CONTINUED_ID } from './row.ts'

interface Numbering {
  /** Every number up to this one counts as used. */
  floor: number
  /** Those above it; most traces are numbered without a gap and have none. */
  used: Set<number> | undefined
}

const MAX_TRACES = 10_000
const MAX_USED = 10_000
const MAX_REMEMBERED = 50_000

export class CallIds {
  readonly #lastIds = new Generations<number>(MAX_REMEMBERED)
  readonly #lively = new Generations<Numbering>(MAX_TRACES, (traceId, numbering) => {
    settle(numbering)
    this.#lastIds.set(traceId, numbering.floor)
  })

  readonly #firstFloor: (traceId: string) => number

  /** `firstFloor`: above which the calls of a trace are numbered that is not known yet. */
  constructor(firstFloor: (traceId: string) => number = () => 0) {
    this.#firstFloor = firstFloor
  }

  allocate(traceId: string, requestId: string | number | null): number {
    const numbering = this.#numberingOf(traceId)
    const id = isFree(requestId, numbering) ? requestId : nextFree(numbering)
    if (id === numbering.floor + 1 && numbering.used === undefined) numbering.floor = id
    else note(numbering, id)
    return id
  }

  /** What an earlier run has used, newest trace first. */
  remember(lastIds: Iterable<readonly [traceId: string, maxId: number]>): void {
    for (const [traceId, maxId] of lastIds) if (!this.#lively.has(traceId)) this.#lastIds.set(traceId, maxId)
  }

  #numberingOf(traceId: string): Numbering {
    const known = this.#lively.get(traceId)
    if (known !== undefined) return known
    const fresh = { floor: this.#lastIds.get(traceId) ?? this.#firstFloor(traceId), used: undefined }
    this.#lively.set(traceId, fresh)
    return fresh
  }
}

function isFree(id: string | number | null, { floor, used }: Numbering): id is number {
  return typeof id === 'number' && Number.isSafeInteger(id) && id > floor && !used?.has(id)
}

function nextFree({ floor, used }: Numbering): number {
  let id = floor + 1
  while (used?.has(id)) id += 1
  return id
}

/** Numbers that are used without a gap need not be remembered one by one. */
function note(numbering: Numbering, id: number): void {
  numbering.used ??= new Set()
  numbering.used.add(id)
  while (numbering.used.delete(numbering.floor + 1)) numbering.floor += 1
  if (numbering.used.size > MAX_USED) settle(numbering)
  else if (numbering.used.size === 0) numbering.used = undefined
}

/** Forgets the gaps: everything up to the largest sensible number counts as used from now on. */
function settle(numbering: Numbering): void {
  for (const id of numbering.used ?? []) {
    if (id <= MAX_CONTINUED_ID) numbering.floor = Math.max(numbering.floor, id)
  }
  numbering.used = undefined
}
