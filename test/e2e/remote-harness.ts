/** Buses that use other buses, and upstreams that are processes of their own or servers of the test. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { onTestFinished } from 'vitest'
import { type Bus, type BusOptions, startBus } from '../support/bus.ts'
import type { Message } from '../support/line-client.ts'

/** A bus with one pool that is a URL, and whatever else. */
export function startNear(pool: object, { limits = {}, ...more }: BusOptions & { limits?: object } = {}): Promise<Bus> {
  return startBus({ config: { pools: [{ id: 'far', ...pool }], limits }, ...more })
}

/** The address of a door of a bus as the URL of a pool. */
export function urlOf(bus: Bus, door: 'unix' | 'tcp' | 'tls' = 'unix'): string {
  const address = bus.addresses.find((each) => each.startsWith(`${door}:`))!.slice(door.length + 1)
  return door === 'unix' ? `unix:${address}` : `${door}://${address}`
}

/** A reference to a variable, as the file spells it. */
export function variable(name: string): string {
  return `\${${name}}`
}

/** A port that nobody listens on, for now. */
export async function freePort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** What a request over HTTP was, as the server saw it. */
export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly message: Message
}

export type Serve = (seen: Seen, response: ServerResponse) => void

/** A server that does what the test says, and remembers what it was asked. */
export class HttpPuppet {
  readonly seen: Seen[] = []
  readonly server: Server
  #serve: Serve

  private constructor(serve: Serve) {
    this.#serve = serve
    this.server = createServer((request, response) => void this.#take(request, response))
  }

  static async start(serve: Serve, port = 0): Promise<HttpPuppet> {
    const puppet = new HttpPuppet(serve)
    await new Promise<void>((resolve) => puppet.server.listen(port, '127.0.0.1', resolve))
    onTestFinished(() => puppet.stop())
    return puppet
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`
  }

  /** From now on. */
  serve(serve: Serve): void {
    this.#serve = serve
  }

  stop(): Promise<void> {
    this.server.closeAllConnections()
    return new Promise((resolve) => this.server.close(() => resolve()))
  }

  /** The requests with this method of JSON-RPC or of HTTP. */
  times(method: string): Seen[] {
    return this.seen.filter((each) => each.method === method || each.message?.method === method)
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk)
    } catch {
      return
    }
    const body = Buffer.concat(chunks).toString()
    const { method = '', url: path = '', headers } = request
    const seen = { method, path, headers, message: body === '' ? undefined : JSON.parse(body) }
    this.seen.push(seen)
    this.#serve(seen, response)
  }
}

export function json(
  response: ServerResponse,
  value: unknown,
  status = 200,
  headers: Record<string, string> = {},
): void {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
}

export function events(response: ServerResponse, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
  response.flushHeaders()
}

export function event(response: ServerResponse, message: unknown, id?: string): void {
  const text = typeof message === 'string' ? message : JSON.stringify(message)
  response.write(`${id === undefined ? '' : `id: ${id}\n`}data: ${text}\n\n`)
}

export const result = (id: unknown, value: unknown = {}): object => ({ jsonrpc: '2.0', id, result: value })

export const WELCOME = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {}, resources: { subscribe: true }, logging: {} },
  serverInfo: { name: 'puppet', version: '1' },
}

/**
 * A server of the handshake era with a session, in which `serve` answers everything but the handshake and the stream of a
 * GET, which it does not have.
 */
export function handshakeServer(serve: Serve, session = 's-1'): Serve {
  return (seen, response) => {
    const { method, message } = seen
    if (method === 'GET') return void response.writeHead(405).end()
    if (method === 'DELETE') return void response.writeHead(200).end()
    if (message.method === 'initialize')
      return json(response, result(message.id, WELCOME), 200, { 'mcp-session-id': session })
    if (message.id === undefined || message.method === undefined) return void response.writeHead(202).end()
    serve(seen, response)
  }
}
