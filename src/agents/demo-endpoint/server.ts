/**
 * A tiny Chat Completions server on the loopback interface that answers as its script says.
 *
 * It serves the demo and the tests. It refuses every other address than loopback, keeps no state but what it has seen,
 * and never answers outside its script. Invariant: every request it took is in `requests`, with how it ended.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Reply, Step } from './reply.ts'

/** A request as the endpoint saw it. */
export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  // biome-ignore lint/suspicious/noExplicitAny: a scripted endpoint looks at whatever JSON a test sent
  readonly body: any
  /** How the exchange ended: `open` while it lasts, `aborted` when the caller went first. */
  ended: 'open' | 'answered' | 'aborted'
}

/** Decides what a request is answered with; `count` is the number of chat requests before this one. */
export type Script = (request: SeenRequest, count: number) => Reply | Promise<Reply>

/** Rows of `GET /models`, or `undefined` for an endpoint that has no such list. */
export type ModelRows = ReadonlyArray<{ readonly id: string } & Record<string, unknown>>

export interface EndpointOptions {
  readonly script: Script
  readonly models?: ModelRows | Script
  /** The path before `/chat/completions`. */
  readonly prefix?: string
  /** How many of the newest requests are remembered. */
  readonly memory?: number
}

export interface Endpoint {
  /** The base URL to configure. */
  readonly url: string
  readonly requests: SeenRequest[]
  /** The chat requests among `requests`. */
  chats(): SeenRequest[]
  close(): Promise<void>
}

const maxBodyBytes = 64 * 1024 * 1024

/** Starts an endpoint on a free loopback port. */
export async function startEndpoint(options: EndpointOptions): Promise<Endpoint> {
  const prefix = options.prefix ?? '/v1'
  const requests: SeenRequest[] = []
  let count = 0
  const server = createServer((incoming, outgoing) => {
    void take(incoming, outgoing).catch(() => outgoing.destroy())
  })

  async function take(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const seen = await readRequest(incoming)
    requests.push(seen)
    if (requests.length > (options.memory ?? 10_000)) requests.shift()
    outgoing.once('close', () => {
      seen.ended = outgoing.writableFinished ? 'answered' : 'aborted'
    })
    await play(outgoing, await choose(seen))
  }

  function choose(seen: SeenRequest): Reply | Promise<Reply> {
    if (seen.path === `${prefix}/chat/completions`) return options.script(seen, count++)
    if (seen.path !== `${prefix}/models` || options.models === undefined) return notFound
    return typeof options.models === 'function' ? options.models(seen, count) : listed(options.models)
  }

  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`,
    requests,
    chats: () => requests.filter((seen) => seen.path.endsWith('/chat/completions')),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const notFound: Reply = { status: 404, body: { error: { message: 'no such path' } } }

const listed = (models: ModelRows): Reply => ({ body: { object: 'list', data: models } })

async function readRequest(incoming: IncomingMessage): Promise<SeenRequest> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of incoming) {
    bytes += chunk.length
    if (bytes > maxBodyBytes) throw new Error('the request is too large for the scripted endpoint')
    chunks.push(chunk)
  }
  const url = new URL(incoming.url ?? '/', 'http://loopback')
  const body = bytes === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString('utf8'))
  return {
    method: incoming.method ?? '',
    path: url.pathname,
    query: url.searchParams,
    headers: incoming.headers,
    body,
    ended: 'open',
  }
}

async function play(outgoing: ServerResponse, reply: Reply): Promise<void> {
  if (reply.delayMs) await sleep(reply.delayMs, undefined, { ref: false })
  if (reply.steps) return playSteps(outgoing, reply)
  const body = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body ?? {})
  const type = typeof reply.body === 'string' ? 'text/plain' : 'application/json'
  outgoing.writeHead(reply.status ?? 200, { 'content-type': type, ...reply.headers }).end(body)
}

async function playSteps(outgoing: ServerResponse, reply: Reply): Promise<void> {
  outgoing.writeHead(reply.status ?? 200, { 'content-type': 'text/event-stream', ...reply.headers })
  outgoing.flushHeaders()
  for (const step of reply.steps ?? []) {
    if (outgoing.destroyed) return
    if ('hang' in step) return
    if ('cut' in step) return void cut(outgoing)
    if ('waitMs' in step) await sleep(step.waitMs, undefined, { ref: false })
    else if (!outgoing.write(bytesOf(step))) await drained(outgoing)
  }
  outgoing.end()
}

function bytesOf(step: Extract<Step, { event: unknown } | { raw: string | Uint8Array }>): string | Uint8Array {
  return 'raw' in step ? step.raw : `data: ${JSON.stringify(step.event)}\n\n`
}

/** Lets what was written leave first: a reset would take it along. */
function cut(outgoing: ServerResponse): void {
  setTimeout(() => outgoing.destroy(), 20)
}

function drained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      outgoing.off('drain', end).off('close', end)
      resolve()
    }
    outgoing.once('drain', end).once('close', end)
  })
}
