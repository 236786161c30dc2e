/**
 * What the HTTP door serves, path by path: who may ask for it is looked at first, in this order: Host and Origin, the path and its
 * method, the credential, the pool, the way it came (contract 10.1, 10.2, 10.4, 11.6).
 *
 * It knows the paths as a table and nothing of what is behind them. A mistake of our own in an adapter ends one request.
 */
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { mayUsePool, type Rights } from '../kernel/rights.ts'
import { viaFault } from '../kernel/via.ts'
import type { MessageListener } from '../transports/messages.ts'
import { readVia, VIA_HEADER } from '../wire/via.ts'
import { bearerOf, subprotocolTokenOf } from './credential.ts'
import type { Connection, HttpService } from './door.ts'
import {
  corsHeaders,
  type DoorNames,
  isHostOf,
  isKnownHost,
  isKnownOrigin,
  isListedOrigin,
  preflightHeaders,
} from './guard.ts'
import { serveHealth } from './health.ts'
import type { Admitted, WebPort } from './port.ts'
import { doubledHeader, type Phrase, WebRequest } from './web-request.ts'

/** What is behind a path: `/NAME`, and `/NAME/POOL` where a pool can be named. */
export interface Adapter {
  readonly methods: readonly string[]
  /** Whatever is below its name is its own, and who may have it too: nobody is identified and no pool is chosen for it. */
  readonly isRealm?: true
  /** The console's own pages use it: who has logged in there is known by the cookie (contract 15.4). */
  readonly takesLogin?: true
  serve(web: WebRequest): void | Promise<void>
  /** The body of a refusal, where it is not that of JSON-RPC. */
  readonly phrase?: Phrase
  /** Takes over the connection of a request to upgrade; left out: there is nothing to upgrade to. */
  upgrade?(web: WebRequest, socket: Duplex, head: Buffer): void
}

export interface ServiceOptions {
  readonly names: DoorNames
  /** The pool of clients that name none. */
  readonly pool: string | undefined
  /** By the first part of the path. */
  readonly adapters: Readonly<Record<string, Adapter>>
  /** Who has logged in to the console, by the cookie of a request of its own page (contract 15.4). */
  readonly loggedIn?: (web: WebRequest) => Admitted | undefined
  /** A failure of our own. */
  readonly failed: (error: unknown) => void
}

/** WebSocket is asked for in no other way. */
const UPGRADED: readonly string[] = ['GET']
type MayDo = (rights: Rights) => boolean

const DOUBLED = 'a header that can be sent once was sent twice'
const DOCUMENT_METHODS = 'GET, HEAD'
const DOCUMENT = /^\/\.well-known\/oauth-protected-resource(?:\/|$)/

export class WebService implements HttpService {
  readonly #port: WebPort
  readonly #options: ServiceOptions

  constructor(port: WebPort, options: ServiceOptions) {
    this.#port = port
    this.#options = options
  }

  serve(request: IncomingMessage, response: ServerResponse, connection: Connection): void {
    const web = new WebRequest(request, response, connection, this.#port)
    this.#guard(web, async () => {
      if (serveHealth(web, this.#port)) return
      const adapter = await this.#admit(web)
      // Whoever has gone meanwhile takes no stream's place, and nothing that waits for one.
      if (adapter !== undefined && !response.destroyed) await adapter.serve(web)
    })
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, connection: Connection): void {
    const response = new ServerResponse(request)
    // A refusal is an ordinary answer, after which nothing more is read.
    response.assignSocket(socket as never)
    response.shouldKeepAlive = false
    response.once('finish', () => socket.end())
    const web = new WebRequest(request, response, connection, this.#port)
    this.#guard(web, async () => {
      const adapter = await this.#admit(web, true)
      if (adapter === undefined) return
      response.detachSocket(socket as never)
      adapter.upgrade!(web, socket, head)
    })
  }

  #guard(web: WebRequest, serve: () => Promise<void>): void {
    serve().catch((error) => {
      this.#options.failed(error)
      if (web.response.headersSent) web.response.destroy()
      else web.answer(500, undefined)
    })
  }

  /** Who may ask for this, and what serves it; undefined: it has been answered. */
  async #admit(web: WebRequest, isUpgrade = false): Promise<Adapter | undefined> {
    const { names } = this.#options
    const { host } = web
    web.phrase = this.#adapterOf(web)?.phrase
    const doubled = doubledHeader(web.request)
    if (doubled !== undefined)
      return void web.refuse({ reason: 'bad_envelope', detail: { problem: DOUBLED, header: doubled } })
    const origin = web.header('origin')
    if (!isKnownHost(host, names)) return void web.refuse({ reason: 'wrong_host' })
    if (DOCUMENT.test(web.path)) return void this.#serveDocument(web)
    if (!isKnownOrigin(origin, host, names)) return void web.refuse({ reason: 'wrong_origin' })
    web.setHeaders(corsHeaders(origin, names))
    const adapter = this.#find(web, isUpgrade)
    if (adapter === undefined) return undefined
    if (web.method === 'OPTIONS') return void this.#answerOptions(web, adapter, origin)
    const methods = isUpgrade ? UPGRADED : adapter.methods
    if (!methods.includes(web.method))
      return void web.refuse({ reason: 'wrong_method', headers: { allow: methods.join(', ') } })
    if (adapter.isRealm) return adapter
    if (this.#port.isShuttingDown && (isUpgrade || web.method === 'POST'))
      return void web.refuse({ reason: 'shutting_down', headers: { connection: 'close' } })
    const isLet = (await this.#identify(web, adapter, isUpgrade)) && this.#choosePool(web) && this.#mayCome(web)
    return isLet ? adapter : undefined
  }

  /** Any page may read how to be admitted (contract 9.14). */
  #serveDocument(web: WebRequest): void {
    web.setHeaders({ 'access-control-allow-origin': '*' })
    const document = this.#port.document(web.path, this.#options.names.publicUrl)
    if (document === undefined) web.refuse({ reason: 'not_found' })
    else if (web.method === 'OPTIONS')
      web.answer(204, undefined, preflightHeaders(web.header('access-control-request-headers'), DOCUMENT_METHODS))
    else if (web.method === 'GET' || web.method === 'HEAD') web.answer(200, document)
    else web.refuse({ reason: 'wrong_method', headers: { allow: DOCUMENT_METHODS } })
  }

  #adapterOf({ segments: [name = ''] = [] }: WebRequest): Adapter | undefined {
    return Object.hasOwn(this.#options.adapters, name) ? this.#options.adapters[name] : undefined
  }

  #find(web: WebRequest, isUpgrade: boolean): Adapter | undefined {
    const [, pool, ...rest] = web.segments ?? []
    const adapter = this.#adapterOf(web)
    const isThere = adapter?.isRealm || rest.length === 0
    if (adapter === undefined || !isThere || (isUpgrade && adapter.upgrade === undefined))
      return void web.refuse({ reason: 'not_found' })
    web.pool = adapter.isRealm ? undefined : (pool ?? this.#options.pool)
    return adapter
  }

  #answerOptions(web: WebRequest, { methods }: Adapter, origin: string | undefined): void {
    if (origin === undefined || !isListedOrigin(origin, this.#options.names))
      return web.refuse({ reason: 'wrong_method', headers: { allow: methods.join(', ') } })
    web.answer(204, undefined, preflightHeaders(web.header('access-control-request-headers'), methods.join(', ')))
  }

  async #identify(web: WebRequest, { takesLogin }: Adapter, isUpgrade: boolean): Promise<boolean> {
    const { certificate, listener, peer } = web.connection
    const token = bearerOf(web.header('authorization')) ?? (isUpgrade ? subprotocolTokenOf(web) : undefined)
    const { publicUrl } = this.#options.names
    const login = takesLogin && token === undefined && isOwnOrigin(web) ? this.#options.loggedIn?.(web) : undefined
    if (login !== undefined) {
      web.admitted = login
      return true
    }
    const judged = await this.#port.judge({ token, certificate, listener, peer, path: web.path, publicUrl })
    if (judged === undefined) web.response.destroy()
    else if ('status' in judged) web.refuse({ ...judged, detail: { ...judged.detail } })
    else {
      web.admitted = judged
      web.challenge = (mayDo) => this.#challenge(web, mayDo)
    }
    return judged !== undefined && 'identity' in judged
  }

  /** A signed token of another scope may do what this one, or none, may not. */
  #challenge({ admitted: { identity }, path }: WebRequest, mayDo?: MayDo): Readonly<Record<string, string>> {
    const isSigned = identity.via === 'jwt' || identity.via === 'anonymous'
    if (mayDo !== undefined && (!isSigned || mayDo(identity.rights))) return {}
    return this.#port.challenge({ path, publicUrl: this.#options.names.publicUrl }, mayDo)
  }

  /** Whoever comes through another bus says through which; a way that has passed here before is not gone on (contract 11.6). */
  #mayCome(web: WebRequest): boolean {
    const via = readVia(web.header(VIA_HEADER))
    const reason = via === undefined ? undefined : viaFault(via, this.#port.busId)
    if (reason !== undefined) web.refuse({ reason })
    else if (via !== undefined) web.admitted = { ...web.admitted, via }
    if (reason === undefined && via !== undefined && web.method === 'GET') this.#passOn(web)
    return reason === undefined
  }

  /** A bus may ask for nothing and only tell of a way: whoever comes and goes again has told it to the pool. */
  #passOn({ admitted, connection, pool = this.#port.poolOf(admitted.identity) }: WebRequest): void {
    const entrance = { door: 'http', isLocal: false, identity: admitted.identity, pool, isBrief: true } as const
    this.#port.open(entrance, admitted, connection.peer, DEAF).leave(true)
  }

  /** Whoever may not use a pool does not learn whether there is one (contract 9.18); of a message the body is judged before that. */
  #choosePool(web: WebRequest): boolean {
    const { pool } = web
    if (pool === undefined) return true
    if (!mayUsePool(web.admitted.identity.rights, pool)) {
      this.#port.denied(web.admitted, web.connection.peer, { pool })
      web.denied = { reason: 'not_allowed', detail: { pool } }
      if (web.method === 'POST') return true
      web.refuse(web.denied)
    } else if (this.#port.pool(pool) === undefined) web.refuse({ reason: 'unknown_pool', detail: { pool } })
    else return true
    return false
  }
}

const DEAF: MessageListener = {
  unsentBytes: 0,
  received: () => {},
  routed: () => {},
  pause: () => {},
  resume: () => {},
  closed: () => {},
}

/** The page that sends it was served by this very door. */
function isOwnOrigin(web: WebRequest): boolean {
  const origin = web.header('origin')
  return origin !== undefined && isHostOf(origin, web.host)
}
