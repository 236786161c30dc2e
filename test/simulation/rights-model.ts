/**
 * What a principal may do, as the simulation understands contract 9: patterns, tools, and how much a rate lets through.
 *
 * Nothing here is the kernel's own: a pattern is a regular expression, and a rate is replayed over the messages that were
 * taken, once as generously and once as strictly as chance allows.
 */

import type { Reason } from '../../src/kernel/faults.ts'
import type { Rights } from '../../src/kernel/rights.ts'
import type { ClientLine } from './line.ts'

export function mayPool({ pools }: Rights, pool: string): boolean {
  return pools.some((pattern) => isMeant(pattern, pool))
}

/** Undefined: the message names none, or nobody can tell which. */
export function mayTool({ tools }: Rights, pool: string, tool: string | undefined): boolean {
  if (tools === undefined) return true
  if (tool === undefined) return false
  const isAny = (patterns: readonly string[]): boolean =>
    patterns.some((pattern) => isMeant(pattern, pattern.includes('::') ? `${pool}::${tool}` : tool))
  return isAny(tools.allow ?? ['*']) && !isAny(tools.deny ?? [])
}

function isMeant(pattern: string, name: string): boolean {
  const source = [...pattern].map((c) => (c === '*' ? '.*' : c === '?' ? '.' : c.replace(/[^\w]/, '\\$&'))).join('')
  return new RegExp(`^${source}$`, 's').test(name)
}

/** Whatever the clocks of two who count the same do to a fraction. */
const SLACK = 1e-6

/** What is refused for these has cost nothing. */
const FREE_REASONS: ReadonlySet<Reason | undefined> = new Set([
  'not_allowed',
  'rate_limited',
  'too_many_pending',
  'pool_required',
  'unknown_pool',
] as const)

/** A message that may have cost something, and the rate that held when it was taken. */
interface Charge {
  readonly line: ClientLine
  readonly atMs: number
  readonly rate: Rights['rate']
  /** Changes whenever a rate does. */
  readonly edition: number
}

/** What the messages of one principal cost, over all its connections (contract 9.21). */
export class Ledger {
  readonly #charges: Charge[] = []

  #edition = 0

  note(line: ClientLine, atMs: number, rate: Rights['rate']): void {
    this.#charges.push({ line, atMs, rate, edition: this.#edition })
  }

  /** From now on another rate holds. */
  change(): void {
    this.#edition++
  }

  /** The first message that reached a worker though the bucket was empty, whatever else the bucket was spent on. */
  excess(): ClientLine | undefined {
    return replay(
      this.#charges,
      ({ receiver, method }) => receiver !== undefined && method !== 'session/cancel',
      Number.POSITIVE_INFINITY,
      (line, left) => line.receiver !== undefined && line.method !== 'session/cancel' && left < 1 - SLACK,
    )
  }

  /**
   * There may have been nothing left for the message, if all that may have cost something did: what others of the principal sent
   * was taken in the same event in an order that only the bus knows, so all of that may have come before.
   */
  mayLack(refused: ClientLine): boolean {
    const mayCost = (line: ClientLine): boolean => !FREE_REASONS.has(line.refusedFor)
    const isIt = (line: ClientLine, left: number): boolean => line === refused && left < 1 + SLACK
    return replay(putLast(this.#charges, refused), mayCost, 0, isIt) !== undefined
  }
}

/** The charges with that of the line behind all others of its event. */
function putLast(charges: readonly Charge[], line: ClientLine): readonly Charge[] {
  const own = charges.find((charge) => charge.line === line)
  const last = charges.findLastIndex((charge) => charge.line.taken!.event === line.taken!.event)
  if (own === undefined) return charges
  return [...charges.slice(0, last + 1).filter((charge) => charge !== own), own, ...charges.slice(last + 1)]
}

/** `afresh`: what there is when the rate has changed. */
function replay(
  charges: readonly Charge[],
  costs: (line: ClientLine) => boolean,
  afresh: number,
  isIt: (line: ClientLine, left: number) => boolean,
): ClientLine | undefined {
  let left = Number.POSITIVE_INFINITY
  let before: Charge | undefined
  for (const charge of charges) {
    const { line, atMs, rate, edition } = charge
    if (rate !== undefined) {
      const isSame = (before?.edition ?? 0) === edition
      if (!isSame) left = afresh
      if (before !== undefined && isSame) left += ((atMs - before.atMs) * rate.count) / rate.perMs
      left = Math.min(left, rate.count)
      if (isIt(line, left)) return line
      if (costs(line)) left--
    }
    before = charge
  }
  return undefined
}
