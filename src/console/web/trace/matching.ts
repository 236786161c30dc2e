/**
 * Two traces side by side (contract 15.9): the calls of both in one order, each with its counterpart.
 *
 * The first call of an agent's method in one is the first in the other, the second the second. What only the other trace has is added,
 * what only this one has is missing there; slower is what takes noticeably longer there.
 */
import { growTree } from './call-tree.ts'
import type { Call } from './trace.ts'

export type Difference = 'added' | 'missing' | 'slower' | 'same'

export interface Pair {
  readonly call: Call | undefined
  readonly other: Call | undefined
  readonly depth: number
  readonly difference: Difference
}

/** Below this nobody means that it is slower: clocks and machines do as much. */
const SLOWER_SHARE = 1.2
const SLOWER_MS = 2

export function matchTraces(calls: readonly Call[], others: readonly Call[]): Pair[] {
  const counterparts = counterpartsOf(calls, others)
  const matched = new Set(counterparts.values())
  /** What is added stands behind what it stands behind in its own trace. */
  const behind = new Map<number | undefined, Pair[]>()
  let before: number | undefined
  for (const { call: other, depth } of growTree(others)) {
    if (matched.has(other)) before = other.id
    else appendTo(behind, before, { call: undefined, other, depth, difference: 'added' } as const)
  }
  const pairs: Pair[] = []
  let waiting = behind.get(undefined) ?? []
  for (const { call, depth } of growTree(calls)) {
    // Not between a call and those that it made.
    if (waiting.length > 0 && depth <= waiting[0]!.depth) pairs.push(...waiting.splice(0))
    const pair = pairOf(call, counterparts.get(call.id), depth)
    pairs.push(pair)
    const added = pair.other && behind.get(pair.other.id)
    if (added !== undefined) waiting = [...waiting, ...added]
  }
  return [...pairs, ...waiting]
}

export function countDifferences(pairs: readonly Pair[]): Record<Difference, number> {
  const counts = { added: 0, missing: 0, slower: 0, same: 0 }
  for (const { difference } of pairs) counts[difference]++
  return counts
}

function pairOf(call: Call, other: Call | undefined, depth: number): Pair {
  return { call, other, depth, difference: other === undefined ? 'missing' : isSlower(call, other) ? 'slower' : 'same' }
}

function isSlower({ duration_ms: ms }: Call, { duration_ms: otherMs }: Call): boolean {
  return ms !== null && otherMs !== null && otherMs > ms * SLOWER_SHARE && otherMs - ms > SLOWER_MS
}

/** By the id of a call: the other's call of the same agent, method and order. */
function counterpartsOf(calls: readonly Call[], others: readonly Call[]): ReadonlyMap<number, Call> {
  const waiting = new Map<string, Call[]>()
  for (const other of others) appendTo(waiting, keyOf(other), other)
  for (const row of waiting.values()) row.reverse()
  return new Map(
    calls.flatMap((call): [number, Call][] => {
      const other = waiting.get(keyOf(call))?.pop()
      return other === undefined ? [] : [[call.id, other]]
    }),
  )
}

function appendTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [value])
  else list.push(value)
}

/** No name can hide in another: the length of the first parts them. */
function keyOf({ agent, method }: Call): string {
  return `${agent.length} ${agent}${method}`
}
