/**
 * The calls of a trace as a forest: who called whom.
 *
 * A parent that is not in the trace does not lose the child: it stands at the top. A ring of parents, which no honest
 * history can hold, is cut at its earliest call. No recursion: a chain may be as long as the trace.
 */
import type { CallDocument } from './document.ts'

export interface CallNode {
  readonly call: CallDocument
  readonly depth: number
  /** Undefined at the top. */
  readonly parent: CallNode | undefined
  children: CallNode[]
  /** Nothing follows it under the same parent. */
  isLast: boolean
}

/** Every call exactly once, each parent before its children, siblings in order of start. */
export function growTree(calls: readonly CallDocument[]): CallNode[] {
  const childrenOf = groupByParent(calls)
  const placed = new Set<number>()
  let nodes = plant(childrenOf.get(null) ?? [], childrenOf, placed)
  for (const call of calls) if (!placed.has(call.id)) nodes = nodes.concat(plant([call], childrenOf, placed))
  return nodes
}

type ChildrenOf = ReadonlyMap<number | null, readonly CallDocument[]>

function groupByParent(calls: readonly CallDocument[]): ChildrenOf {
  const known = new Set(calls.map((call) => call.id))
  const groups = new Map<number | null, CallDocument[]>()
  for (const call of calls) {
    const parent = call.parent_id !== null && known.has(call.parent_id) ? call.parent_id : null
    const group = groups.get(parent)
    if (group === undefined) groups.set(parent, [call])
    else group.push(call)
  }
  return groups
}

function plant(tops: readonly CallDocument[], childrenOf: ChildrenOf, placed: Set<number>): CallNode[] {
  const nodes: CallNode[] = []
  const waiting = toNodes(tops, undefined).reverse()
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (placed.has(node.call.id)) continue
    placed.add(node.call.id)
    nodes.push(node)
    const calls = (childrenOf.get(node.call.id) ?? []).filter((call) => !placed.has(call.id))
    node.children = toNodes(calls, node)
    for (const child of [...node.children].reverse()) waiting.push(child)
  }
  return nodes
}

function toNodes(calls: readonly CallDocument[], parent: CallNode | undefined): CallNode[] {
  const depth = parent === undefined ? 0 : parent.depth + 1
  return calls.map((call, index) => ({ call, depth, parent, children: [], isLast: index === calls.length - 1 }))
}

/** `agent::method target`, the name people know a call by. */
export function nameOf(call: CallDocument): string {
  const name = `${call.agent}::${call.method}`
  return call.target === undefined ? name : `${name} ${call.target}`
}

/** Why a call failed, in one line. */
export function errorLine(call: CallDocument): string {
  const { code, message = 'failed', data, type } = call.error ?? {}
  const reason = (data as { reason?: unknown } | null | undefined)?.reason
  const label = [code, typeof reason === 'string' ? reason : type].filter((part) => part !== undefined).join(' ')
  return label === '' ? message : `${label}: ${message}`
}

export interface Span {
  readonly startMs: number
  readonly endMs: number
}

/** From the first start to the last end; an open call lasts as long as anything else is known. */
export function extentOf(calls: readonly CallDocument[]): Span {
  let startMs = Number.POSITIVE_INFINITY
  let endMs = 0
  for (const call of calls) {
    const at = Date.parse(call.started_at)
    startMs = Math.min(startMs, at)
    endMs = Math.max(endMs, at + (call.duration_ms ?? 0))
  }
  return calls.length === 0 ? { startMs: 0, endMs: 0 } : { startMs, endMs }
}
