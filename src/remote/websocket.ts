/**
 * An upstream that takes and gives a message per text frame of a WebSocket (contract 11.1).
 *
 * A frame of any layout becomes one line; what is no text, or cannot be one line, is dropped and noted. Nothing piles up
 * here: a socket that is not read is paused, and a line counts as written when the socket has taken it.
 */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { type ClientOptions, WebSocket } from 'ws'
import { MIN_TLS_VERSION, readTlsMaterial } from '../host/tls-files.ts'
import { LineSplitter, NEWLINE } from '../wire/frame.ts'
import { toOneLine } from '../wire/one-line.ts'
import { LOOP, LOOP_STATUS } from '../wire/via.ts'
import { explainFailure, isSecure, tcpOf } from './address.ts'
import { ownHeaders, viaHeader } from './headers.ts'
import { proxyFor } from './proxy.ts'
import { tunnelTo } from './tunnel.ts'
import { type Connect, type Connection, type Opening, type Upstream, UpstreamFailure, type Via } from './upstream.ts'

const PING_MS = 30_000
/** So many pings in a row may stay without an answer. */
const MAX_MISSED_PINGS = 2
const GOODBYE_MS = 2_000
const TOO_BIG = 1009
const LINE_END = Buffer.from([NEWLINE])

const REFUSED_STATUSES: Readonly<Record<number, string>> = {
  401: 'it refuses the credentials (HTTP 401)',
  403: 'it refuses the credentials (HTTP 403)',
  407: 'the proxy refuses the credentials (HTTP 407)',
  [LOOP_STATUS]: LOOP,
}

export const connectWebSocket: Connect = async (upstream, opening) => {
  const [first = [], ...others] = opening.vias
  const socket = await upgrade(upstream, first, opening.signal)
  const connection = new WebSocketConnection(socket, upstream, opening)
  for (const via of others) connection.passOn(via)
  return connection
}

async function upgrade(upstream: Upstream, via: Via, signal: AbortSignal): Promise<WebSocket> {
  try {
    const socket = new WebSocket(upstream.url, await optionsFor(upstream, via))
    return await opened(socket, signal)
  } catch (cause) {
    throw explainFailure(cause)
  }
}

async function optionsFor(upstream: Upstream, via: Via): Promise<ClientOptions> {
  const { url, tls, connectTimeoutMs, maxMessageBytes } = upstream
  const proxy = proxyFor(url, process.env)
  const material = isSecure(url)
    ? { ...readTlsMaterial(tls), minVersion: MIN_TLS_VERSION, rejectUnauthorized: true }
    : {}
  const tunnel = proxy === undefined ? undefined : await tunnelTo(tcpOf(url), proxy, connectTimeoutMs)
  return {
    ...material,
    headers: { ...ownHeaders(upstream), ...viaHeader(upstream, via) },
    perMessageDeflate: false,
    maxPayload: maxMessageBytes,
    handshakeTimeout: connectTimeoutMs,
    followRedirects: false,
    ...(tunnel === undefined ? {} : { createConnection: through(tunnel, url, material) }),
  }
}

function through(tunnel: Socket, url: URL, material: object): NonNullable<ClientOptions['createConnection']> {
  if (!isSecure(url)) return () => tunnel
  return () => connectTls({ ...material, socket: tunnel, servername: tcpOf(url).host })
}

function opened(socket: WebSocket, signal: AbortSignal): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const fail = (cause: Error): void => {
      signal.removeEventListener('abort', giveUp)
      socket.on('error', () => {}).terminate()
      reject(cause)
    }
    const giveUp = (): void => fail(new UpstreamFailure('it was ended before it was connected'))
    signal.addEventListener('abort', giveUp)
    socket.once('error', fail)
    socket.once('unexpected-response', (_request, { statusCode = 0 }) => {
      const refusal = REFUSED_STATUSES[statusCode]
      const why = refusal ?? `it answers HTTP ${statusCode} and opens no WebSocket`
      fail(new UpstreamFailure(why, { isRefusal: refusal !== undefined }))
    })
    socket.once('open', () => {
      signal.removeEventListener('abort', giveUp)
      socket.off('error', fail)
      // What comes from now on waits for whoever reads the stream.
      socket.pause()
      resolve(socket)
    })
    if (signal.aborted) giveUp()
  })
}

class WebSocketConnection implements Connection {
  readonly stream: WebSocketStream
  readonly #upstream: Upstream
  readonly #opening: Opening

  constructor(socket: WebSocket, upstream: Upstream, opening: Opening) {
    this.stream = new WebSocketStream(socket, opening)
    this.#upstream = upstream
    this.#opening = opening
  }

  /** Only an upgrade says through which buses somebody comes: another one says it, and leaves again. */
  passOn(via: Via): void {
    upgrade(this.#upstream, via, this.#opening.signal).then(
      (socket) => socket.close(),
      (failure: UpstreamFailure) => {
        if (failure.isRefusal) this.stream.lose(failure)
      },
    )
  }
}

class WebSocketStream extends Duplex {
  readonly #socket: WebSocket
  readonly #opening: Opening
  readonly #lines = new LineSplitter(Number.POSITIVE_INFINITY)
  readonly #heartbeat: NodeJS.Timeout
  #missedPings = 0
  #isLost = false

  constructor(socket: WebSocket, opening: Opening) {
    super({ allowHalfOpen: false })
    this.#socket = socket
    this.#opening = opening
    socket.on('message', (data: Buffer, isBinary) => this.#take(data, isBinary))
    socket.on('pong', () => {
      this.#missedPings = 0
    })
    socket.on('error', (error) => this.lose(explainBreak(error)))
    socket.on('close', (code) => {
      this.lose(new UpstreamFailure(code === TOO_BIG ? TOO_LARGE : `it closed the connection (${code})`))
      this.push(null)
    })
    this.#heartbeat = setInterval(() => this.#beat(), PING_MS).unref()
  }

  /** Whoever is behind it is told; what was read before is still read. */
  lose(failure: UpstreamFailure): void {
    if (this.#isLost || this.writableEnded) return
    this.#isLost = true
    this.#opening.lost(failure)
    this.#socket.terminate()
  }

  #take(data: Buffer, isBinary: boolean): void {
    this.#missedPings = 0
    if (isBinary) return this.#opening.note('a binary frame was dropped')
    const line = toOneLine(data)
    // A line break that is left stands inside a string: that is no JSON, and must not become two lines.
    if (line.includes(NEWLINE)) return this.#opening.note('a frame that is no JSON was dropped')
    if (!this.push(Buffer.concat([line, LINE_END]))) this.#socket.pause()
  }

  #beat(): void {
    // Whoever is not read from cannot be heard.
    if (this.#socket.isPaused) return
    if (this.#missedPings++ >= MAX_MISSED_PINGS) return this.lose(new UpstreamFailure('it does not answer pings'))
    this.#socket.ping()
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    const lines: Buffer[] = []
    this.#lines.push(chunk, 0, (bytes, start, end) => lines.push(bytes.subarray(start, end)) > 0)
    const last = lines.pop()
    if (last === undefined || this.#socket.readyState !== WebSocket.OPEN) return done()
    for (const line of lines) this.#socket.send(line, { binary: false })
    // That it cannot be written any more is told by the end of the connection.
    this.#socket.send(last, { binary: false }, () => done())
  }

  override _final(done: () => void): void {
    this.#socket.close()
    setTimeout(() => this.#socket.terminate(), GOODBYE_MS).unref()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearInterval(this.#heartbeat)
    this.#socket.terminate()
    done(error)
  }
}

const TOO_LARGE = 'it sent a message longer than max_input_buffer'

function explainBreak(error: Error & { code?: string }): UpstreamFailure {
  if (error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') return new UpstreamFailure(TOO_LARGE)
  if (error.code?.startsWith('WS_ERR')) return new UpstreamFailure(`it breaks the rules of WebSockets (${error.code})`)
  return explainFailure(error)
}
