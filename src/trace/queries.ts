/**
 * Questions to a store in the shape its callers know: values back, undefined for a trace that is not there.
 *
 * What cannot be understood is a `QueryRefusal`, which carries the error to answer with.
 */
import type { Answer, QueryMethod } from './query.ts'
import type { QueryFault } from './query-params.ts'

export class QueryRefusal extends Error {
  readonly fault: QueryFault
  readonly data: QueryFault['data']

  constructor(fault: QueryFault) {
    super(fault.message)
    this.fault = fault
    this.data = fault.data
  }
}

/** Anything that answers trace queries: a store, or a database file that is only read. */
export interface Askable {
  query(method: QueryMethod, params: unknown): Promise<Answer>
}

export interface TraceQueries {
  list(filter: Record<string, unknown>): Promise<unknown>
  /** undefined: no such trace. */
  get(traceId: string): Promise<unknown>
  stats(range: Record<string, unknown>): Promise<unknown>
  /** undefined: no such trace. */
  export(traceId: string, format: 'aio' | 'otlp-json'): Promise<unknown>
}

export function traceQueries(store: Askable): TraceQueries {
  const ask = async (method: QueryMethod, params: unknown): Promise<unknown> =>
    readAnswer(await store.query(method, params))
  return {
    list: (filter) => ask('list', filter),
    get: (traceId) => ask('get', { trace_id: traceId }),
    stats: (range) => ask('stats', range),
    export: (traceId, format) => ask('export', { trace_id: traceId, format }),
  }
}

function readAnswer(answer: Answer): unknown {
  if ('text' in answer) return JSON.parse(answer.text)
  if (answer.fault.data.reason === 'unknown_trace') return undefined
  throw new QueryRefusal(answer.fault)
}
