import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import {
  BusyPort,
  CLIENT,
  FakePort,
  httpAgent,
  type Line,
  until,
  workbench,
} from '../../test/fixtures/aio/workbench.ts'

type Answer = (
  request: { body: Line; headers: IncomingMessage['headers']; url: string },
  response: ServerResponse,
) => void

const json =
  (status: number, body: unknown): Answer =>
  (_request, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

const stream =
  (...events: string[]): Answer =>
  (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    for (const event of events) response.write(event)
    response.end()
  }

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
const said = (value: string) => [{ type: 'text', value }]

/** What the request brought as its secrets. */
const tokenOf = ({ headers }: { headers: IncomingMessage['headers'] }): string => headers.authorization!.slice(7)
const echo =
  (say: (token: string, headers: IncomingMessage['headers']) => unknown, status = 200): Answer =>
  (request, response) =>
    json(status, say(tokenOf(request), request.headers))(request, response)

const ANSWERS: Record<string, Answer> = {
  '/echo-whole': echo((_token, headers) => ({ result: { headers } })),
  '/echo-token': echo((token) => ({
    result: { [`key ${token}`]: [`you are ${token}, are you?`, `http://x/?t=${encodeURIComponent(token)}`, token] },
  })),
  '/echo-escaped': (request, response) => {
    const escaped = [...tokenOf(request)].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')
    response.writeHead(200, { 'content-type': 'application/json' }).end(`{"result":"${escaped}"}`)
  },
  '/echo-error': echo((token) => ({ error: { code: -32050, message: `bad ${token}`, data: { token } } }), 401),
  '/echo-404': echo((token) => ({ result: token }), 404),
  '/echo-stream': (request, response) =>
    stream(
      event({ partial: true, outputs: said(`a ${tokenOf(request)}`) }),
      event({ output: { type: 'error', message: tokenOf(request) } }),
    )(request, response),
  '/echo-nested': echo((_token, headers) => ({ result: JSON.stringify({ inner: JSON.stringify(headers) }) })),
  '/echo-all?api_key=key-of-the-address&v=2024-10-21': ({ headers, url }, response) =>
    json(200, {
      result: {
        said: [
          headers.authorization,
          atob(headers.authorization!.slice(6)),
          `sid is ${headers.cookie!.slice(-10)}`,
          url,
        ],
      },
    })({ headers, url, body: {} }, response),
  '/show': (request, response) => json(200, { jsonrpc: '2.0', id: 1, result: request })(request, response),
  '/bare': json(200, { text: 'bare' }),
  '/list': json(200, [1, 2]),
  '/output': json(200, { id: 99, output: { type: 'text', value: 'spoken' } }),
  '/rpc-error': json(500, { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'down' } }),
  '/rpc-result-404': json(404, { jsonrpc: '2.0', result: 'found all the same' }),
  '/bare-404': json(404, { detail: 'Not Found' }),
  '/html-502': (_request, response) =>
    response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>'),
  '/empty': (_request, response) => response.writeHead(204).end(),
  '/huge': json(200, { result: 'x'.repeat(3_000_000) }),
  '/cut': (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
    response.write('{"result":')
    setTimeout(() => response.destroy(), 20)
  },
  '/reset': (_request, response) => response.socket?.resetAndDestroy(),
  '/same': (_request, response) => response.writeHead(308, { location: '/bare' }).end(),
  '/loop': (_request, response) => response.writeHead(307, { location: '/loop' }).end(),
  '/elsewhere': (_request, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/steal' }).end(),
  '/nowhere': (_request, response) => response.writeHead(301, { location: 'http://[' }).end(),
  '/stream': stream(
    ': a comment\n\n',
    event({ partial: true, outputs: said('a') }),
    event({ partial: true, result: { outputs: said('b') } }),
    event({ id: 5, outputs: said('ab') }),
    'data: [DONE]\n\n',
  ),
  '/stream-cut-in-pieces': stream('data: {"res', 'ult":"wh', 'ole"}', '\n\n'),
  '/stream-no-end': stream(event({ partial: true, outputs: said('a') }), 'data: [DONE]\n\n'),
  '/stream-junk': stream('data: not json\n\n'),
  '/stream-error': stream(event({ error: { code: -32050, message: 'mid-stream' } })),
  '/stream-huge': stream(`data: ${'x'.repeat(3_000_000)}`),
  '/question': json(200, { jsonrpc: '2.0', id: 1, method: 'roots/list' }),
  '/stream-questions': stream(
    event({ jsonrpc: '2.0', id: 1, method: 'sampling/createMessage', params: {} }),
    event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progress: 1 } }),
    event({ jsonrpc: '2.0', id: 1, result: 'the answer' }),
  ),
  '/method-inside': json(200, { method: 'GET', path: '/' }),
  '/stream-long': stream(event({ partial: true, outputs: said('x') }).repeat(300) + event({ result: 'end' })),
  '/hang': () => {},
  '/help-404': json(404, { jsonrpc: '2.0', error: { code: -32601, message: 'Method not found' } }),
  '/help': (request, response) =>
    request.body['method'] === 'help'
      ? json(200, { methods: ['tools.call'], modalities: ['audio'], protocol: 'aio', mcp: { tools: true } })(
          request,
          response,
        )
      : json(200, { result: null })(request, response),
}

let server: Server
let origin: string
let requests = 0

beforeAll(async () => {
  server = createServer(async (request, response) => {
    requests += 1
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const body = JSON.parse(Buffer.concat(parts).toString()) as Line
    ANSWERS[request.url!]!({ body, headers: request.headers, url: request.url! }, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

async function ask(path: string, fields: Parameters<typeof httpAgent>[0] = {}, method = 'input') {
  const bench = workbench(new FakePort(), [httpAgent({ endpoint: `${origin}${path}`, ...fields })])
  const params = { inputs: said('x') }
  bench.gateway.receive(CLIENT, { method: `extractor::${method}`, params, id: 4, trace_id: 'T' }, 90)
  const { message } = await until(() => bench.port.replies.find((reply) => reply.message['id'] === 4), 'an answer')
  await bench.gateway.close()
  return { ...bench, reply: message as { result: Line; error: Line & { data: Line } } & Line }
}

describe('a stream that comes without a pause', () => {
  it('leaves the others their turns', async () => {
    verifies('N11-turns')
    const agent = httpAgent({ endpoint: `${origin}/stream-long` })
    const { gateway, port } = workbench(new BusyPort(), [agent])
    gateway.receive(CLIENT, { method: 'extractor::input', params: { inputs: said('x') }, id: 4 }, 90)
    await until(() => port.replies.some(({ message }) => message['id'] === 4), 'the answer')
    port.stop()
    await gateway.close()
    expect(port.replies).toHaveLength(301)
    // About a millisecond's worth.
    expect(port.perTurn.filter((count) => count > 10)).toEqual([])
  })
})

describe('an agent that gives back what it was sent', () => {
  const TOKEN = 'tok-1234+abc/xyz=='
  const headers = { authorization: `Bearer ${TOKEN}`, 'x-api-key': 'a "quoted" key' }

  it.each([
    ['/echo-whole', 'the header'],
    ['/echo-token', 'the token inside a text, a URL and a key'],
    ['/echo-escaped', 'the token in escapes'],
    ['/echo-error', 'an error'],
    ['/echo-404', 'an answer with another status'],
    ['/echo-stream', 'a stream'],
    ['/echo-nested', 'a text that is JSON'],
  ])('%s: no secret comes back in %s', async (path) => {
    verifies('N11-secrets')
    const { reply, port, traces } = await ask(path, { headers })
    const seen = JSON.stringify([reply, port.replies, traces.starts, traces.ends])
    expect(seen).toContain('[redacted]')
    for (const secret of [TOKEN, encodeURIComponent(TOKEN), 'quoted']) expect(seen).not.toContain(secret)
  })

  it('gives a password, a cookie and a key of the address away as little', async () => {
    const secrets = { authorization: `Basic ${btoa('me:open sesame')}`, cookie: 'a=1; sid=0123456789' }
    const { reply } = await ask(`/echo-all?api_key=key-of-the-address&v=2024-10-21`, { headers: secrets })
    expect(reply.result['said']).toEqual([
      '[redacted]',
      '[redacted]',
      'sid is [redacted]',
      '/echo-all?api_key=[redacted]&v=2024-10-21',
    ])
  })

  it('leaves everything else as it is', async () => {
    const { reply } = await ask('/bare', {
      headers: { ...headers, accept: 'bare', 'x-flag': 'on', 'x-title': 'a bare title' },
    })
    expect(reply.result).toEqual({ text: 'bare' })
  })
})

describe('what an agent says of its own', () => {
  it('is not taken for its answer', async () => {
    verifies('N17-ids')
    expect((await ask('/stream-questions')).reply.result).toBe('the answer')
    expect((await ask('/question')).reply.error.data).toMatchObject({ reason: 'agent_invalid_response' })
  })

  it('is told from a result that has such a field', async () => {
    expect((await ask('/method-inside')).reply.result).toEqual({ method: 'GET', path: '/' })
  })
})

describe('an agent behind HTTP', () => {
  it('gets the seed’s envelope and the trace', async () => {
    verifies('N11-post')
    const { reply, traces } = await ask('/show', { headers: { authorization: 'Bearer secret' } })
    expect(reply.result).toMatchObject({
      url: '/show',
      body: {
        jsonrpc: '2.0',
        method: 'extractor::input',
        params: { inputs: said('x'), _meta: { 'stdio-bus/call_id': 'T#4' } },
        trace_id: 'T',
        id: expect.any(Number),
      },
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: '[redacted]',
        traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
      },
    })
    expect(traces.only).toMatchObject({ type: 'http', protocol: 'aio', status: 'ok' })
    expect(traces.only).not.toHaveProperty('worker')
  })

  it('gets the bare method when it wants that', async () => {
    const { reply } = await ask('/show', { methodStyle: 'bare' })
    expect(reply.result['body']).toEqual({
      jsonrpc: '2.0',
      method: 'input',
      params: { inputs: said('x') },
      id: expect.any(Number),
    })
  })

  it.each([
    ['bare JSON', '/bare', { text: 'bare' }],
    ['a bare list', '/list', [1, 2]],
    ['output with a wrong id', '/output', { outputs: said('spoken') }],
    ['JSON-RPC with any status', '/rpc-result-404', 'found all the same'],
    ['a redirect on its own origin', '/same', { text: 'bare' }],
    ['an event cut in pieces', '/stream-cut-in-pieces', 'whole'],
  ])('is understood: %s', async (_title, path, result) => {
    verifies('N11-answers')
    expect((await ask(path)).reply).toMatchObject({ id: 4, result, trace_id: 'T', call_id: 4 })
  })

  it.each([
    ['an error of its own', '/rpc-error', -32000, undefined],
    ['an error in a stream', '/stream-error', -32050, undefined],
    ['bare JSON with a status', '/bare-404', -32603, { reason: 'agent_http_error', http_status: 404 }],
    ['HTML', '/html-502', -32603, { reason: 'agent_invalid_response', http_status: 502 }],
    ['nothing', '/empty', -32603, { reason: 'agent_invalid_response', http_status: 204 }],
    ['more than it may', '/huge', -32603, { reason: 'agent_invalid_response', http_status: 200 }],
    ['half an answer', '/cut', -32603, { reason: 'agent_invalid_response', http_status: 200 }],
    ['a reset', '/reset', -32603, { reason: 'agent_unreachable', retryable: true }],
    ['a redirect to another origin', '/elsewhere', -32603, { reason: 'agent_redirect' }],
    ['a redirect to nowhere', '/nowhere', -32603, { reason: 'agent_redirect' }],
    ['redirects without end', '/loop', -32603, { reason: 'agent_redirect' }],
    ['a stream without an end', '/stream-no-end', -32603, { reason: 'agent_invalid_response', http_status: 200 }],
    ['a stream that is no JSON', '/stream-junk', -32603, { reason: 'agent_invalid_response', http_status: 200 }],
    ['a stream over the limit', '/stream-huge', -32603, { reason: 'agent_invalid_response', http_status: 200 }],
  ])('fails: %s', async (_title, path, code, data) => {
    verifies('N11-answers')
    const { reply, traces } = await ask(path)
    expect(reply).toMatchObject({ id: 4, error: { code, ...(data === undefined ? {} : { data }) }, call_id: 4 })
    expect(traces.only.status).toBe('error')
  })

  it('is told apart from an agent that is not there', async () => {
    verifies('N11-unreachable')
    const closed = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => closed.once('listening', resolve))
    const { port } = closed.address() as AddressInfo
    await new Promise((resolve) => closed.close(resolve))
    const { reply } = await ask('', { endpoint: `http://127.0.0.1:${port}/` })
    expect(reply.error).toMatchObject({ code: -32603, data: { reason: 'agent_unreachable', retryable: true } })
    expect(reply.error['message']).toContain('ECONNREFUSED')
  })

  it('streams partials and then its answer', async () => {
    const { port, traces } = await ask('/stream')
    expect(port.replies.map(({ message }) => message)).toMatchObject([
      { method: 'extractor::partial', params: { id: 4, seq: 1, outputs: said('a'), partial: true }, trace_id: 'T' },
      { params: { seq: 2, outputs: said('b') } },
      { id: 4, result: { outputs: said('ab') } },
    ])
    expect(traces.only).toMatchObject({ partials: 2, status: 'ok' })
  })

  it('is not read further while the caller has no room', async () => {
    const port = new FakePort()
    let release = (): void => {}
    const full = new Promise<void>((resolve) => {
      release = resolve
    })
    const bench = workbench(Object.assign(port, { room: () => full }), [httpAgent({ endpoint: `${origin}/stream` })])
    bench.gateway.receive(CLIENT, { method: 'extractor::x', id: 4 }, 90)
    await until(() => port.replies.length === 1, 'the first partial')
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(port.replies).toHaveLength(1)
    release()
    await until(() => port.replies.length === 3, 'the rest')
    await bench.gateway.close()
  })

  it('is given up after its time, and asked only once', async () => {
    verifies('N11-once')
    const before = requests
    const { reply } = await ask('/hang', { timeoutMs: 100 })
    expect(reply.error.data).toMatchObject({ reason: 'agent_timeout', timeout_ms: 100 })
    expect(requests - before).toBe(1)
  })

  it('is described by its own help', async () => {
    const { reply } = await ask('/help', {}, 'help')
    expect(reply.result).toEqual({
      type: 'http',
      methods: ['tools.call'],
      modalities: ['audio'],
      mcp: { resources: false, prompts: false, tools: true, sampling: false },
      protocol: 'aio',
    })
  })

  it('is described by the configuration when it has none', async () => {
    const { reply } = await ask('/help-404', {}, 'help')
    expect(reply.result).toMatchObject({ type: 'http', methods: ['input', 'help'] })
  })
})
