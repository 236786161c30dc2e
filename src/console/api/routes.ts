/** The table of the API but for logins: what is looked at and done, and by whom (contract 15.18). */
import { FIXED } from '../../kernel/limits.ts'
import type { SpanCounts } from '../../kernel/traffic.ts'
import {
  type ApiCall,
  ApiError,
  type ApiRoute,
  badParameter,
  countOf,
  limitOf,
  maySee,
  notFound,
  ROLES,
} from './api-call.ts'
import type { Feed } from './feed.ts'
import type { LogLines } from './log-lines.ts'
import type { Overview } from './overview.ts'
import type { ConsolePort } from './port.ts'

export interface Looks {
  readonly overview: Overview
  readonly logs: LogLines
  readonly feed: Feed
}

export function busRoutes(port: ConsolePort, { overview, logs, feed }: Looks): ApiRoute[] {
  const history = (call: ApiCall): unknown => {
    const pool = call.query.get('pool')
    const asked = pool === null ? port.pools().filter((id) => maySee(call, id)) : [visiblePool(port, call, pool)]
    return { span_ms: SPAN_MS, pools: Object.fromEntries(asked.map((id) => [id, port.history(id).map(spanOf)])) }
  }
  const restart = (call: ApiCall): unknown => {
    const [pool = '', worker = ''] = call.parts
    const id = countOf(worker)
    if (id === undefined || !port.status().workers.some((each) => each.pool === pool && each.id === id))
      throw notFound('worker of this number')
    port.restart(id)
    port.audit(call.admitted.identity, `restart ${pool}.${id}`, 'ok')
    return {}
  }
  return [
    { method: 'GET', path: ['overview'], roles: ROLES.lookers, serve: (call) => overview.take(call) },
    { method: 'GET', path: ['history'], roles: ROLES.lookers, serve: history },
    { method: 'GET', path: ['logs'], roles: ROLES.lookers, serve: (call) => logs.page(call, limitOf(call.query)) },
    { method: 'GET', path: ['events'], roles: ROLES.all, serve: (call) => feed.serve(call) },
    { method: 'POST', path: ['reload'], roles: ROLES.admin, serve: (call) => reload(port, call) },
    { method: 'POST', path: ['workers', '*', '*', 'restart'], roles: ROLES.admin, serve: restart },
  ]
}

const { trafficSpanMs: SPAN_MS } = FIXED

function spanOf({ atMs, requests, errors, p50Ms, p95Ms, p99Ms }: SpanCounts): unknown {
  return { at: new Date(atMs).toISOString(), requests, errors, p50_ms: p50Ms, p95_ms: p95Ms, p99_ms: p99Ms }
}

async function reload(port: ConsolePort, { admitted }: ApiCall): Promise<unknown> {
  try {
    const result = await port.reload()
    port.audit(admitted.identity, 'reload', 'ok')
    return result
  } catch (error) {
    port.audit(admitted.identity, 'reload', 'refused')
    throw new ApiError(409, 'reload_refused', (error as Error).message)
  }
}

function visiblePool(port: ConsolePort, call: ApiCall, pool: string): string {
  if (pool.length > 256) throw badParameter('pool is the id of a pool.')
  if (!port.pools().includes(pool) || !maySee(call, pool)) throw notFound('pool of this name')
  return pool
}
