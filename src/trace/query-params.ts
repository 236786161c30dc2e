/**
 * Reads the parameters of trace queries, and refuses what it does not understand with a fault that says what is allowed.
 */
import type { TraceStatus } from './document.ts'

/** Which traces are seen at all; left out: every one. */
export interface TraceScope {
  /** Only those all calls of which are this principal's. */
  readonly onlyCaller?: string
  /** Only those that call none but these agents. */
  readonly onlyAgents?: readonly string[]
}

export interface ListFilter extends TraceScope {
  readonly agent?: string
  readonly method?: string
  readonly protocol?: string
  /** A principal. */
  readonly caller?: string
  readonly status?: TraceStatus
  /** How their ids begin. */
  readonly prefix?: string
  /** Is in the id, or in an agent, a method or a target of one of its calls; letters of both cases are the same. */
  readonly text?: string
  /** They took so long at least; open ones until now. */
  readonly minMs?: number
  readonly sinceMs?: number
  readonly untilMs?: number
  readonly limit: number
  /** Only traces seen before this one. */
  readonly before?: number
}

export interface TimeRange extends TraceScope {
  readonly sinceMs?: number
  readonly untilMs?: number
}

/** What a query is refused with: the fields of a JSON-RPC error. */
export interface QueryFault {
  readonly code: number
  readonly message: string
  readonly data: { readonly reason: string; readonly [detail: string]: unknown }
}

export type Read<T> = { readonly value: T } | { readonly fault: QueryFault }

export const DEFAULT_LIST_LIMIT = 50
export const MAX_LIST_LIMIT = 1_000
const MAX_TEXT = 256
/** The subject of a token is part of a caller. */
const MAX_CALLER = 16_384
const CURSOR = 'the next_cursor of an earlier answer'

/** A call's status is accepted for its trace's: people think in both. */
const STATUSES = new Map<unknown, TraceStatus>([
  ['active', 'active'],
  ['pending', 'active'],
  ['error', 'error'],
  ['completed', 'completed'],
  ['ok', 'completed'],
])

type Reader = (value: unknown) => unknown
const REFUSED = Symbol('refused')

const READERS: Record<string, { to: string; read: Reader; allowed: string }> = {
  agent: { to: 'agent', read: readText, allowed: 'a name' },
  method: { to: 'method', read: readText, allowed: 'a method name' },
  protocol: { to: 'protocol', read: readText, allowed: 'aio, acp or mcp' },
  prefix: { to: 'prefix', read: readText, allowed: 'the beginning of the id of a trace' },
  caller: { to: 'caller', read: readText, allowed: 'the name of a principal' },
  only_caller: {
    to: 'onlyCaller',
    read: (value) => (typeof value === 'string' && value.length <= MAX_CALLER ? value : REFUSED),
    allowed: 'the name of a principal',
  },
  only_agents: {
    to: 'onlyAgents',
    read: (value) => (Array.isArray(value) && value.every((name) => typeof name === 'string') ? value : REFUSED),
    allowed: 'a list of names',
  },
  status: {
    to: 'status',
    read: (value) => STATUSES.get(value) ?? REFUSED,
    allowed: 'active, error or completed',
  },
  text: { to: 'text', read: readText, allowed: 'a part of an id, an agent, a method or a target' },
  min_ms: {
    to: 'minMs',
    read: (value) => (typeof value === 'number' && value >= 0 ? value : REFUSED),
    allowed: 'a number of milliseconds',
  },
  call: { to: 'call', read: (value) => (isCount(value) ? value : REFUSED), allowed: 'the id of a call' },
  payloads: {
    to: 'payloads',
    read: (value) => (typeof value === 'boolean' ? value : REFUSED),
    allowed: 'true or false',
  },
  since: { to: 'sinceMs', read: readTime, allowed: 'an ISO 8601 time or milliseconds since 1970' },
  until: { to: 'untilMs', read: readTime, allowed: 'an ISO 8601 time or milliseconds since 1970' },
  limit: {
    to: 'limit',
    read: (value) => (isCount(value) && value <= MAX_LIST_LIMIT ? value : REFUSED),
    allowed: `an integer from 1 to ${MAX_LIST_LIMIT}`,
  },
  cursor: {
    to: 'before',
    read: (value) => (typeof value === 'string' && /^[1-9][0-9]{0,15}$/.test(value) ? Number(value) : REFUSED),
    allowed: CURSOR,
  },
}

const SCOPE_KEYS = ['only_caller', 'only_agents']
const LIST_KEYS = [
  'agent',
  'method',
  'protocol',
  'caller',
  'status',
  'prefix',
  'text',
  'min_ms',
  'since',
  'until',
  'limit',
  'cursor',
  ...SCOPE_KEYS,
]
const RANGE_KEYS = ['since', 'until', ...SCOPE_KEYS]
const PART_KEYS = ['limit', 'cursor', 'call', 'payloads', ...SCOPE_KEYS]

export function readListFilter(params: unknown): Read<ListFilter> {
  const read = readKeys(params, LIST_KEYS)
  if ('fault' in read) return read
  return { value: { limit: DEFAULT_LIST_LIMIT, ...read.value } }
}

export function readTimeRange(params: unknown): Read<TimeRange> {
  return readKeys(params, RANGE_KEYS)
}

/** A part of a trace: its calls in order of start, after the one that ended the part before. */
export interface TracePart extends TraceScope {
  readonly traceId: string
  readonly limit: number
  /** The id of the last call of an earlier part. */
  readonly after?: number
  /** This call alone. */
  readonly call?: number
  /** False: calls without what they carried. */
  readonly payloads?: boolean
}

export function readTracePart(params: unknown): Read<TracePart> {
  const traceId = (params as { trace_id?: unknown } | null | undefined)?.trace_id
  if (typeof traceId !== 'string') return badParam('trace_id', 'the id of a trace')
  const read = readKeys(params, PART_KEYS) as Read<TraceScope & { before?: number; limit?: number }>
  if ('fault' in read) return read
  const { before: after, limit = MAX_LIST_LIMIT, ...scope } = read.value
  return { value: { traceId, limit, ...scope, ...(after === undefined ? {} : { after }) } }
}

export function badCursor(): { fault: QueryFault } {
  return badParam('cursor', CURSOR)
}

export function badParam(param: string, allowed: string): { fault: QueryFault } {
  return {
    fault: {
      code: -32602,
      message: `"${param}" must be ${allowed}`,
      data: { reason: 'bad_param', param },
    },
  }
}

export function unknownTrace(given: string): { fault: QueryFault } {
  const traceId = given.slice(0, MAX_TEXT)
  return {
    fault: {
      code: -32602,
      message: `There is no trace "${traceId}" here; it may be older than the retention`,
      data: { reason: 'unknown_trace', trace_id: traceId },
    },
  }
}

export function unknownCall(call: number): { fault: QueryFault } {
  const message = `The trace has no call of the id ${call}`
  return { fault: { code: -32602, message, data: { reason: 'unknown_call', call } } }
}

/** Keys that are not asked for are left alone: an AIO caller may add `_meta` to anything. */
function readKeys(params: unknown, keys: readonly string[]): Read<Record<string, never>> {
  const given = (params ?? {}) as Record<string, unknown>
  if (typeof given !== 'object' || Array.isArray(given)) return badParam('params', 'an object')
  const value: Record<string, unknown> = {}
  for (const key of keys) {
    const reader = READERS[key]
    if (reader === undefined || given[key] === undefined || given[key] === null) continue
    const read = reader.read(given[key])
    if (read === REFUSED) return badParam(key, reader.allowed)
    value[reader.to] = read
  }
  return { value: value as Record<string, never> }
}

function readText(value: unknown): unknown {
  return typeof value === 'string' && value.length > 0 && value.length <= MAX_TEXT ? value : REFUSED
}

function readTime(value: unknown): unknown {
  if (typeof value === 'number' && Number.isFinite(value)) return value
  const ms = typeof value === 'string' && /^\d{4}-\d\d-\d\d/.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(ms) ? REFUSED : ms
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1
}
