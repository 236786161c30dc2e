/**
 * Names traces and calls: `AIO-TR-YYYYMMDD-NNNN` from a counter per UTC day, and an integer per call.
 *
 * A number is taken for good before it is issued: the store hands out blocks, today's and tomorrow's, ahead of need. Issuing
 * never waits. When no block is there (no store, a slow disk, a clock that jumped) numbers start at the milliseconds since
 * midnight, so a restart does not repeat them (spec T1).
 */
import { crc32 } from 'node:zlib'
import { CallIds } from './call-ids.ts'
import { otelTraceId, spanId } from './otel-ids.ts'

/** Takes `count` numbers of a day, none below `atLeast`; undefined when nobody can. */
export type Reserve = (day: string, count: number, atLeast: number) => Promise<number | undefined>

interface Day {
  readonly blocks: { next: number; end: number }[]
  /** The largest number issued or known to be taken. */
  highest: number
  isRefilling: boolean
}

const BLOCK = 4_096
const LOW_WATER = BLOCK / 2
const DAY_MS = 86_400_000
/** Of a trace that was begun elsewhere each node numbers so many calls. */
const CALLS_OF_A_NODE = 2 ** 20
const TRACE_ID = /^[\x21-\x22\x24-\x7e]{1,128}$/

export class TraceIds {
  readonly calls: CallIds
  busInstance: string
  readonly #nowMs: () => number
  readonly #reserve: Reserve
  readonly #days = new Map<string, Day>()

  /** Among several nodes numbers begin with what this one is called (contract 14.10). */
  readonly #prefix: string

  constructor(busInstance: string, nowMs: () => number, reserve: Reserve, node?: string) {
    const number = node === undefined ? 0 : crc32(node)
    this.#prefix = node === undefined ? '' : String(number)
    const ours = new RegExp(`^AIO-TR-\\d{8}-${this.#prefix}\\d{4,}$`)
    this.calls = new CallIds((traceId) => (node === undefined || ours.test(traceId) ? 0 : number * CALLS_OF_A_NODE))
    this.busInstance = busInstance
    this.#nowMs = nowMs
    this.#reserve = reserve
  }

  /** A new id, never issued before by this store. */
  issue(): string {
    const nowMs = this.#nowMs()
    const day = utcDay(nowMs)
    const state = this.#days.get(day) ?? this.#beginDay(nowMs)
    const number = takeNumber(state, nowMs % DAY_MS)
    if (left(state) < LOW_WATER) void this.#refill(day, state)
    return `AIO-TR-${day}-${this.#prefix}${String(number).padStart(4, '0')}`
  }

  /** Any printable ASCII without spaces; `#` separates the call. */
  isValid(traceId: string): boolean {
    return TRACE_ID.test(traceId)
  }

  /** The request id if it is a positive integer not yet used in the trace, otherwise the next free integer. */
  allocate(traceId: string, requestId: string | number | null): number {
    return this.calls.allocate(traceId, requestId)
  }

  otelTraceId(traceId: string): string {
    return otelTraceId(this.busInstance, traceId)
  }

  spanId(traceId: string, callId: number): string {
    return spanId(this.busInstance, traceId, callId)
  }

  /** Fetches the blocks of today and tomorrow; to be awaited once, when the store has opened. */
  async prepare(): Promise<void> {
    const nowMs = this.#nowMs()
    const days = [utcDay(nowMs), utcDay(nowMs + DAY_MS)]
    await Promise.all(days.map((day) => this.#refill(day, this.#dayOf(day))))
  }

  /** A day begins: yesterday is over, tomorrow is fetched while there is time. */
  #beginDay(nowMs: number): Day {
    const today = utcDay(nowMs)
    for (const day of this.#days.keys()) if (day < today) this.#days.delete(day)
    void this.prepare()
    return this.#dayOf(today)
  }

  #dayOf(day: string): Day {
    const known = this.#days.get(day)
    if (known) return known
    const fresh: Day = { blocks: [], highest: 0, isRefilling: false }
    this.#days.set(day, fresh)
    return fresh
  }

  async #refill(day: string, state: Day): Promise<void> {
    if (state.isRefilling || left(state) >= LOW_WATER) return
    state.isRefilling = true
    const first = await this.#reserve(day, BLOCK, state.highest + 1)
    state.isRefilling = false
    if (first === undefined) return
    const block = { next: Math.max(first, state.highest + 1), end: first + BLOCK }
    if (block.next < block.end) state.blocks.push(block)
  }
}

let lastDay = { number: Number.NaN, text: '' }

/** The UTC day as it stands in a trace id. */
export function utcDay(nowMs: number): string {
  const number = Math.floor(nowMs / DAY_MS)
  if (number !== lastDay.number) {
    lastDay = { number, text: new Date(nowMs).toISOString().slice(0, 10).replaceAll('-', '') }
  }
  return lastDay.text
}

function takeNumber(state: Day, msSinceMidnight: number): number {
  const block = state.blocks.find(({ next, end }) => next < end)
  const number = block === undefined ? Math.max(state.highest + 1, Math.floor(msSinceMidnight)) : block.next++
  if (block !== undefined && block.next === block.end) state.blocks.shift()
  state.highest = Math.max(state.highest, number)
  return number
}

function left(state: Day): number {
  return state.blocks.reduce((sum, { next, end }) => sum + end - next, 0)
}
