/**
 * `/api/`: what the console shows and does, as JSON (contract 15.1 to 15.5, 15.18).
 *
 * It finds out who calls, whether a write is the page's own, and which row of the table serves it; the rows are elsewhere. A GET
 * changes nothing. No answer holds a credential.
 */
import { isLoopbackHost, readTcpAddress } from '../../host/address.ts'
import { readLine } from '../../web/body.ts'
import { bearerOf } from '../../web/credential.ts'
import type { Admitted } from '../../web/port.ts'
import type { Adapter } from '../../web/service.ts'
import type { WebRequest } from '../../web/web-request.ts'
import { type ApiCall, ApiError, type ApiRoute } from './api-call.ts'
import type { Login, Logins } from './logins.ts'
import type { ConsolePort } from './port.ts'

const MAX_BODY_BYTES = 1024 * 1024
const CSRF_HEADER = 'x-csrf-token'

export interface ApiOptions {
  readonly port: ConsolePort
  readonly logins: Logins
  readonly routes: readonly ApiRoute[]
  readonly publicUrl: string | undefined
  readonly failed: (error: unknown) => void
}

export class ApiAdapter implements Adapter {
  readonly methods = ['GET', 'POST', 'DELETE']
  readonly isRealm = true
  readonly #options: ApiOptions

  constructor(options: ApiOptions) {
    this.#options = options
  }

  /** What the door refuses is told like everything here; a write of another page is one that could have been forged. */
  phrase(web: WebRequest, reason: string, message: string): string {
    const isForged = reason === 'wrong_origin' && web.method !== 'GET' && cookieOf(web) !== undefined
    return JSON.stringify({ error: { reason: isForged ? 'bad_csrf' : reason, message } })
  }

  async serve(web: WebRequest): Promise<void> {
    try {
      if (isExposed(web, this.#options.publicUrl)) throw TLS_REQUIRED
      const route = this.#find(web)
      const call = isLogin(route) ? await this.#strangersCall(web) : await this.#callOf(web, route)
      const answer = await route.serve(call)
      if (answer !== undefined) web.answer(200, JSON.stringify(answer))
    } catch (error) {
      this.#fail(web, error)
    }
  }

  /** Who has logged in, by the cookie of a request. */
  loggedIn(web: WebRequest): Login | undefined {
    const secret = cookieOf(web)
    return secret === undefined ? undefined : this.#options.logins.find(secret)
  }

  #find(web: WebRequest): ApiRoute {
    const parts = (web.segments ?? []).slice(1)
    const fitting = this.#options.routes.filter(({ path }) => fits(path, parts))
    if (fitting.length === 0) throw new ApiError(404, 'not_found', 'There is nothing at this path.')
    const route = fitting.find(({ method }) => method === web.method)
    if (route !== undefined) return route
    web.setHeaders({ allow: fitting.map(({ method }) => method).join(', ') })
    throw new ApiError(405, 'wrong_method', 'This path does not take this method; see Allow.')
  }

  async #strangersCall(web: WebRequest): Promise<ApiCall> {
    return { ...this.#about(web, []), admitted: undefined as never, login: undefined, body: await readBody(web) }
  }

  async #callOf(web: WebRequest, route: ApiRoute): Promise<ApiCall> {
    const caller = await this.#identify(web)
    if (!route.roles.includes(caller.admitted.identity.rights.role))
      throw new ApiError(403, 'not_allowed', 'Your role may not do this.')
    if (route.method === 'GET') return { ...this.#about(web, route.path), ...caller, body: {} }
    if (caller.login !== undefined && web.header(CSRF_HEADER) !== caller.login.csrf)
      throw new ApiError(403, 'bad_csrf', 'A write needs the X-CSRF-Token that /api/me gives.')
    if (caller.login !== undefined && route.method === 'POST' && !isJson(web))
      throw new ApiError(403, 'bad_csrf', 'A write says that it is JSON: Content-Type: application/json.')
    const body = route.method === 'POST' ? await readBody(web) : {}
    return { ...this.#about(web, route.path), ...caller, body }
  }

  #about(web: WebRequest, path: readonly string[]): Pick<ApiCall, 'web' | 'parts' | 'query' | 'isSecure'> {
    const parts = (web.segments ?? []).slice(1)
    const isSecure = isPrivate(web, this.#options.publicUrl)
    return { web, query: web.query, isSecure, parts: parts.filter((_, index) => path[index] === '*') }
  }

  async #identify(web: WebRequest): Promise<{ admitted: Admitted; login: Login | undefined }> {
    const token = bearerOf(web.header('authorization'))
    if (token !== undefined) return { admitted: await this.#judge(token, web), login: undefined }
    const login = this.loggedIn(web)
    if (login === undefined) throw new ApiError(401, 'unauthenticated', 'Log in first: stdio-bus console prints how.')
    return { admitted: login.admitted, login }
  }

  async #judge(token: string, web: WebRequest): Promise<Admitted> {
    const judged = await this.#options.port.judge(token, web)
    if (judged !== undefined && 'identity' in judged) return judged
    throw new ApiError(judged?.status ?? 401, judged?.reason ?? 'unauthenticated', 'The token does not hold.')
  }

  #fail(web: WebRequest, error: unknown): void {
    const told = toldOf(error)
    if (told === undefined) this.#options.failed(error)
    const { status, reason, message } = told ?? OWN_FAILURE
    web.answer(status, JSON.stringify({ error: { reason, message } }), status === 401 ? CHALLENGE : {})
  }
}

/** A store refuses a question in its own words: what is unknown is not there, what is bad is the asker's. */
function toldOf(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error
  const { fault } = error as { fault?: { message: string; data: { reason: string } } }
  if (fault === undefined) return undefined
  const status = fault.data.reason.startsWith('unknown') ? 404 : 400
  return new ApiError(status, fault.data.reason, fault.message)
}

const CHALLENGE = { 'www-authenticate': 'Bearer realm="stdio-bus"' }
const OWN_FAILURE = {
  status: 500,
  reason: 'internal_error',
  message: 'The bus failed to answer this; its log says why.',
}
const TLS_REQUIRED = new ApiError(
  403,
  'tls_required',
  'Others can reach this door: give it a certificate, or an https public_url behind a proxy.',
)

/** It came by TLS: to this door, or to the proxy before it. */
function isPrivate({ connection }: Pick<WebRequest, 'connection'>, publicUrl: string | undefined): boolean {
  return connection.isSecure || publicUrl?.startsWith('https:') === true
}

/** Others could listen in: passwords do not travel in plain (contract 15.1). */
export function isExposed({ connection }: WebRequest, publicUrl: string | undefined): boolean {
  if (isPrivate({ connection }, publicUrl)) return false
  const address = readTcpAddress(connection.listener.replace(/^[a-z]+:/, ''))
  return typeof address !== 'object' || !isLoopbackHost(address.host)
}

export function cookieName(web: WebRequest): string {
  return `stdio_bus_${web.request.socket.localPort ?? 0}`
}

function cookieOf(web: WebRequest): string | undefined {
  const name = `${cookieName(web)}=`
  const found = (web.header('cookie') ?? '')
    .split(';')
    .map((each) => each.trim())
    .find((each) => each.startsWith(name))
  return found?.slice(name.length)
}

function isLogin({ path }: ApiRoute): boolean {
  return path.length === 1 && path[0] === 'login'
}

function fits(path: readonly string[], parts: readonly string[]): boolean {
  return path.length === parts.length && path.every((part, index) => part === '*' || part === parts[index])
}

function isJson(web: WebRequest): boolean {
  return /^application\/json\s*(?:;|$)/i.test(web.header('content-type') ?? '')
}

async function readBody(web: WebRequest): Promise<Record<string, unknown>> {
  const line = await readLine(web, MAX_BODY_BYTES)
  if ('refusal' in line) {
    const status =
      line.refusal.reason === 'message_too_large' ? 413 : line.refusal.reason === 'wrong_media_type' ? 415 : 400
    throw new ApiError(status, line.refusal.reason, 'The body must be a JSON object of at most 1 MiB.')
  }
  const value = parse(line)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ApiError(400, 'not_json', 'The body must be a JSON object.')
  return value as Record<string, unknown>
}

function parse(line: Buffer): unknown {
  try {
    return JSON.parse(line.utf8Slice())
  } catch {
    return undefined
  }
}
