/**
 * How fast bad credentials are refused, and how many lines they may cost (contract 9.25).
 *
 * Nobody is locked out: addresses are shared, so who sends good credentials is never asked about here. Past ten bad ones a
 * minute an address's refusals wait for a second; where too many wait already, the next is closed unanswered. Whoever
 * refuses does the waiting; this only says so. Every table has a bound, and a wait is over by itself, whatever became of its peer.
 */
import { isIPv6 } from 'node:net'
import { LastUsed } from './last-used.ts'

const BAD_AT_ONCE = 10
const MINUTE_MS = 60_000
export const REFUSAL_PAUSE_MS = 1_000
const MAX_WAITING_OF_ADDRESS = 256
const MAX_WAITING = 1_024
const MAX_ADDRESSES = 10_000
const LINES = 10
const LINES_SPAN_MS = 1_000

/** Refuse now, in `REFUSAL_PAUSE_MS`, or close without a word. */
export type RefusalPace = 'at_once' | 'after_pause' | 'closed'

interface Address {
  readonly bad: LastTimes
  waiting: number
}

export class SlowedRefusals {
  /** A clock that is never turned back. */
  readonly #now: () => number
  readonly #addresses = new LastUsed<Address>(MAX_ADDRESSES)
  /** In the order in which they end. */
  readonly #waiting: { readonly address: Address; readonly untilMs: number }[] = []

  constructor(now: () => number) {
    this.#now = now
  }

  /** Counts a bad credential, and says how to refuse it. */
  paceFor(ip: string): RefusalPace {
    const nowMs = this.#now()
    this.#endWaits(nowMs)
    const address = this.#addressOf(networkOf(ip))
    const isSlowed = address.bad.areWithin(MINUTE_MS, nowMs)
    address.bad.add(nowMs)
    if (!isSlowed) return 'at_once'
    if (address.waiting >= MAX_WAITING_OF_ADDRESS || this.#waiting.length >= MAX_WAITING) return 'closed'
    address.waiting += 1
    this.#waiting.push({ address, untilMs: nowMs + REFUSAL_PAUSE_MS })
    return 'after_pause'
  }

  /** How much is remembered, for whoever watches memory. */
  get size(): number {
    return this.#addresses.size + this.#waiting.length
  }

  #addressOf(network: string): Address {
    const known = this.#addresses.get(network)
    if (known !== undefined) return known
    const address = { bad: new LastTimes(BAD_AT_ONCE), waiting: 0 }
    this.#addresses.set(network, address)
    return address
  }

  #endWaits(nowMs: number): void {
    const over = this.#waiting.findIndex(({ untilMs }) => untilMs > nowMs)
    for (const { address } of this.#waiting.splice(0, over === -1 ? this.#waiting.length : over)) address.waiting -= 1
  }
}

/** Lines of log and audit about refusals: so many a second, and of the rest their number. */
export class RefusalLines {
  readonly #now: () => number
  readonly #written = new LastTimes(LINES)
  #unwritten = 0

  constructor(now: () => number) {
    this.#now = now
  }

  /** Nothing if this line is not to be written; else how many were not since the one before. */
  take(): number | undefined {
    const nowMs = this.#now()
    if (this.#written.areWithin(LINES_SPAN_MS, nowMs)) {
      this.#unwritten += 1
      return undefined
    }
    this.#written.add(nowMs)
    return this.takeUnwritten()
  }

  /** How many have not been told of, for a last line when all is quiet again. */
  takeUnwritten(): number {
    const unwritten = this.#unwritten
    this.#unwritten = 0
    return unwritten
  }
}

/** When something happened the last so many times. */
class LastTimes {
  readonly #timesMs: Float64Array
  #oldest = 0

  constructor(count: number) {
    this.#timesMs = new Float64Array(count).fill(Number.NEGATIVE_INFINITY)
  }

  /** Whether all of them were less than `spanMs` ago. */
  areWithin(spanMs: number, nowMs: number): boolean {
    return nowMs - this.#timesMs[this.#oldest]! < spanMs
  }

  add(nowMs: number): void {
    this.#timesMs[this.#oldest] = nowMs
    this.#oldest = (this.#oldest + 1) % this.#timesMs.length
  }
}

/** Whom an address stands for: a house has one of IPv4, and 2^64 of IPv6. */
function networkOf(ip: string): string {
  const address = ip.replace(/%.*/, '')
  const mapped = /^::ffff:(\d+(?:\.\d+){3})$/i.exec(address)?.[1]
  if (mapped !== undefined) return mapped
  if (!isIPv6(address)) return address
  const [head = [], tail = []] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''))
  const groups = [...head, ...Array<string>(Math.max(0, 8 - head.length - tail.length)).fill('0'), ...tail]
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}
