/**
 * An MCP server at a URL, as the adapter of MCP agents sees its workers (contract 13.17).
 *
 * One connection serves all callers: opened by the first call, introduced once, opened again when it was lost. How HTTP is
 * spoken, and that a lost session is followed by another, is the business of whoever opens it. What fails there is told in
 * the words of agents. The headers it is sent come back in nothing that the server says.
 */
import { CODE } from '../wire/jsonrpc.ts'
import type { UrlAgent } from './agent-spec.ts'
import { type ReadJson, readerFor } from './echoed-secrets.ts'
import { fault } from './faults.ts'
import { isObject, type JsonObject, objectOr } from './json-object.ts'
import { after } from './later.ts'
import type {
  ErrorBody,
  Exchange,
  ExchangeListener,
  GatewayPort,
  OpenUpstream,
  UpstreamLines,
  UpstreamNews,
} from './port.ts'

/** What the adapter of MCP agents needs of the bus. */
export type McpPort = Pick<GatewayPort, 'request' | 'finish' | 'handshake'>

const INTRODUCTION_MS = 30_000
const MODERN = 'io.modelcontextprotocol/'
const CLIENT = { name: 'stdio-bus', version: '0.1.0' }
const GREETING = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: CLIENT }
const DISCOVERY = { _meta: { [`${MODERN}protocolVersion`]: '2026-07-28', [`${MODERN}clientCapabilities`]: {} } }
const NO_METHOD = { code: CODE.methodNotFound, message: 'The caller of an agent answers no questions' }

interface OpenRequest {
  readonly listener: ExchangeListener
  readonly token: unknown
}

class UrlFailure extends Error {
  readonly body: ErrorBody

  constructor(body: ErrorBody) {
    super(body.message)
    this.body = body
  }
}

export class UrlServer implements McpPort {
  readonly #agent: UrlAgent
  readonly #port: GatewayPort
  readonly #openUpstream: OpenUpstream
  readonly #readJson: ReadJson
  readonly #open = new Map<unknown, OpenRequest>()
  #lines: UpstreamLines | undefined
  #hello: Promise<JsonObject> | undefined
  #lastId = 0
  #isRetiring = false

  constructor(agent: UrlAgent, port: GatewayPort, openUpstream: OpenUpstream) {
    this.#agent = agent
    this.#port = port
    this.#openUpstream = openUpstream
    this.#readJson = readerFor({ endpoint: agent.url, headers: agent.headers ?? {} })
  }

  handshake(): Promise<JsonObject> {
    if (this.#hello !== undefined) return this.#hello
    const hello = this.#introduce()
    this.#hello = hello
    hello.catch(() => {
      if (this.#hello === hello) this.#hang()
    })
    return hello
  }

  request(
    _pool: string,
    { method, params }: { method: string; params?: unknown },
    _options: unknown,
    listener: ExchangeListener,
  ): Exchange {
    let id: number | undefined
    let isCancelled = false
    this.handshake().then(
      () => {
        if (isCancelled) return
        id = this.#send(method, params, listener)
        listener.sent(null)
      },
      (error) => listener.failed(faultOf(this.#agent.name, error)),
    )
    const cancel = (): void => {
      isCancelled = true
      if (id === undefined || !this.#open.delete(id)) return
      this.#say({ method: 'notifications/cancelled', params: { requestId: id } })
      this.#maybeHang()
    }
    return { cancel }
  }

  /** What was answered is not open any more: nothing is left to do. */
  finish(): void {}

  /** It is no agent any more: what is open ends first. */
  retire(): void {
    this.#isRetiring = true
    this.#maybeHang()
  }

  close(): void {
    this.#hang()
  }

  #maybeHang(): void {
    if (this.#isRetiring && this.#open.size === 0) this.#hang()
  }

  #hang(): void {
    const lines = this.#lines
    this.#lines = undefined
    this.#hello = undefined
    lines?.close()
    this.#fail({ code: CODE.internalError, message: 'The connection was closed', data: { reason: 'worker_exited' } })
  }

  async #introduce(): Promise<JsonObject> {
    const { url, headers = {}, maxReplyBytes } = this.#agent
    this.#lines = await this.#openUpstream({ url, headers, maxMessageBytes: maxReplyBytes }, (what) => this.#hear(what))
    const greeted = await this.#ask('initialize', GREETING)
    if ('result' in greeted) {
      this.#say({ method: 'notifications/initialized' })
      return objectOr(greeted.result)
    }
    if (isFinal(greeted.error)) throw new UrlFailure(greeted.error)
    const discovered = await this.#ask('server/discover', DISCOVERY)
    if ('result' in discovered) return objectOr(discovered.result)
    const cause = 'it does not speak MCP'
    throw new UrlFailure(fault('agent_invalid_response', { agent: this.#agent.name, cause }))
  }

  /** A question of the introduction, which has its time. */
  #ask(method: string, params: JsonObject): Promise<{ result: unknown } | { error: ErrorBody }> {
    return new Promise((resolve) => {
      const late = fault('agent_unreachable', { agent: this.#agent.name, cause: 'it does not introduce itself' })
      const stopTimer = after(this.#port, INTRODUCTION_MS, () => settle({ error: late }))
      const settle = (answer: { result: unknown } | { error: ErrorBody }): void => {
        stopTimer()
        this.#open.delete(id)
        resolve(answer)
      }
      const id = this.#send(method, params, {
        sent: () => {},
        received: ({ result, error }) =>
          settle(isObject(error) ? { error: error as unknown as ErrorBody } : { result: objectOr(result) }),
        failed: (error) => settle({ error }),
      })
    })
  }

  #send(method: string, params: unknown, listener: ExchangeListener): number {
    const id = ++this.#lastId
    this.#open.set(id, { listener, token: objectOr(objectOr(params)['_meta'])['progressToken'] })
    this.#say({ id, method, params })
    return id
  }

  #say(message: JsonObject): void {
    this.#lines?.send(JSON.stringify({ jsonrpc: '2.0', ...message }))
  }

  /** A line, or why there are no more. */
  #hear(what: UpstreamNews): void {
    if ('line' in what) {
      const message = this.#readJson(what.line.toString())?.json
      if (isObject(message)) this.#receive(message, what.line.length)
      return
    }
    this.#lines = undefined
    this.#hello = undefined
    const { name: agent } = this.#agent
    this.#fail(
      what.isUnauthorized
        ? fault('agent_unauthorized', { agent })
        : fault('agent_unreachable', { agent, cause: what.lost }),
    )
  }

  #receive(message: JsonObject, bytes: number): void {
    const { id, method, params } = message
    if (method === undefined) {
      const open = this.#open.get(id)
      this.#open.delete(id)
      const { error } = message
      if (isObject(error) && isOfTransport(error)) open?.listener.failed(this.#translate(error))
      else open?.listener.received(message, bytes)
      return this.#maybeHang()
    }
    if (typeof id === 'string' || typeof id === 'number')
      return this.#say({ id, ...(method === 'ping' ? { result: {} } : { error: NO_METHOD }) })
    if (method !== 'notifications/progress') return
    const { progressToken } = objectOr(params)
    for (const { listener, token } of this.#open.values())
      if (token !== undefined && token === progressToken) listener.received(message, bytes)
  }

  #fail(error: ErrorBody): void {
    const open = [...this.#open.values()]
    this.#open.clear()
    for (const { listener } of open) listener.failed(isOfTransport(error) ? this.#translate(error) : error)
  }

  #translate({ message, data }: { readonly message?: unknown; readonly data?: unknown }): ErrorBody {
    const { name: agent } = this.#agent
    const { reason, status, why, problem } = objectOr(data)
    const cause = [why, problem, message].find((each) => typeof each === 'string')
    if (reason === 'no_worker' || reason === 'worker_exited') return fault('agent_unreachable', { agent, cause })
    if (reason !== 'upstream_failed') return fault('agent_invalid_response', { agent, cause })
    if (status === 401 || status === 403) return fault('agent_unauthorized', { agent })
    return fault('agent_http_error', { agent, http_status: status })
  }
}

const OF_TRANSPORT: ReadonlySet<unknown> = new Set([
  'no_worker',
  'worker_exited',
  'upstream_failed',
  'upstream_bad_response',
  'upstream_too_large',
])

/** What was said at this end, in the place of the server. */
function isOfTransport(error: object): boolean {
  return OF_TRANSPORT.has(objectOr((error as { data?: unknown }).data)['reason'])
}

/** Another era would not help. A status that is no success may be how a server of the other era says no. */
function isFinal({ data }: ErrorBody): boolean {
  const { reason, http_status: status } = objectOr(data)
  if (reason === 'agent_http_error') return (status as number) >= 500
  return reason === 'agent_unreachable' || reason === 'agent_unauthorized'
}

function faultOf(agent: string, error: unknown): ErrorBody {
  if (error instanceof UrlFailure) return error.body
  const { why, isUnauthorized } = error as { why?: unknown; isUnauthorized?: unknown }
  if (isUnauthorized === true) return fault('agent_unauthorized', { agent })
  return fault('agent_unreachable', { agent, cause: typeof why === 'string' ? why : 'the connection failed' })
}
