/** A web client of tests: requests with heads of their own making, and what comes back. */
import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'

export interface Answered {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it
  readonly json: any
}

export interface Asked {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string | Buffer | object
}

export const JSON_HEADERS = { 'content-type': 'application/json' } as const

/** Sends one request, with nothing in its head that was not asked for. */
export async function ask(url: string, { method, headers = {}, body }: Asked = {}): Promise<Answered> {
  const bytes = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
  const type = body === undefined ? {} : JSON_HEADERS
  const sent = request(url, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { ...type, ...headers },
  })
  return answerOf(sent, bytes)
}

export function answerOf(sent: ClientRequest, body?: string | Buffer): Promise<Answered> {
  return new Promise((resolve, reject) => {
    sent.once('error', reject)
    sent.once('response', (response: IncomingMessage) => {
      const parts: Buffer[] = []
      response.on('data', (part) => parts.push(part))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(parts).toString()
        const { statusCode: status = 0, headers } = response
        resolve({
          status,
          headers,
          text,
          get json() {
            return JSON.parse(text)
          },
        })
      })
    })
    sent.end(body)
  })
}

/** A WebSocket that keeps what it hears, and how it was closed. */
export class WebSocketPeer {
  readonly frames: string[] = []
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  readonly socket: WebSocket
  readonly upgradeHeaders: Promise<IncomingHttpHeaders>

  constructor(url: string, options: { headers?: Record<string, string>; protocols?: string[] } = {}) {
    this.socket = new WebSocket(url.replace(/^http/, 'ws'), options.protocols ?? [], { headers: options.headers ?? {} })
    this.socket.on('message', (data) => this.frames.push(String(data)))
    this.socket.on('error', () => {})
    this.upgradeHeaders = new Promise((resolve) => this.socket.once('upgrade', ({ headers }) => resolve(headers)))
    this.closed = new Promise((resolve) => {
      this.socket.once('close', (code, reason) => resolve({ code, reason: String(reason) }))
    })
    onTestFinished(() => this.socket.terminate())
  }

  opened(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.socket.once('open', resolve)
      this.socket.once('unexpected-response', (_request, response) =>
        reject(new Error(`status ${response.statusCode}`)),
      )
      this.socket.once('error', reject)
    })
  }

  /** The next `count` frames beyond those that were taken, as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it
  async take(count: number): Promise<any[]> {
    while (this.frames.length < count) {
      await Promise.race([new Promise((resolve) => this.socket.once('message', resolve)), this.closed])
      if (this.socket.readyState > WebSocket.OPEN && this.frames.length < count)
        throw new Error(`closed after ${this.frames.length} of ${count} frames`)
    }
    return this.frames.splice(0, count).map((frame) => JSON.parse(frame))
  }
}
