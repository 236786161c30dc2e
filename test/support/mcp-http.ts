/** MCP over HTTP in the rawest sense: a session as a client has it, and streams whose every event is kept. */
import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { onTestFinished } from 'vitest'
import type { Message } from './line-client.ts'
import { eventually } from './waiting.ts'
import { type Answered, ask } from './web.ts'

export const MCP_HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
} as const

export interface SseEvent {
  readonly id: string | undefined
  readonly data: string
}

/** An answer that may be a stream, read as it comes. */
export class HttpStream {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly events: SseEvent[] = []
  /** Comments, which only keep the connection alive. */
  comments = 0
  text = ''
  isEnded = false
  isBroken = false
  readonly #response: IncomingMessage
  readonly #sent: ClientRequest
  #rest = ''
  #taken = 0

  constructor(sent: ClientRequest, response: IncomingMessage) {
    this.#sent = sent
    this.#response = response
    this.status = response.statusCode ?? 0
    this.headers = response.headers
    response.setEncoding('utf8')
    response.on('data', (part: string) => this.#read(part))
    response.on('end', () => {
      this.isEnded = response.complete
    })
    response.on('error', () => {
      this.isBroken = true
    })
    response.on('close', () => {
      this.isBroken ||= !response.complete
    })
  }

  get isStream(): boolean {
    return this.headers['content-type'] === 'text/event-stream'
  }

  /** The body that is no stream, as JSON. */
  async json(): Promise<Message> {
    await this.ended()
    return JSON.parse(this.text)
  }

  /** Events with data, as JSON. */
  get messages(): Message[] {
    return this.events.filter(({ data }) => data !== '').map(({ data }) => JSON.parse(data))
  }

  get lastId(): string | undefined {
    return this.events.findLast(({ id }) => id !== undefined)?.id
  }

  /** The next message beyond those that were taken. */
  async next(): Promise<Message> {
    const message = await eventually('a message on the stream', () => {
      if (this.messages.length > this.#taken) return this.messages[this.#taken]
      if (this.isBroken || this.isEnded) throw new Error('the stream is over')
      return undefined
    })
    this.#taken++
    return message
  }

  ended(): Promise<boolean> {
    return eventually('the end of the answer', () => this.isEnded || undefined)
  }

  gone(): Promise<boolean> {
    return eventually('the connection to break', () => this.isBroken || undefined)
  }

  pause(): void {
    this.#response.pause()
  }

  /** The connection goes, without a word. */
  drop(): void {
    this.#response.destroy()
    this.#sent.destroy()
  }

  #read(part: string): void {
    this.text += part
    if (!this.isStream) return
    const blocks = (this.#rest + part).split('\n\n')
    this.#rest = blocks.pop()!
    for (const block of blocks) this.#take(block)
  }

  #take(block: string): void {
    const lines = block.split('\n')
    if (lines.every((line) => line.startsWith(':'))) return void this.comments++
    const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2)
    this.events.push({ id: field('id'), data: field('data') ?? '' })
  }
}

/** Opens a request whose answer is read as it comes; it ends with the test. */
export function stream(
  url: string,
  { method = 'GET', headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: unknown } = {},
): Promise<HttpStream> {
  const sent = request(url, { method, headers: { ...headers }, agent: false })
  onTestFinished(() => void sent.destroy())
  return new Promise((resolve, reject) => {
    sent.once('error', reject)
    sent.once('response', (response) => resolve(new HttpStream(sent, response)))
    sent.on('error', () => {})
    sent.end(body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body))
  })
}

export class McpSession {
  readonly url: string
  readonly headers: Record<string, string>
  readonly welcome: Message

  constructor(url: string, headers: Record<string, string>, welcome: Message) {
    this.url = url
    this.headers = headers
    this.welcome = welcome
  }

  get id(): string {
    return this.headers['mcp-session-id']!
  }

  /** One POST, whole. */
  ask(body: unknown, headers: Record<string, string> = {}): Promise<Answered> {
    return ask(this.url, { method: 'POST', headers: { ...this.headers, ...headers }, body: body as object })
  }

  /** One POST, read as its answer comes. */
  post(body: unknown, headers: Record<string, string> = {}): Promise<HttpStream> {
    return stream(this.url, { method: 'POST', headers: { ...this.headers, ...headers }, body })
  }

  listen(headers: Record<string, string> = {}): Promise<HttpStream> {
    return stream(this.url, { headers: { ...this.headers, ...headers } })
  }

  resume(lastEventId: string, headers: Record<string, string> = {}): Promise<HttpStream> {
    return this.listen({ 'last-event-id': lastEventId, ...headers })
  }

  delete(headers: Record<string, string> = {}): Promise<Answered> {
    return ask(this.url, { method: 'DELETE', headers: { ...this.headers, ...headers } })
  }
}

export interface Opening {
  readonly version?: string
  readonly capabilities?: object
  readonly headers?: Record<string, string>
  readonly isConfirmed?: boolean
}

/** Shakes hands as a client of the handshake era does. */
export async function openSession(url: string, opening: Opening = {}): Promise<McpSession> {
  const { version = '2025-11-25', capabilities = {}, headers = {}, isConfirmed = true } = opening
  const params = { protocolVersion: version, capabilities, clientInfo: { name: 'raw', version: '1' } }
  const body = { jsonrpc: '2.0', id: 0, method: 'initialize', params }
  const answer = await ask(url, { method: 'POST', headers: { ...MCP_HEADERS, ...headers }, body })
  if (answer.status !== 200) throw new Error(`initialize: ${answer.status} ${answer.text}`)
  const id = String(answer.headers['mcp-session-id'])
  const session = new McpSession(url, { ...MCP_HEADERS, ...headers, 'mcp-session-id': id }, answer.json.result)
  if (isConfirmed) await session.ask({ jsonrpc: '2.0', method: 'notifications/initialized' })
  return session
}
