/**
 * One request under way and its answer: its head as the adapters read it, and the few ways to answer.
 *
 * It answers once: whatever comes second is not sent. No query, token, cookie or body of it is written to any log.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Reason } from '../kernel/faults.ts'
import type { Rights } from '../kernel/rights.ts'
import type { PoolId } from '../kernel/vocabulary.ts'
import type { Connection } from './door.ts'
import { statusOf, type WebReason, webFaultOf } from './faults.ts'
import { mayDoWhat } from './may-do.ts'
import type { Admitted, WebTally } from './port.ts'
import { discardRest } from './unread-body.ts'

const COMMON = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' } as const
const JSON_TYPE = 'application/json'

/** Why a request is not served, and what goes with it. */
export interface Refusal {
  readonly reason: Reason | WebReason
  readonly detail?: Record<string, unknown>
  /** Of `not_allowed`: who may; left out: whoever may do what the detail names. */
  readonly mayDo?: (rights: Rights) => boolean
  /** In place of what the reason says. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** The id of the message as it is spelled, where it could be read. */
  readonly id?: string
  /** It is the kernel's, which has counted it. */
  readonly isCounted?: boolean
}

/** A refusal in the words of whatever is behind the path. */
export type Phrase = (web: WebRequest, reason: string, message: string) => string

export class WebRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly connection: Connection
  /** Without its query and without a slash at its end. */
  readonly path: string
  /** Whom it is for: what its target says, as proxies are asked, else its `Host`. */
  readonly host: string | undefined
  /** The part of the path behind the name of the door. */
  pool: PoolId | undefined
  /** Who has sent it; set before anything of its body is read. */
  admitted!: Admitted
  /** Why its sender may not have what the path names; told once the body is sound (contract 10.4). */
  denied: Refusal | undefined
  /** What goes with a refusal of what its sender may not, and others may, or no more (contract 9.14). */
  challenge: (mayDo?: (rights: Rights) => boolean) => Readonly<Record<string, string>> = () => ({})
  /** undefined: a refusal is an error of JSON-RPC. */
  phrase: Phrase | undefined
  readonly #tally: WebTally
  readonly #headers: Record<string, string>

  constructor(request: IncomingMessage, response: ServerResponse, connection: Connection, tally: WebTally) {
    this.request = request
    this.response = response
    this.connection = connection
    const { authority, path } = targetOf(request.url ?? '/')
    this.path = path
    this.host = authority ?? request.headers.host
    this.#tally = tally
    this.#headers = { ...COMMON }
    response.on('error', () => response.destroy())
    request.on('error', () => {})
  }

  /** The parts of its path, decoded; undefined: they cannot be. */
  get segments(): readonly string[] | undefined {
    return segmentsOf(this.path)
  }

  /** What stands behind the question mark; it is never logged. */
  get query(): URLSearchParams {
    return new URLSearchParams(/\?([^#]*)/.exec(this.request.url ?? '')?.[1] ?? '')
  }

  get method(): string {
    return this.request.method ?? ''
  }

  header(name: string): string | undefined {
    const value = this.request.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }

  /** Goes with whatever is answered. */
  setHeaders(headers: Readonly<Record<string, string>>): void {
    Object.assign(this.#headers, headers)
  }

  get headers(): Readonly<Record<string, string>> {
    return this.#headers
  }

  /** Its answer is a stream, and counts as one while it lasts. */
  countStream(): void {
    this.#tally.streamBegan()
    this.onceClosed(() => this.#tally.streamEnded())
  }

  /** The answer has left, or nobody is there to read it: perhaps since before this is asked. */
  onceClosed(closed: () => void): void {
    if (this.response.destroyed) process.nextTick(closed)
    else this.response.once('close', closed)
  }

  /** A whole answer; `body` is JSON unless the headers say otherwise. */
  answer(status: number, body: string | Buffer | undefined, headers: Readonly<Record<string, string>> = {}): void {
    const { response } = this
    if (response.headersSent || response.destroyed) return
    const type =
      body === undefined ? {} : { 'content-type': JSON_TYPE, 'content-length': String(Buffer.byteLength(body)) }
    const isUnread = this.#isUnread()
    response.writeHead(status, {
      ...this.#headers,
      ...type,
      ...headers,
      ...(isUnread ? { connection: 'close' } : {}),
    })
    if (!isUnread) return void response.end(body)
    // The answer is whole with its length; the connection ends when its peer has had time to read it.
    if (body === undefined) response.flushHeaders()
    else response.write(body)
    discardRest(this.request, () => response.end())
  }

  refuse({ reason, detail, mayDo, status = statusOf(reason), headers = {}, id = 'null', isCounted }: Refusal): void {
    if (isCounted !== true) this.#tally.refused(reason)
    const isDenied = reason === 'not_allowed'
    const isChallenged = isDenied || reason === 'unauthenticated'
    const challenge = isChallenged ? this.challenge(isDenied ? (mayDo ?? mayDoWhat(detail)) : undefined) : {}
    const fault = webFaultOf(reason, detail)
    const body =
      this.phrase?.(this, reason, fault.message) ?? `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(fault)}}`
    this.answer(status, body, { ...retryAfter(status, detail), ...challenge, ...headers })
  }

  /** A body that nobody has read ends the connection: it would have to be read to get at what follows. */
  #isUnread(): boolean {
    const { request } = this
    const hasBody =
      request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length'] ?? 0) > 0
    return hasBody && !request.complete
  }
}

const RETRIED = new Set([429, 503])

/** In whole seconds, as HTTP has it. */
export function retryAfter(status: number, detail: Record<string, unknown> | undefined): Record<string, string> {
  if (!RETRIED.has(status)) return {}
  const ms = detail?.['retry_after_ms']
  return { 'retry-after': String(Math.max(1, Math.ceil((typeof ms === 'number' ? ms : 1_000) / 1_000))) }
}

export function segmentsOf(path: string): readonly string[] | undefined {
  try {
    return path.slice(1).split('/').map(decodeURIComponent)
  } catch {
    return undefined
  }
}

const WHOLE_URL = /^https?:\/\/([^/?#]*)/i

function targetOf(url: string): { readonly authority: string | undefined; readonly path: string } {
  const [prefix = '', authority] = WHOLE_URL.exec(url) ?? []
  const path = url.slice(prefix.length).replace(/[?#].*$/s, '') || '/'
  return { authority, path: path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path }
}

/** Of these the runtime keeps the first and drops the others, where somebody before it may have read another. */
const SINGLE: ReadonlySet<string> = new Set(['host', 'authorization', 'content-type'])

/** A header that means one thing and was sent more than once. */
export function doubledHeader({ rawHeaders }: IncomingMessage): string | undefined {
  const seen = new Set<string>()
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase()
    if (!SINGLE.has(name)) continue
    if (seen.has(name)) return name
    seen.add(name)
  }
  return undefined
}
