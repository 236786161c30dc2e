/**
 * Traces for whoever may see them (contract 15.9, 15.18): a list, a trace without its payloads, one call with them, exports.
 *
 * The store answers; here is only whose traces are seen, and how much is told at once.
 */
import { type ApiCall, ApiError, type ApiRoute, badParameter, limitOf, notFound, ROLES } from './api-call.ts'
import type { ConsolePort, TraceQuery } from './port.ts'

const MAX_CALLS = 10_000
/** Without payloads, an error is a line. */
const MAX_MESSAGE = 500
const TEXTS = ['agent', 'method', 'status', 'caller', 'prefix', 'text', 'cursor'] as const
/** How a trace leaves; the drawing is the bus's own. */
export interface TraceFormat {
  readonly type: string
  readonly ending: string
  readonly write: (ask: TraceQuery, id: string) => Promise<string>
}

interface Call {
  readonly id: number
  readonly error?: CallFault
  readonly [key: string]: unknown
}

interface CallFault {
  readonly message?: string
  readonly data?: { readonly reason?: unknown } | null
}

interface Trace {
  readonly n_calls: number
  readonly calls: readonly Call[]
  readonly next_cursor?: string
  readonly [key: string]: unknown
}

export function traceRoutes(port: ConsolePort): ApiRoute[] {
  const query = (call: ApiCall): TraceQuery => {
    const ask = port.traces(call.admitted.identity)
    if (ask !== undefined) return ask
    throw new ApiError(
      404,
      'no_traces',
      'This bus keeps no traces: give its configuration "aio", or a pool "trace": true.',
    )
  }
  return [
    { method: 'GET', path: ['traces'], roles: ROLES.all, serve: (call) => list(query(call), call) },
    { method: 'GET', path: ['traces', '*'], roles: ROLES.all, serve: (call) => one(query(call), call.parts[0]!) },
    {
      method: 'GET',
      path: ['traces', '*', 'calls', '*'],
      roles: ROLES.all,
      serve: (call) => oneCall(query(call), call),
    },
    {
      method: 'GET',
      path: ['traces', '*', 'export'],
      roles: ROLES.all,
      serve: (call) => exportOne(query(call), port.traceFormats, call),
    },
  ]
}

async function list(ask: TraceQuery, { query }: ApiCall): Promise<unknown> {
  const texts = Object.fromEntries(TEXTS.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : [])))
  const page = (await ask('list', { ...texts, ...timesOf(query), limit: limitOf(query) })) as {
    traces: readonly unknown[]
    next_cursor?: string
  }
  const { traces: items, ...more } = page
  return { items, ...more }
}

/** What is a number, or may be one. */
function timesOf(query: URLSearchParams): { since?: string | number; min_ms?: number } {
  const since = query.get('since')
  const minMs = query.get('min_ms')
  if (minMs && !Number.isFinite(Number(minMs))) throw badParameter('min_ms is a number of milliseconds.')
  return {
    ...(since ? { since: /^\d{6,}$/.test(since) ? Number(since) : since } : {}),
    ...(minMs ? { min_ms: Number(minMs) } : {}),
  }
}

/** Without what was said: that is asked for call by call. */
async function one(ask: TraceQuery, id: string): Promise<unknown> {
  const calls: Call[] = []
  let head: { readonly n_calls: number } | undefined
  let cursor: string | undefined
  do {
    const params = { trace_id: id, payloads: false, ...(cursor === undefined ? {} : { cursor }) }
    const { calls: more, next_cursor: next, ...rest } = (await ask('get', params)) as Trace
    head ??= rest
    for (const call of more) calls.push(call)
    cursor = next
  } while (cursor !== undefined && calls.length < MAX_CALLS)
  const told = calls.slice(0, MAX_CALLS)
  const leftOff = Math.max(0, head.n_calls - told.length)
  return { ...head, calls: told.map(inShort), ...(leftOff > 0 ? { left_off: leftOff } : {}) }
}

function inShort({ input: _input, output: _output, error, ...call }: Call): object {
  if (error === undefined) return call
  const { data, message = '', ...rest } = error
  const reason = data?.reason === undefined ? {} : { data: { reason: data.reason } }
  return { ...call, error: { ...rest, message: message.slice(0, MAX_MESSAGE), ...reason } }
}

async function oneCall(ask: TraceQuery, { parts: [id = '', number = ''] }: ApiCall): Promise<unknown> {
  if (!/^[1-9]\d{0,15}$/.test(number)) throw notFound('call of this number')
  const { calls } = (await ask('get', { trace_id: id, call: Number(number) })) as Trace
  return calls[0]
}

async function exportOne(
  ask: TraceQuery,
  formats: ConsolePort['traceFormats'],
  { web, query, parts: [id = ''] }: ApiCall,
): Promise<void> {
  const name = query.get('format') ?? 'aio'
  const format = Object.hasOwn(formats, name) ? formats[name] : undefined
  if (format === undefined) throw badParameter('format is aio, otlp or svg.')
  const text = await format.write(ask, id)
  const file = `trace-${id.replace(/[^\w.-]/g, '_')}.${format.ending}`
  web.answer(200, text, {
    'content-type': format.type,
    'content-disposition': `attachment; filename="${file}"`,
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  })
}
