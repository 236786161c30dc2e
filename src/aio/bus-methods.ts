/**
 * The methods of the bus itself, one row each: `bus::help`, `bus::agents.list`, `bus::trace.new`, `bus::traces.*`.
 *
 * They are neither traced nor counted. Queries show what others said and are answered on local doors only, unless the
 * configuration allows more; their parameters are checked by whoever answers them.
 */
import { JsonText } from '../wire/ready-json.ts'
import type { NamedAgent } from './agent-spec.ts'
import { MODALITIES } from './agent-spec.ts'
import type { Answer } from './answers.ts'
import { fault } from './faults.ts'
import { NO_MODULES } from './help.ts'
import { type JsonObject, objectOr } from './json-object.ts'
import { BUS, HELP, joinName } from './names.ts'
import type { Caller, TraceIds, TraceQueries } from './port.ts'

export interface BusContext {
  readonly agents: ReadonlyMap<string, NamedAgent>
  readonly ids: TraceIds
  readonly queries: TraceQueries
  readonly remoteQueries: boolean
  readonly workers: (agent: NamedAgent) => number
  readonly broke: (error: unknown) => void
  /** A program at the caller's connection becomes an agent, or is one no more (contract 13.18). */
  readonly register: (params: unknown) => Answer
  readonly unregister: (params: unknown) => Answer
}

type Row = (context: BusContext, params: unknown) => Answer | Promise<Answer>

const query =
  (method: Parameters<TraceQueries['query']>[0]): Row =>
  async (context, params) => {
    const answer = await context.queries.query(method, params)
    return 'fault' in answer ? { error: answer.fault } : { result: new JsonText(answer.text) }
  }

const ROWS: ReadonlyMap<string, Row> = new Map<string, Row>([
  [HELP, (context) => ({ result: describeBus(context) })],
  [
    'agents.list',
    (context) => ({ result: { agents: [...context.agents.values()].map((agent) => list(context, agent)) } }),
  ],
  ['agents.register', (context, params) => context.register(params)],
  ['agents.unregister', (context, params) => context.unregister(params)],
  ['trace.new', (context) => ({ result: { trace_id: context.ids.issue() } })],
  ['traces.list', query('list')],
  ['traces.get', query('get')],
  ['traces.stats', query('stats')],
  ['traces.export', query('export')],
])

const QUERIES = 'traces.'

export const BUS_METHODS: readonly string[] = [...ROWS.keys()]

/** The answer to a method of the bus; never rejects. */
export async function answerBus(context: BusContext, caller: Caller, method: string, params: unknown): Promise<Answer> {
  const row = ROWS.get(method)
  if (row === undefined) return { error: fault('unknown_method', { agent: BUS, method, methods: BUS_METHODS }) }
  const scope = caller.permissions?.traceScope
  const isQuery = method.startsWith(QUERIES)
  if (isQuery && scope === undefined && !context.remoteQueries && !isLocal(caller)) {
    return { error: fault('remote_queries_off', { method: joinName(BUS, method) }) }
  }
  try {
    return await row(context, isQuery && scope !== undefined ? { ...objectOr(params), ...scope } : params)
  } catch (error) {
    context.broke(error)
    return { error: fault('trace_query_failed') }
  }
}

/** A worker is no door: what it may know of others is what it is asked. */
function isLocal(caller: Caller): boolean {
  return caller.kind === 'client' && caller.isLocal === true
}

function describeBus(context: BusContext): JsonObject {
  return { type: 'stdio', methods: BUS_METHODS, modalities: [], mcp: NO_MODULES, agents: [...context.agents.keys()] }
}

function list(context: BusContext, agent: NamedAgent): JsonObject {
  const { name, type, modalities = MODALITIES } = agent
  return { name, type, modalities, workers: context.workers(agent) }
}
