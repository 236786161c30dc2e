/**
 * A trace as all nodes together have it, for whoever asks for one (contract 14.10): at the control socket, or at a door.
 *
 * Only the whole of a trace is put together; a part of it (a page, a call) is that of this node. Who may not see everything is
 * told of another node's part only if all of it may be seen, as of its own.
 */

import type { TraceDocument } from '../../trace/document.ts'
import { exportMerged } from '../../trace/export-merged.ts'
import type { OtlpOptions } from '../../trace/export-otlp.ts'
import { mergeTraces, type NodeTrace } from '../../trace/merge-traces.ts'

export interface TraceNodes {
  readonly node: string
  readonly otlp: OtlpOptions
  /** What this node has of the trace, as far as the scope lets it be seen. */
  own(traceId: string, scope: object): Promise<TraceDocument | undefined>
  others(traceId: string): Promise<{ readonly told: readonly NodeTrace[]; readonly missing: readonly string[] }>
}

/** JSON; undefined: it is no question for all, or nobody has the trace. */
export type AskNodes = (method: string, params: unknown) => Promise<string | undefined>

const WHOLE: ReadonlySet<string> = new Set(['trace_id', 'format', 'only_caller', 'only_agents'])

export async function askNodes(nodes: TraceNodes, method: string, params: unknown): Promise<string | undefined> {
  if ((method !== 'get' && method !== 'export') || typeof params !== 'object' || params === null) return undefined
  const { trace_id: traceId, format, ...scope } = params as Record<string, unknown>
  if (typeof traceId !== 'string' || !Object.keys(params).every((key) => WHOLE.has(key))) return undefined
  const [own, { told, missing }] = await Promise.all([nodes.own(traceId, scope), nodes.others(traceId)])
  const seen = told.filter(({ document }) => document === undefined || isSeen(document, scope))
  const merged = mergeTraces([{ node: nodes.node, document: own }, ...seen], missing)
  const written = merged && exportMerged(merged, method === 'get' ? undefined : format, nodes.otlp)
  return written === undefined ? undefined : JSON.stringify(written)
}

function isSeen(
  { calls }: TraceDocument,
  { only_caller: caller, only_agents: agents }: Record<string, unknown>,
): boolean {
  if (caller !== undefined) return calls.every((call) => call.caller?.principal === caller)
  return agents === undefined || calls.every(({ agent }) => (agents as readonly string[]).includes(agent))
}
