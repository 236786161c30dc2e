/**
 * One trace out of what several nodes have of it (contract 14.10): the same whoever puts it together.
 *
 * Each call says at which node it was recorded; who was asked and did not answer is named.
 */
import type { CallDocument, TraceDocument, TraceStatus } from './document.ts'

/** What a node has of the trace; undefined: it has nothing of it. */
export interface NodeTrace {
  readonly node: string
  readonly document: TraceDocument | undefined
}

export interface MergedTrace extends TraceDocument {
  calls: (CallDocument & { node: string })[]
  missing_nodes?: readonly string[]
}

/** Undefined: nobody has it. */
export function mergeTraces(told: readonly NodeTrace[], missingNodes: readonly string[]): MergedTrace | undefined {
  const parts = told.flatMap(({ node, document }) => (document === undefined ? [] : [{ node, document }]))
  // Where it began says what it is called elsewhere.
  parts.sort(
    (one, other) => compare(one.document.started_at, other.document.started_at) || compare(one.node, other.node),
  )
  const [first] = parts
  if (first === undefined) return undefined
  const calls = parts.flatMap(({ node, document }) => document.calls.map((call) => ({ ...call, node })))
  calls.sort((one, other) => compare(one.started_at, other.started_at) || one.id - other.id)
  const documents = parts.map(({ document }) => document)
  return {
    ...first.document,
    status: statusOf(documents),
    ended_at: endOf(documents),
    n_calls: documents.reduce((sum, { n_calls }) => sum + n_calls, 0),
    missing: documents.reduce((sum, { missing }) => sum + missing, 0),
    calls,
    ...(missingNodes.length === 0 ? {} : { missing_nodes: [...missingNodes].sort() }),
  }
}

function statusOf(documents: readonly TraceDocument[]): TraceStatus {
  const statuses = documents.map(({ status }) => status)
  if (statuses.includes('active')) return 'active'
  return statuses.includes('error') ? 'error' : 'completed'
}

function endOf(documents: readonly TraceDocument[]): string | null {
  let last = ''
  for (const { ended_at } of documents) {
    if (ended_at === null) return null
    if (ended_at > last) last = ended_at
  }
  return last
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}
