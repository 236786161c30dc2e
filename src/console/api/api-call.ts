/** One call of the API: who calls, with what; and the ways for it to fail (contract 15.1, 15.18). */
import { mayUsePool, type Role } from '../../kernel/rights.ts'
import type { Admitted } from '../../web/port.ts'
import type { WebRequest } from '../../web/web-request.ts'
import type { Login } from './logins.ts'

/** A failure that is told to whoever called. */
export class ApiError extends Error {
  readonly status: number
  readonly reason: string

  constructor(status: number, reason: string, message: string) {
    super(message)
    this.status = status
    this.reason = reason
  }
}

export const notFound = (what: string): ApiError => new ApiError(404, 'not_found', `There is no ${what}.`)
export const badParameter = (problem: string): ApiError => new ApiError(400, 'bad_parameter', problem)

export interface ApiCall {
  readonly web: WebRequest
  readonly admitted: Admitted
  /** By cookie; undefined: by a bearer token. */
  readonly login: Login | undefined
  /** The parts of the path that its pattern leaves open. */
  readonly parts: readonly string[]
  readonly query: URLSearchParams
  /** It came by TLS, to this door or to a proxy before it. */
  readonly isSecure: boolean
  /** Of a write: its body as an object. */
  readonly body: Readonly<Record<string, unknown>>
}

const ALL: readonly Role[] = ['user', 'observer', 'admin']
export const ROLES = {
  all: ALL,
  lookers: ['observer', 'admin'] as readonly Role[],
  actors: ['user', 'admin'] as readonly Role[],
  admin: ['admin'] as readonly Role[],
}

/** What a row of the table of the API says of a call. */
export interface ApiRoute {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Parts of the path behind `/api`; `*` is any one. */
  readonly path: readonly string[]
  readonly roles: readonly Role[]
  /** The answer as JSON; undefined: it has answered by itself. */
  serve(call: ApiCall): unknown
}

const MAX_LIMIT = 500

export function limitOf(query: URLSearchParams, fallback = 50): number {
  const text = query.get('limit')
  if (text === null) return fallback
  const limit = countOf(text) ?? 0
  if (limit < 1 || limit > MAX_LIMIT) throw badParameter(`limit is a number from 1 to ${MAX_LIMIT}.`)
  return limit
}

/** A number as the API writes them, in digits; undefined: it is spelled otherwise, or none. */
export function countOf(text: string): number | undefined {
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined
}

/** A part of a list that is there as a whole; the cursor is how many come before it. */
export function pageOf<T>(items: readonly T[], query: URLSearchParams): { items: readonly T[]; next_cursor?: string } {
  const limit = limitOf(query)
  const start = countOf(query.get('cursor') ?? '0')
  if (start === undefined) throw badParameter('cursor is what next_cursor said.')
  const end = start + limit
  const page = items.slice(start, end)
  return end < items.length ? { items: page, next_cursor: String(end) } : { items: page }
}

/** Whether the caller may see what belongs to a pool. */
export function maySee({ admitted }: Pick<ApiCall, 'admitted'>, pool: string): boolean {
  return mayUsePool(admitted.identity.rights, pool)
}
