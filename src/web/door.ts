/**
 * The HTTP door: connections of the TCP or TLS door, read as HTTP/1.1 (contract 10.1, 10.3).
 *
 * It bounds what anybody can hold open and hands on whole heads; what they ask for is decided elsewhere. Its sockets come from the doors for
 * lines, so binding, certificates and descriptors are looked after once. Nothing that a peer sends ends it.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { PeerCertificate } from 'node:tls'
import type { TcpAddress } from '../host/address.ts'
import type { Accept, ConnectionInfo, DoorOptions, Listener } from '../transports/listener.ts'
import { type WebReason, webFaultOf } from './faults.ts'
import { Unanswered } from './unanswered.ts'

export interface HttpDoorOptions {
  readonly maxConnections: number
  /** Binds the address and hands over connections: the TCP door or the TLS door. */
  readonly bind: (address: TcpAddress, accept: Accept) => Promise<Listener>
  readonly onTrouble: NonNullable<DoorOptions['onTrouble']>
  /** Somebody was refused of whom nothing was read that could be served. */
  readonly refused: (reason: WebReason | 'bad_envelope') => void
}

export interface HttpListener extends Listener {
  /** Connections that are open. */
  readonly connectionCount: number
}

/** How a connection came. */
export interface Connection {
  /** The address of the listener, as in `Listener.address`. */
  readonly listener: string
  readonly peer: string
  readonly isSecure: boolean
  /** Proved by the TLS handshake. */
  readonly certificate: PeerCertificate | undefined
}

export interface HttpService {
  serve(request: IncomingMessage, response: ServerResponse, connection: Connection): void
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, connection: Connection): void
}

const MAX_HEAD_BYTES = 16 * 1024
/** As long as anybody may take to be admitted (contract 9.4). */
const HEAD_TIMEOUT_MS = 5_000
const REQUEST_TIMEOUT_MS = 300_000
const KEEP_ALIVE_MS = 65_000
const CHECK_INTERVAL_MS = 500
const MAX_REQUESTS_PER_SOCKET = 0
const METHODS = 'GET, HEAD, POST, DELETE, OPTIONS'

export async function listenHttp(
  address: TcpAddress,
  options: HttpDoorOptions,
  service: HttpService,
): Promise<HttpListener> {
  const door = new HttpDoor(options, service)
  const listener = await options.bind(address, door.take)
  return {
    address: listener.address.replace(/^(tcp|tls):/, (_, door) => (door === 'tls' ? 'https://' : 'http://')),
    get connectionCount() {
      return door.connectionCount
    },
    close: async () => {
      await listener.close()
      door.close()
    },
  }
}

class HttpDoor {
  readonly #options: HttpDoorOptions
  readonly #server: Server
  readonly #connections = new Map<Duplex, Connection>()
  readonly #unanswered = new WeakMap<Duplex, Unanswered>()

  constructor(options: HttpDoorOptions, service: HttpService) {
    this.#options = options
    this.#server = makeServer()
    const serve = (request: IncomingMessage, response: ServerResponse): void => {
      const connection = this.#connections.get(request.socket)
      if (connection === undefined) return
      this.#unanswered.get(request.socket)!.begin(response)
      service.serve(request, response, connection)
    }
    this.#server.on('request', serve)
    // Whoever asks first whether its body is wanted is told once its head has been judged (contract 9.4).
    this.#server.on('checkContinue', serve)
    // Any other expectation is none that a server must meet.
    this.#server.on('checkExpectation', serve)
    this.#server.on('upgrade', (request, socket, head) => {
      this.#inTurn(socket, (connection) => {
        if (!isForWebSocket(request)) this.#readAgain(socket, headWithoutUpgrade(request), head)
        else service.upgrade(request, socket, head, connection)
      })
    })
    // It is no proxy.
    this.#server.on('connect', (_request, socket) => {
      this.#inTurn(socket, () =>
        this.#refuse(socket, '405 Method Not Allowed', 'wrong_method', `Allow: ${METHODS}\r\n`),
      )
    })
    this.#server.on('clientError', (error, socket) => {
      this.#unanswered.get(socket)?.end((broken) => this.#answerUnreadable(error, socket, broken))
    })
    // It is never bound itself: from now on it looks after the time that heads and bodies take.
    this.#server.emit('listening')
  }

  readonly take: Accept = (socket, info) => {
    if (this.#connections.size >= this.#options.maxConnections) return this.#refuseConnection(socket)
    this.#connections.set(socket, connectionOf(info, undefined))
    const unanswered = new Unanswered()
    this.#unanswered.set(socket, unanswered)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => {
      this.#connections.delete(socket)
      unanswered.abandon()
    })
    if (info.secured === undefined) return void this.#server.emit('connection', socket)
    info.secured.then(
      (certificate) => {
        this.#connections.set(socket, connectionOf(info, certificate))
        this.#server.emit('connection', socket)
      },
      // The door below has told of it and destroyed the stream.
      () => {},
    )
  }

  /** The runtime has let go of a connection, perhaps with answers to come on it: what it is now, it is behind them. */
  #inTurn(socket: Duplex, turn: (connection: Connection) => void): void {
    this.#unanswered.get(socket)?.inTurn(() => {
      const connection = this.#connections.get(socket)
      if (connection === undefined || !socket.writable) socket.destroy()
      else turn(connection)
    })
  }

  /** Some clients offer another protocol with every request and go on as they are if nobody takes it up (contract 10.1: no h2). */
  #readAgain(socket: Duplex, head: Buffer, rest: Buffer): void {
    socket.unshift(Buffer.concat([head, rest]))
    this.#server.emit('connection', socket)
  }

  #answerUnreadable(error: Error & { code?: string }, socket: Duplex, broken: ServerResponse | undefined): void {
    if (socket.destroyed || !socket.writable) return
    const [status, reason] = BAD_HEADS[error.code ?? ''] ?? ['400 Bad Request', 'bad_envelope']
    // In the middle of an answer nothing can be said any more.
    if (broken?.headersSent) return void socket.destroy()
    this.#refuse(socket, status, reason)
  }

  #refuseConnection(socket: Duplex): void {
    socket.on('error', () => socket.destroy())
    this.#refuse(socket, '503 Service Unavailable', 'too_many_connections', 'Retry-After: 1\r\n')
    socket.resume()
    setTimeout(() => socket.destroy(), 1_000).unref()
  }

  /** The last word on a connection. */
  #refuse(socket: Duplex, status: string, reason: WebReason | 'bad_envelope', headers = ''): void {
    this.#options.refused(reason)
    const error = webFaultOf(reason)
    socket.end(rawAnswer(status, JSON.stringify({ jsonrpc: '2.0', id: null, error }), headers))
  }

  get connectionCount(): number {
    return this.#connections.size
  }

  /** Those who ask for nothing are let go; whoever is being answered stays. */
  close(): void {
    this.#server.closeIdleConnections()
  }
}

function makeServer(): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEAD_BYTES,
    headersTimeout: HEAD_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
    insecureHTTPParser: false,
    // Who is missing a Host is told so in the words of the door.
    requireHostHeader: false,
    noDelay: true,
  })
  // Bounded by their bytes: headers beyond a number would be left out in silence.
  server.maxHeadersCount = 0
  server.maxRequestsPerSocket = MAX_REQUESTS_PER_SOCKET
  return server
}

function connectionOf({ listener, peer, door }: ConnectionInfo, certificate: PeerCertificate | undefined): Connection {
  return { listener, peer, isSecure: door === 'tls', certificate }
}

function isForWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.trim().toLowerCase() === 'websocket'
}

/** The head of a request as it came, but for what it would rather be. */
function headWithoutUpgrade({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.toLowerCase() !== 'upgrade') lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`)
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}

/** What the parser of the runtime refuses, in the words that fit. */
const BAD_HEADS: Readonly<Record<string, readonly [status: string, reason: 'bad_envelope' | 'body_timeout']>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'bad_envelope'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['413 Payload Too Large', 'bad_envelope'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'body_timeout'],
}

/** An answer without the runtime's help, for a connection that ends with it. */
export function rawAnswer(status: string, body: string, headers = ''): string {
  return (
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
    `Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n${headers}Connection: close\r\n\r\n${body}`
  )
}
