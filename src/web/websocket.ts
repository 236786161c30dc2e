/**
 * WebSocket (contract 10.14): a text frame is a message. A connection is one client of the kernel.
 *
 * Frames that came together are handed over together, and one client has no more than about a millisecond of a turn. It is closed
 * with a code and the reason as its text, after the error as a frame.
 */
import type { Duplex } from 'node:stream'
import { type RawData, WebSocket, WebSocketServer } from 'ws'
import type { Reason } from '../kernel/faults.ts'
import type { MessageClient, MessageListener } from '../transports/messages.ts'
import { toOneLine } from '../wire/one-line.ts'
import { SUBPROTOCOL } from './credential.ts'
import { rawAnswer } from './door.ts'
import { webFaultOf } from './faults.ts'
import type { WebPort } from './port.ts'
import { textFrames } from './text-frames.ts'
import type { WebRequest } from './web-request.ts'

/** What differs from path to path. */
export interface WebSocketManner {
  /** What is done with a binary frame. */
  readonly binary: 'refused' | 'ignored'
  /** Goes with the answer to the upgrade. */
  readonly headers: Readonly<Record<string, string>>
}

const PING_MS = 30_000
const MAX_MISSED_PINGS = 2
const TURN_MS = 1
/** So long a peer has to answer the closing. */
const CLOSING_MS = 2_000
const NEWLINE = 0x0a
const SPACE = 0x20
const NO_HEADERS: readonly string[] = []
const VERSION_LINE = 'Sec-WebSocket-Version: 13\r\n'

const GOING_AWAY = 1001
const UNSUPPORTED = 1003
const CLOSE_CODES: Partial<Record<Reason, number>> = {
  not_json: 1007,
  bad_envelope: 1008,
  unauthenticated: 1008,
  message_too_large: 1009,
  too_many_clients: 1013,
}
/** What the library itself closes for. */
const REASONS: Readonly<Record<number, Reason>> = { 1007: 'not_json', 1008: 'bad_envelope', 1009: 'message_too_large' }

/** One that says what it still has to say, and why, before it closes by itself. */
class TellingWebSocket extends WebSocket {
  flush = (): void => {}

  override close(code?: number, text?: string | Buffer): void {
    this.flush()
    const reason = text === undefined ? REASONS[code ?? 0] : undefined
    if (reason === undefined) return super.close(code, text)
    if (this.readyState === WebSocket.OPEN) this.send(faultFrame(reason))
    super.close(code, reason)
  }
}

const OPTIONS = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  autoPong: false,
  closeTimeout: CLOSING_MS,
} as const

/** Takes over a connection that was admitted. */
export function acceptWebSocket(port: WebPort, manner: WebSocketManner, upgrade: Upgrade): void {
  const { web, socket, head } = upgrade
  const server = new WebSocketServer({
    ...OPTIONS,
    maxPayload: port.maxMessageBytes,
    WebSocket: TellingWebSocket,
    // The name of the protocol alone: its neighbour is the token.
    handleProtocols: (offered) => offered.has(SUBPROTOCOL) && SUBPROTOCOL,
  })
  server.on('wsClientError', (error, refused) => {
    port.refused('bad_envelope')
    refused.end(rawAnswer('400 Bad Request', faultFrame('bad_envelope', { problem: error.message }), VERSION_LINE))
  })
  server.on('headers', (headers) => headers.push(...headerLines(manner.headers)))
  server.handleUpgrade(web.request, socket, head, (frames) =>
    new WebSocketClient(frames, socket, manner, port).open(web),
  )
}

export interface Upgrade {
  readonly web: WebRequest
  readonly socket: Duplex
  readonly head: Buffer
}

class WebSocketClient implements MessageListener {
  readonly #frames: TellingWebSocket
  /** What carries the frames. */
  readonly #socket: Duplex
  /** Lines of this turn, which leave together. */
  #outgoing: Buffer[] = []
  #outgoingBytes = 0
  readonly #manner: WebSocketManner
  readonly #port: WebPort
  #client: MessageClient | undefined
  /** Lines of frames that came together. */
  #gathered: Buffer[] = []
  #turnStartMs = 0
  #isPaused = false
  #isTurnOver = false
  #missedPings = 0
  /** A pong is on its way; the newest ping since then is answered when it has left. */
  #isPonging = false
  #unansweredPing: Buffer | undefined
  /** Why the bus is about to close it. */
  #fault: Reason | undefined

  constructor(frames: TellingWebSocket, socket: Duplex, manner: WebSocketManner, port: WebPort) {
    this.#frames = frames
    this.#socket = socket
    this.#manner = manner
    this.#port = port
  }

  open({ admitted, connection, pool }: WebRequest): void {
    const frames = this.#frames
    frames.flush = this.#flush
    const pings = setInterval(() => this.#ping(), PING_MS)
    frames.on('message', (data, isBinary) => this.#take(data, isBinary))
    frames.on('ping', (data) => this.#pong(data))
    frames.on('pong', () => {
      this.#missedPings = 0
    })
    frames.on('error', () => {})
    frames.once('close', () => {
      clearInterval(pings)
      this.#client?.leave()
    })
    const entrance = { door: 'websocket', isLocal: false, identity: admitted.identity, pool } as const
    this.#client = this.#port.open(entrance, admitted, connection.peer, this)
  }

  // ---- from the client ----

  #take(data: RawData, isBinary: boolean): void {
    if (isBinary) {
      if (this.#manner.binary === 'refused') this.#frames.close(UNSUPPORTED, 'binary frames are not taken')
      return
    }
    const line = toOneLine(data as Buffer)
    // A line break that is left lies in a string, where JSON has none.
    if (line.includes(NEWLINE) || isBlank(line)) return this.#frames.close(CLOSE_CODES.not_json)
    if (this.#gathered.length === 0) process.nextTick(this.#handOver)
    this.#gathered.push(line)
  }

  readonly #handOver = (): void => {
    const lines = this.#gathered
    this.#gathered = []
    const nowMs = performance.now()
    if (nowMs - this.#turnStartMs > 2 * TURN_MS) this.#turnStartMs = nowMs
    this.#client?.send(lines.length === 1 ? lines[0]! : joined(lines))
    if (performance.now() - this.#turnStartMs < TURN_MS || this.#isTurnOver) return
    this.#isTurnOver = true
    this.#frames.pause()
    setImmediate(() => {
      this.#isTurnOver = false
      if (!this.#isPaused) this.#frames.resume()
    })
  }

  #ping(): void {
    // Whoever is not read from cannot be heard.
    if (this.#frames.isPaused) return
    if (this.#missedPings >= MAX_MISSED_PINGS) return this.#frames.terminate()
    this.#missedPings++
    this.#frames.ping()
  }

  /** One after the other, since whoever sends pings need not read: of those that come meanwhile only the last counts (RFC 6455, 5.5.3). */
  #pong(data: Buffer): void {
    if (this.#isPonging) {
      this.#unansweredPing = data
      return
    }
    this.#isPonging = true
    this.#frames.pong(data, false, () => {
      this.#isPonging = false
      const next = this.#unansweredPing
      this.#unansweredPing = undefined
      if (next !== undefined && this.#frames.readyState === WebSocket.OPEN) this.#pong(next)
    })
  }

  // ---- from the bus ----

  get unsentBytes(): number {
    return this.#frames.bufferedAmount + this.#outgoingBytes
  }

  readonly #written = (): void => {
    if (this.unsentBytes === 0) this.#client?.drained()
  }

  received(line: Buffer, fault: Reason | undefined): void {
    if (fault !== undefined && CLOSE_CODES[fault] !== undefined) this.#fault = fault
    if (this.#outgoing.length === 0) process.nextTick(this.#flush)
    this.#outgoing.push(line)
    this.#outgoingBytes += line.length
  }

  /** Frames of the library's own (pongs, the closing) go by the same socket, so whole ones may go beside them. */
  readonly #flush = (): void => {
    const lines = this.#outgoing
    if (lines.length === 0) return
    this.#outgoing = []
    this.#outgoingBytes = 0
    if (this.#frames.readyState === WebSocket.OPEN) this.#socket.write(textFrames(lines), this.#written)
  }

  routed(): void {}

  pause(): void {
    this.#isPaused = true
    this.#frames.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (!this.#isTurnOver) this.#frames.resume()
  }

  closed(how: 'flush' | 'drop'): void {
    const frames = this.#frames
    const code = how === 'drop' ? CLOSE_CODES.bad_envelope : (CLOSE_CODES[this.#fault!] ?? GOING_AWAY)
    const text = how === 'drop' ? 'client_stuck' : (this.#fault ?? 'shutting_down')
    frames.resume()
    frames.close(code, text)
    setTimeout(() => frames.terminate(), how === 'drop' ? 0 : CLOSING_MS).unref()
  }
}

/** With a line break between them. */
function joined(lines: readonly Buffer[]): Buffer {
  let bytes = lines.length - 1
  for (const { length } of lines) bytes += length
  const whole = Buffer.allocUnsafe(bytes)
  let at = 0
  for (const line of lines) {
    if (at > 0) whole[at++] = NEWLINE
    at += line.copy(whole, at)
  }
  return whole
}

/** At the doors for lines that is nothing; a frame is a message. */
function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte <= SPACE)
}

function faultFrame(reason: Reason, detail: Record<string, unknown> = {}): string {
  return JSON.stringify({ jsonrpc: '2.0', id: null, error: webFaultOf(reason, detail) })
}

function headerLines(headers: Readonly<Record<string, string>>): readonly string[] {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return lines.length === 0 ? NO_HEADERS : lines
}
