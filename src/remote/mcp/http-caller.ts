/**
 * Sends one HTTP request after the other to an upstream, through a proxy where the environment says so.
 *
 * It follows a redirect within the origin that keeps method and body, and no other (contract 11.5). It judges no status
 * and retries nothing. A failure to connect, in which nothing was sent, is told apart from one that came later.
 */
import { Agent, type Dispatcher, ProxyAgent } from 'undici'
import { dialSocket } from '../../host/dial.ts'
import { MIN_TLS_VERSION, readTlsMaterial } from '../../host/tls-files.ts'
import { LOOP, LOOP_STATUS } from '../../wire/via.ts'
import { explainFailure, isSecure, socketOf, tcpOf } from '../address.ts'
import { RemoteFault } from '../faults.ts'
import { ownHeaders, viaHeader } from '../headers.ts'
import { proxyFor } from '../proxy.ts'
import { BROKEN_OFF, type Upstream, UpstreamFailure, type Via } from '../upstream.ts'

export interface HttpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly signal: AbortSignal
}

type Body = Dispatcher.ResponseData['body']

/** It could not be connected to: nothing was sent. */
export class Unreachable extends UpstreamFailure {}

const MAX_REDIRECTS = 3
const REDIRECTS: ReadonlySet<number> = new Set([307, 308])
/** So many requests may be under way at once, and the streams beside them. */
export const MAX_CONNECTIONS = 1_100
const CONNECTING = new Set(['connect', 'getaddrinfo'])

export class HttpCaller {
  readonly #upstream: Upstream
  readonly #agent: Dispatcher
  readonly #headers: Readonly<Record<string, string>>
  /** The upstream is being told by which ways clients came: while it is there nothing else is sent. */
  #telling: Promise<unknown> | undefined
  /** One of them leads back: nothing is sent any more. */
  #refusal: UpstreamFailure | undefined

  private constructor(upstream: Upstream) {
    this.#upstream = upstream
    this.#headers = ownHeaders(upstream)
    this.#agent = agentFor(upstream)
  }

  /** Looks whether the upstream, or the proxy to it, can be connected to. Fails with UpstreamFailure. */
  static async open(upstream: Upstream, signal: AbortSignal): Promise<HttpCaller> {
    try {
      const proxy = proxyFor(upstream.url, process.env)
      const target = proxy === undefined ? socketOf(upstream) : { tcp: tcpOf(proxy) }
      const socket = await dialSocket(target, upstream.connectTimeoutMs, signal)
      socket.on('error', () => {}).destroy()
      return new HttpCaller(upstream)
    } catch (cause) {
      throw explainFailure(cause)
    }
  }

  /** Tells the upstream of ways by which clients came; fails with UpstreamFailure if one of them leads back. */
  async passOn(vias: readonly Via[]): Promise<void> {
    const telling = Promise.all([this.#telling, ...vias.map((via) => this.#tell(via))])
    this.#telling = telling
    await telling
    if (this.#telling === telling) this.#telling = undefined
    if (this.#refusal !== undefined) throw this.#refusal
  }

  async call(request: HttpRequest): Promise<HttpReply> {
    while (this.#telling !== undefined) await this.#telling
    request.signal.throwIfAborted()
    if (this.#refusal !== undefined) throw this.#refusal
    const headers = { ...this.#headers, ...request.headers, ...viaHeader(this.#upstream) }
    let url = this.#upstream.url
    for (let hops = 0; ; hops++) {
      const reply = await this.#dispatch(url, { ...request, headers })
      const next = hops < MAX_REDIRECTS ? reply.redirectFrom(url) : undefined
      if (next === undefined) return reply
      reply.discard()
      url = next
    }
  }

  /** By a request that asks for nothing and that no server minds. Whether it can be reached, the next one shows. */
  async #tell(via: Via): Promise<void> {
    const done = new AbortController()
    const timer = setTimeout(() => done.abort(), this.#upstream.connectTimeoutMs)
    const headers = { ...this.#headers, accept: 'text/event-stream', ...viaHeader(this.#upstream, via) }
    const asked = this.#dispatch(this.#upstream.url, { method: 'GET', headers, signal: done.signal })
    const reply = await asked.catch(() => undefined)
    clearTimeout(timer)
    done.abort()
    if (reply?.status === LOOP_STATUS) this.#refusal = new UpstreamFailure(LOOP, { isRefusal: true })
  }

  async #dispatch(url: URL, { method, headers, body, signal }: HttpRequest): Promise<HttpReply> {
    try {
      const path = `${url.pathname}${url.search}`
      const asked = { origin: url.origin, path, method, headers, signal, ...(body === undefined ? {} : { body }) }
      return new HttpReply(await this.#agent.request(asked))
    } catch (cause) {
      if (signal.aborted) throw cause
      throw explainCall(cause)
    }
  }

  destroy(): void {
    this.#agent.destroy().catch(() => {})
  }
}

function agentFor(upstream: Upstream): Dispatcher {
  const { url, tls, connectTimeoutMs } = upstream
  const material = isSecure(url)
    ? { ...readTlsMaterial(tls), minVersion: MIN_TLS_VERSION, rejectUnauthorized: true }
    : {}
  // How long an answer may take is for the limits of the pool to say.
  const patient = { headersTimeout: 0, bodyTimeout: 0, connections: MAX_CONNECTIONS, pipelining: 1 }
  const proxy = proxyFor(url, process.env)
  if (proxy === undefined) return new Agent({ ...patient, connect: { ...material, timeout: connectTimeoutMs } })
  return new ProxyAgent({ ...patient, uri: proxy.href, requestTls: { ...material, timeout: connectTimeoutMs } })
}

function explainCall(cause: unknown): UpstreamFailure {
  const failure = explainFailure(cause)
  const { syscall, code } = cause as NodeJS.ErrnoException
  const isConnecting =
    CONNECTING.has(syscall ?? '') || code === 'UND_ERR_CONNECT_TIMEOUT' || cause instanceof AggregateError
  if (isConnecting || failure.isRefusal) return new Unreachable(failure.why, { isRefusal: failure.isRefusal, cause })
  return failure
}

export class HttpReply {
  readonly status: number
  readonly body: Body
  readonly #headers: Readonly<Record<string, string | string[] | undefined>>

  constructor({ statusCode, headers, body }: Dispatcher.ResponseData) {
    this.status = statusCode
    this.body = body
    this.#headers = headers
    // Whoever reads it hears of that as well.
    body.on('error', () => {})
  }

  header(name: string): string | undefined {
    const value = this.#headers[name]
    return Array.isArray(value) ? value[0] : value
  }

  get isSuccess(): boolean {
    return this.status >= 200 && this.status < 300
  }

  get isEventStream(): boolean {
    return this.#mediaType === 'text/event-stream'
  }

  get isJson(): boolean {
    return this.#mediaType === 'application/json' || this.#mediaType.endsWith('+json')
  }

  get #mediaType(): string {
    return (this.header('content-type') ?? '').split(';')[0]!.trim().toLowerCase()
  }

  /** How long the upstream wants to be left alone. */
  get retryAfterMs(): number | undefined {
    const text = this.header('retry-after')
    if (text === undefined) return undefined
    const ms = /^\d+$/.test(text.trim()) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
    return Number.isFinite(ms) ? Math.min(Math.max(0, Math.round(ms)), MAX_RETRY_AFTER_MS) : undefined
  }

  /** Where it leads on to, if that may be followed. */
  redirectFrom(url: URL): URL | undefined {
    const location = this.header('location')
    if (!REDIRECTS.has(this.status) || location === undefined || !URL.canParse(location, url.href)) return undefined
    const next = new URL(location, url)
    return next.origin === url.origin ? next : undefined
  }

  /** The whole body, if it is not too long. */
  async read(maxBytes: number): Promise<Buffer> {
    const parts: Uint8Array[] = []
    let bytes = 0
    try {
      for await (const chunk of this.body as AsyncIterable<Uint8Array>) {
        bytes += chunk.length
        if (bytes > maxBytes) throw new RemoteFault('upstream_too_large')
        parts.push(chunk)
      }
    } catch (cause) {
      if (cause instanceof RemoteFault) throw cause
      throw new RemoteFault('worker_exited', { why: BROKEN_OFF })
    }
    return Buffer.concat(parts)
  }

  /** Nobody reads it; a short rest is taken, so that the connection can be used again. */
  discard(): void {
    this.body.dump({ limit: MAX_DUMP_BYTES }).catch(() => {})
  }
}

const MAX_RETRY_AFTER_MS = 86_400_000
const MAX_DUMP_BYTES = 64 * 1024
