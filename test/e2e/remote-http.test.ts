/** Clauses 11.3 to 11.5: MCP over HTTP, with a server that does what it should not. */
import { createServer as createHttpServer, request as httpRequest } from 'node:http'
import { connect as connectTcp, createServer as createTcpServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { initializeLine, MODERN, shakeHands } from '../interop/mcp-peers.ts'
import type { Bus } from '../support/bus.ts'
import type { LineClient, Message } from '../support/line-client.ts'
import { eventually, sleep } from '../support/waiting.ts'
import {
  event,
  events,
  freePort,
  HttpPuppet,
  handshakeServer,
  json,
  result,
  type Serve,
  startNear,
  variable,
  WELCOME,
} from './remote-harness.ts'

const call = (id: unknown, name = 'tool', more: object = {}): Message => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: {}, ...more },
})

/** A client that has shaken hands with a puppet through a bus. */
async function meet(serve: Serve, pool: object = {}): Promise<{ puppet: HttpPuppet; bus: Bus; client: LineClient }> {
  const puppet = await HttpPuppet.start(handshakeServer(serve))
  const bus = await startNear({ url: puppet.url, ...pool })
  const client = await bus.connect()
  await shakeHands(client)
  return { puppet, bus, client }
}

const answer: Serve = ({ message }, response) => json(response, result(message.id, { said: message.params?.name }))

describe('the session', () => {
  test('id and version are sent with everything, and it is deleted at the end', async () => {
    verifies('11.3-session', '11.6-header', '11.3-get-stream')
    const { puppet, bus, client } = await meet(answer)
    expect((await client.ask(call(1))).result).toEqual({ said: 'tool' })
    const [asked] = puppet.times('tools/call')
    expect(asked!.headers).toMatchObject({
      'mcp-session-id': 's-1',
      'mcp-protocol-version': '2025-11-25',
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'stdio-bus-via': expect.stringMatching(/^[\w-]{36}$/),
    })
    const [first] = puppet.times('initialize')
    expect(first!.headers['mcp-session-id']).toBeUndefined()
    await bus.stop()
    expect(puppet.times('DELETE').map(({ headers }) => headers['mcp-session-id'])).toEqual(['s-1'])
    expect(puppet.times('GET')).toHaveLength(1)
  })

  test('the notification that it is initialised comes before anything else', async () => {
    let isInitialised = false
    const inner = handshakeServer((seen, response) => {
      if (isInitialised) answer(seen, response)
      else json(response, result(seen.message.id, { said: 'too early' }))
    })
    const puppet = await HttpPuppet.start((seen, response) => {
      if (seen.message?.method !== 'notifications/initialized') return inner(seen, response)
      setTimeout(() => {
        isInitialised = true
        response.writeHead(202).end()
      }, 300)
    })
    const bus = await startNear({ url: puppet.url, sharing: 'isolated' })
    const client = await bus.connect()
    await shakeHands(client)
    expect((await client.ask(call(1))).result).toEqual({ said: 'tool' })
  })

  test.each([
    ['404', (response: Parameters<Serve>[1]) => void response.writeHead(404).end()],
    [
      'a 400 that speaks of it',
      (response: Parameters<Serve>[1]) =>
        json(
          response,
          { jsonrpc: '2.0', error: { code: -32000, message: 'Bad Request: No valid session ID provided' } },
          400,
        ),
    ],
  ])(
    'lost (%s): initialised once for all, subscribed again, and what was refused is sent again',
    async (_how, refuse) => {
      verifies('11.3-lost-session')
      let session = 0
      const seenBySession = new Map<string, string[]>()
      const serve: Serve = (seen, response) => {
        const { message, headers, method } = seen
        if (message?.method === 'initialize')
          return json(response, result(message.id, WELCOME), 200, { 'mcp-session-id': `s-${++session}` })
        const of = String(headers['mcp-session-id'])
        if (of !== `s-${session}`) return refuse(response)
        seenBySession.set(of, [...(seenBySession.get(of) ?? []), message?.method ?? method])
        if (method === 'GET') return void response.writeHead(405).end()
        if (message?.id === undefined) return void response.writeHead(202).end()
        setTimeout(() => json(response, result(message.id, { of })), 50)
      }
      const puppet = await HttpPuppet.start(serve)
      const bus = await startNear({ url: puppet.url })
      const client = await bus.connect()
      await shakeHands(client)
      await client.ask({ jsonrpc: '2.0', id: 's', method: 'resources/subscribe', params: { uri: 'x://1' } })
      await client.ask({ jsonrpc: '2.0', id: 'l', method: 'logging/setLevel', params: { level: 'debug' } })
      expect((await client.ask(call(1))).result).toEqual({ of: 's-1' })
      session++
      for (const id of [2, 3, 4]) client.send(call(id))
      const answers = [await client.next(), await client.next(), await client.next()]
      expect(answers.map(({ id, result: { of } }) => [id, of]).sort()).toEqual([
        [2, 's-3'],
        [3, 's-3'],
        [4, 's-3'],
      ])
      expect(seenBySession.get('s-3')!.slice(0, 3).sort()).toEqual([
        'logging/setLevel',
        'notifications/initialized',
        'resources/subscribe',
      ])
      expect(puppet.times('initialize')).toHaveLength(2)
    },
  )

  test('a subscription that the new session does not take costs that alone', async () => {
    verifies('11.3-lost-session')
    let session = 1
    let isThere = true
    const inner = handshakeServer(answer)
    const puppet = await HttpPuppet.start((seen, response) => {
      const { message, headers, method } = seen
      if (message?.method === 'initialize')
        return json(response, result(message.id, WELCOME), 200, { 'mcp-session-id': `s-${session}` })
      if (headers['mcp-session-id'] !== `s-${session}` && method === 'POST') return void response.writeHead(404).end()
      if (message?.method !== 'resources/subscribe' || isThere) return inner(seen, response)
      json(response, { jsonrpc: '2.0', id: message.id, error: { code: -32602, message: 'no such resource' } })
    })
    const bus = await startNear({ url: puppet.url })
    const client = await bus.connect()
    await shakeHands(client)
    await client.ask({ jsonrpc: '2.0', id: 's', method: 'resources/subscribe', params: { uri: 'x://1' } })
    isThere = false
    for (const lost of [1, 2]) {
      session++
      expect((await client.ask(call(lost))).result).toEqual({ said: 'tool' })
    }
    expect(puppet.times('resources/subscribe')).toHaveLength(2)
    expect((await bus.status()).workers[0]).toMatchObject({ state: 'ready', generation: 1 })
  })

  test('lost for good: the worker ends, is started again, and clients notice one failure at the most', async () => {
    let isBroken = false
    const inner = handshakeServer(answer)
    const puppet = await HttpPuppet.start((seen, response) => {
      if (isBroken) return void response.writeHead(404).end()
      inner(seen, response)
    })
    const bus = await startNear({ url: puppet.url })
    const client = await bus.connect()
    await shakeHands(client)
    isBroken = true
    expect((await client.ask(call(1))).error.data).toMatchObject({
      reason: 'worker_exited',
      why: expect.stringContaining('ended the session and opens no other'),
    })
    isBroken = false
    expect((await client.ask(call(2))).result).toEqual({ said: 'tool' })
  })
})

describe('streams', () => {
  test('what is said on the stream of a request comes before its answer', async () => {
    const { client } = await meet(({ message }, response) => {
      events(response)
      const progressToken = message.params._meta.progressToken
      event(response, { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } })
      response.write(': a comment\n\nevent: ping\ndata: {}\n\n')
      // Of any layout.
      response.write(
        `data: {"jsonrpc":"2.0",\ndata: "id":${JSON.stringify(message.id)},\ndata: "result":{"a":\ndata: 1}}\n\n`,
      )
      response.end()
    })
    client.send(call(1, 'x', { _meta: { progressToken: 'p' } }))
    expect((await client.next()).params).toEqual({ progressToken: 'p', progress: 1 })
    expect((await client.nextLine()).toString()).toBe('{"jsonrpc":"2.0", "id":1, "result":{"a": 1}}')
  })

  test('what belongs to no request comes over the stream of a GET, which is opened again behind the last event', async () => {
    verifies('11.3-get-stream', '11.3-resume')
    const updated = (uri: string) => ({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } })
    const inner = handshakeServer(answer)
    const puppet = await HttpPuppet.start((seen, response) => {
      if (seen.method !== 'GET') return inner(seen, response)
      events(response)
      response.write('retry: 60\n\n')
      event(response, updated(`x://${seen.headers['last-event-id'] ?? 'first'}`), 'e-7')
      if (seen.headers['last-event-id'] === undefined) setTimeout(() => response.end(), 50)
    })
    const bus = await startNear({ url: puppet.url })
    const client = await bus.connect()
    await shakeHands(client)
    for (const uri of ['x://first', 'x://e-7'])
      await client.ask({ jsonrpc: '2.0', id: uri, method: 'resources/subscribe', params: { uri } })
    const heard: string[] = []
    await eventually('the second update', async () => {
      heard.push((await client.next()).params?.uri)
      return heard.includes('x://e-7')
    })
    expect(puppet.times('GET')[1]!.headers).toMatchObject({ 'last-event-id': 'e-7', 'mcp-session-id': 's-1' })
  })

  test.each([404, 400])(
    'hostile: %i for the stream of a GET in every session opens no session after the other',
    async (status) => {
      verifies('11.3-get-stream', '11.3-lost-session')
      const inner = handshakeServer(answer)
      const refusal = { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'No session for that' } }
      const puppet = await HttpPuppet.start((seen, response) => {
        if (seen.method === 'GET') json(response, refusal, status)
        else inner(seen, response)
      })
      const bus = await startNear({ url: puppet.url })
      const client = await bus.connect()
      await shakeHands(client)
      await sleep(500)
      expect((await client.ask(call(1))).result).toEqual({ said: 'tool' })
      expect([puppet.times('initialize'), puppet.times('GET')].map(({ length }) => length)).toEqual([1, 1])
    },
  )

  test('the stream of a GET that is refused by the wire again and again is had as soon as it can be', async () => {
    verifies('11.3-get-stream')
    let isCut = true
    const inner = handshakeServer((_seen, response) => events(response))
    const puppet = await HttpPuppet.start((seen, response) => {
      if (seen.method !== 'GET') return inner(seen, response)
      if (isCut && puppet.times('GET').length > 1) return void response.destroy()
      events(response)
      if (isCut) return void response.end('retry: 50\n\n')
      event(response, { jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
    })
    const bus = await startNear({ url: puppet.url })
    const client = await bus.connect()
    await shakeHands(client)
    client.send(call('open for long'))
    await eventually('more tries than a few', () => puppet.times('GET').length > 6)
    isCut = false
    expect(await client.next()).toMatchObject({ method: 'notifications/tools/list_changed' })
  })

  test('torn before the answer: taken up again, with nothing lost and nothing twice', async () => {
    verifies('11.3-resume')
    const log = (data: string) => ({
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'error', data },
    })
    let resumes = 0
    const inner = handshakeServer(({ message }, response) => {
      events(response)
      response.write('retry: 50\n\n')
      event(response, log('one'), `${message.id}/1`)
      // In the middle of an event.
      response.write(`id: ${message.id}/2\ndata: {"jsonrpc":"2.0","id":`)
      setTimeout(() => response.destroy(), 50)
    })
    const puppet = await HttpPuppet.start((seen, response) => {
      const last = seen.headers['last-event-id']
      if (seen.method !== 'GET' || last === undefined) return inner(seen, response)
      if (++resumes === 1) return void response.writeHead(503).end()
      events(response)
      const id = Number(String(last).split('/')[0])
      if (resumes === 2) {
        event(response, log('two'), `${id}/2`)
        return void setTimeout(() => response.end(), 20)
      }
      event(response, result(id, { from: last }), `${id}/3`)
      response.end()
    })
    const bus = await startNear({ url: puppet.url, sharing: 'isolated' })
    const client = await bus.connect()
    await shakeHands(client)
    client.send(call(9))
    const heard = await client.take(3)
    expect(heard.map((each) => each.params?.data ?? each.result?.from)).toEqual(['one', 'two', '9/2'])
    expect(puppet.times('tools/call')).toHaveLength(1)
  })

  test('an event may be called anything', async () => {
    verifies('11.3-resume')
    const inner = handshakeServer(({ message }, response) => {
      events(response)
      response.write('retry: 50\n\n')
      event(response, { jsonrpc: '2.0', method: 'notifications/message', params: { data: 1 } }, `${message.id}/€`)
      setTimeout(() => response.end(), 20)
    })
    const puppet = await HttpPuppet.start((seen, response) => {
      const last = seen.headers['last-event-id']
      if (seen.method !== 'GET' || last === undefined) return inner(seen, response)
      events(response)
      const from = Buffer.from(String(last), 'latin1').toString()
      event(response, result(Number(from.split('/')[0]), { from }), 'end')
      response.end()
    })
    const bus = await startNear({ url: puppet.url, sharing: 'isolated' })
    const client = await bus.connect()
    await shakeHands(client)
    client.send(call(9))
    expect((await client.take(2))[1]).toMatchObject({ id: 9, result: { from: '9/€' } })
  })

  test('torn where nothing can be taken up again: its request fails, the others go on', async () => {
    verifies('11.3-no-resume', '11.4-broken-off', '11.4-others-unharmed')
    const { client, bus } = await meet(({ message }, response) => {
      if (message.params.name === 'fine') return void setTimeout(() => json(response, result(message.id, 'fine')), 500)
      if (message.params.name === 'early') return void response.destroy()
      events(response)
      event(response, { jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
      setTimeout(() => (message.params.name === 'torn' ? response.destroy() : response.end()), 30)
    })
    for (const [id, name] of [
      [1, 'fine'],
      [2, 'torn'],
      [3, 'ended'],
      [4, 'early'],
    ] as const)
      client.send(call(id, name))
    const answers = new Map<number, Message>()
    while (answers.size < 4) {
      const message = await client.next()
      if (message.id !== undefined) answers.set(message.id, message)
    }
    for (const id of [2, 3, 4])
      expect(answers.get(id).error.data).toMatchObject({
        reason: 'worker_exited',
        why: expect.any(String),
        retryable: true,
      })
    expect(answers.get(1).result).toBe('fine')
    expect((await bus.status()).workers[0]).toMatchObject({ state: 'ready', generation: 1 })
  })

  test('a reader that is slow makes the upstream wait; nothing is lost', async () => {
    const count = 3_000
    let written = 0
    const { client, bus } = await meet(
      ({ message }, response) => {
        events(response)
        const pad = 'x'.repeat(4_000)
        const more = (): void => {
          while (written < count) {
            const params = { level: 'error', data: { n: written++, pad } }
            const text = `data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params })}\n\n`
            if (!response.write(text)) return void response.once('drain', more)
          }
          event(response, result(message.id))
          response.end()
        }
        more()
      },
      { sharing: 'isolated', limits: { max_output_queue: 100_000 } },
    )
    client.pause()
    client.send(call(1))
    await sleep(1_500)
    expect(written).toBeLessThan(count)
    const { queue_bytes } = await bus.status()
    expect(queue_bytes).toBeLessThan(6_000_000)
    client.resume()
    for (let n = 0; n < count; n++) expect((await client.next()).params.data.n).toBe(n)
    expect(await client.next()).toMatchObject({ id: 1, result: {} })
  })
})

describe('cancelling', () => {
  test('is a message in the handshake era', async () => {
    verifies('11.3-cancel')
    const { puppet, client } = await meet((_seen, response) => events(response))
    client.send(call(1))
    await eventually('the call', () => puppet.times('tools/call').length === 1)
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    const cancelled = await eventually('the cancel', () => puppet.times('notifications/cancelled')[0])
    expect(cancelled.message.params.requestId).toEqual(puppet.times('tools/call')[0]!.message.id)
    await client.staysQuiet(300)
  })

  test('closes the response in the stateless era, and nothing is sent', async () => {
    verifies('11.3-cancel')
    let closed = 0
    const puppet = await HttpPuppet.start(({ message }, response) => {
      if (message.method === 'server/discover') return json(response, result(message.id, DISCOVERED))
      events(response)
      response.once('close', () => closed++)
    })
    const bus = await startNear({ url: puppet.url, era: 'modern' })
    const client = await bus.connect()
    client.send(call(1, 'slow', { _meta: MODERN }))
    await eventually('the call', () => puppet.times('tools/call').length === 1)
    client.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    await eventually('the response to be closed', () => closed === 1)
    expect(puppet.times('notifications/cancelled')).toEqual([])
    client.send(call(2, 'slow', { _meta: MODERN }))
    await eventually('the second call', () => puppet.times('tools/call').length === 2)
    client.close()
    await eventually('its response to be closed', () => closed === 2)
  })
})

const DISCOVERED = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, resultType: 'complete' }

describe('the stateless era', () => {
  test('is found out where a server knows no handshake', async () => {
    const puppet = await HttpPuppet.start(({ method, message: { id, method: asked } }, response) => {
      if (method !== 'POST') return void response.writeHead(405).end()
      if (asked === 'server/discover') return json(response, result(id, DISCOVERED))
      if (asked === 'initialize')
        return json(response, { jsonrpc: '2.0', id, error: { code: -32022, message: 'old' } }, 400)
      json(response, result(id, { content: [], resultType: 'complete' }))
    })
    const bus = await startNear({ url: puppet.url })
    await bus.allReady()
    const client = await bus.connect()
    expect(await client.ask(call(1, 'x', { _meta: MODERN }))).toMatchObject({ id: 1, result: { content: [] } })
    expect(puppet.times('GET')).toEqual([])
  })

  test('headers are those of the body; parameters those that the tools want', async () => {
    verifies('11.3-stateless-headers')
    const tools = [
      {
        name: 'wants',
        inputSchema: {
          type: 'object',
          properties: {
            region: { type: 'string', 'x-mcp-header': 'Region' },
            deep: { type: 'object', properties: { n: { type: 'integer', 'x-mcp-header': 'Count' } } },
            plain: { type: 'string' },
          },
        },
      },
    ]
    const puppet = await HttpPuppet.start(({ message, headers }, response) => {
      const { id, method, params } = message
      if (method === 'server/discover') return json(response, result(id, DISCOVERED))
      if (method === 'tools/list') {
        const page = params.cursor === undefined ? { tools: [], nextCursor: 'two' } : { tools }
        return json(response, result(id, { ...page, resultType: 'complete' }))
      }
      const isMissing = params.name === 'wants' && headers['mcp-param-region'] === undefined
      if (isMissing) return json(response, { jsonrpc: '2.0', id, error: { code: -32020, message: 'headers' } }, 400)
      json(response, result(id, { resultType: 'complete', content: [] }))
    })
    const bus = await startNear({ url: puppet.url, era: 'modern' })
    const client = await bus.connect()
    const args = { region: 'süd', deep: { n: 7 }, plain: 'x' }
    expect(await client.ask(call(1, 'wants', { arguments: args, _meta: MODERN }))).toMatchObject({
      result: { content: [] },
    })
    const sent = puppet.times('tools/call')
    expect(sent).toHaveLength(2)
    expect(sent[1]!.headers).toMatchObject({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'wants',
      'mcp-param-region': `=?base64?${Buffer.from('süd').toString('base64')}?=`,
      'mcp-param-count': '7',
    })
    expect(sent[1]!.headers['mcp-session-id']).toBeUndefined()
    expect(await client.ask(call(2, 'wants', { arguments: args, _meta: MODERN }))).toMatchObject({ result: {} })
    expect(puppet.times('tools/call')).toHaveLength(3)
    const read = { jsonrpc: '2.0', id: 3, method: 'resources/read', params: { uri: 'x://1', _meta: MODERN } }
    await client.ask(read)
    expect(puppet.times('resources/read')[0]!.headers).toMatchObject({
      'mcp-name': 'x://1',
      'mcp-method': 'resources/read',
    })
  })

  test('a call that is refused for its headers whatever is done is told so, once', async () => {
    const puppet = await HttpPuppet.start(({ message: { id, method } }, response) => {
      if (method === 'server/discover') return json(response, result(id, DISCOVERED))
      if (method === 'tools/list') return json(response, result(id, { tools: [] }))
      json(response, { jsonrpc: '2.0', id, error: { code: -32020, message: 'headers' } }, 400)
    })
    const bus = await startNear({ url: puppet.url, era: 'modern' })
    const client = await bus.connect()
    expect((await client.ask(call(1, 'x', { _meta: MODERN }))).error.code).toBe(-32020)
    expect(puppet.times('tools/call')).toHaveLength(1)
  })
})

describe('faults', () => {
  test('a JSON-RPC answer of any status is passed on; an error without an id gets that of its request', async () => {
    verifies('11.4-any-status')
    const { client } = await meet(({ message: { id, params } }, response) => {
      if (params.name === 'teapot')
        return json(response, { jsonrpc: '2.0', id, error: { code: 7, message: 'tea' } }, 418)
      if (params.name === 'null')
        return json(response, { jsonrpc: '2.0', id: null, error: { code: 8, message: 'who' } }, 400)
      json(response, { jsonrpc: '2.0', error: { code: 9, message: 'nobody', data: { a: 1 } } }, 500)
    })
    expect((await client.ask(call(1, 'teapot'))).error).toEqual({ code: 7, message: 'tea' })
    expect((await client.ask(call('two', 'null'))).error).toEqual({ code: 8, message: 'who' })
    expect((await client.ask(call(3, 'none'))).error).toEqual({ code: 9, message: 'nobody', data: { a: 1 } })
  })

  test.each<[number, Record<string, string>, object]>([
    [418, {}, {}],
    [301, { location: '/elsewhere' }, {}],
    [408, {}, { retryable: true }],
    [429, { 'retry-after': '7' }, { retryable: true, retry_after_ms: 7_000 }],
    [503, {}, { retryable: true }],
    [403, {}, {}],
  ])('HTTP %i', async (status, headers, detail) => {
    verifies('11.4-other-status')
    const { client } = await meet((_seen, response) => void response.writeHead(status, headers).end('<html>'))
    const { error } = await client.ask(call(1))
    expect(error).toMatchObject({ code: -32603, data: { reason: 'upstream_failed', status } })
    expect(error.data).toEqual({ reason: 'upstream_failed', status, ...detail })
    expect((await client.ask({ jsonrpc: '2.0', id: 2, method: 'ping' })).result).toEqual({})
  })

  test.each<[string, Serve]>([
    ['no JSON', (_seen, response) => json(response, '{"jsonrpc":')],
    [
      'a line break inside a string',
      ({ message }, response) => json(response, `{"jsonrpc":"2.0","id":${message.id},"result":"a\n{\\"b\\"}"}`),
    ],
    ['no JSON-RPC', (_seen, response) => json(response, { hello: 'world' })],
    ['a page', (_seen, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')],
    ['nothing', (_seen, response) => void response.writeHead(202).end()],
    ['the answer to another', (_seen, response) => json(response, result('another'))],
    [
      'an id of another type',
      ({ message }, response) => json(response, result(typeof message.id === 'number' ? String(message.id) : 1)),
    ],
    [
      'an event that is no JSON',
      (_seen, response) => {
        events(response)
        event(response, 'hello')
      },
    ],
    [
      'an event that answers another',
      (_seen, response) => {
        events(response)
        event(response, result(4_711))
      },
    ],
    [
      'events that are no UTF-8',
      (_seen, response) => {
        events(response)
        response.write(Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0xfe, 0x0a, 0x0a]))
      },
    ],
  ])('%s', async (_what, serve) => {
    verifies('11.4-bad-response')
    const { client, bus } = await meet(serve)
    expect((await client.ask(call(1))).error).toMatchObject({ code: -32603, data: { reason: 'upstream_bad_response' } })
    expect((await bus.status()).workers[0]).toMatchObject({ state: 'ready', generation: 1 })
  })

  test.each<[string, Serve]>([
    ['a body', ({ message }, response) => json(response, result(message.id, 'x'.repeat(300_000)))],
    [
      'a body that never ends',
      (_seen, response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        endless(response)
      },
    ],
    [
      'an event',
      ({ message }, response) => {
        events(response)
        event(response, result(message.id, 'x'.repeat(300_000)))
      },
    ],
    [
      'an event that never ends',
      (_seen, response) => {
        events(response)
        response.write('data: ')
        endless(response)
      },
    ],
    [
      'an error page',
      (_seen, response) => {
        response.writeHead(500, { 'content-type': 'text/html' })
        endless(response)
      },
    ],
  ])('too large: %s', async (_what, serve) => {
    verifies('11.4-too-large')
    const { client, bus } = await meet(serve, { limits: { max_input_buffer: 200_000 } })
    expect((await client.ask(call(1))).error).toMatchObject({ code: -32603, data: { reason: 'upstream_too_large' } })
    expect((await bus.status()).workers[0]).toMatchObject({ state: 'ready', generation: 1 })
  })

  test('credentials that are refused park the worker, and are shown nowhere', async () => {
    verifies('11.2-refused', '11.5-secrets')
    const puppet = await HttpPuppet.start(({ headers }, response) => {
      // A server that repeats what it was told.
      response.writeHead(401, { 'content-type': 'text/plain' }).end(`no: ${headers.authorization}`)
    })
    const bus = await startNear(
      {
        url: `${puppet.url}?key=${variable('KEY')}`,
        headers: { Authorization: `Bearer ${variable('KEY')}` },
        trace: true,
      },
      { env: { KEY: 'very-secret' }, args: ['--log-level', 'debug'] },
    )
    const status = await bus.statusWhere('it is parked', ({ workers }) => workers[0]?.state === 'parked')
    expect(status.workers[0]).toMatchObject({ restarts: 0, last_error: expect.stringContaining('HTTP 401') })
    const client = await bus.connect()
    const { error } = await client.ask(initializeLine(1))
    expect(error.data).toMatchObject({
      reason: 'no_worker',
      why: `${puppet.url}: it refuses the credentials (HTTP 401)`,
    })
    expect(puppet.seen[0]).toMatchObject({
      path: '/mcp?key=very-secret',
      headers: { authorization: 'Bearer very-secret' },
    })
    const page = (await bus.run(['status', '--control', bus.control])).stdout
    expect([bus.log.text, JSON.stringify([status, error]), page].join()).not.toContain('very-secret')
  })

  test('a token is sent as a bearer; when it expires, its request is told, and the worker is parked', async () => {
    verifies('11.2-refused')
    const { client, bus, puppet } = await meet((_seen, response) => void response.writeHead(401).end(), {
      token: 'abc',
    })
    expect(puppet.seen.every(({ headers }) => headers.authorization === 'Bearer abc')).toBe(true)
    expect((await client.ask(call(1))).error.data).toEqual({ reason: 'upstream_failed', status: 401 })
    await bus.statusWhere('it is parked', ({ workers }) => workers[0]?.state === 'parked')
  })

  test('one that is down is found when it comes, and again when it comes back', async () => {
    verifies('11.2-down-at-start', '11.2-comes-back', '11.4-cannot-connect')
    const port = await freePort()
    const bus = await startNear(
      { url: `http://127.0.0.1:${port}/mcp` },
      { limits: { max_restarts: 3, restart_window_sec: 2 } },
    )
    await bus.statusWhere('it is parked', ({ workers }) => workers[0]?.state === 'parked')
    const client = await bus.connect()
    expect((await client.ask(initializeLine(1))).error.data).toMatchObject({
      reason: 'no_worker',
      why: expect.stringContaining('nobody listens'),
    })
    const first = await HttpPuppet.start(handshakeServer(answer), port)
    await bus.allReady()
    await shakeHands(client, 2)
    expect((await client.ask(call(3))).result).toEqual({ said: 'tool' })
    await first.stop()
    expect((await client.ask(call(4))).error.data).toMatchObject({ why: expect.any(String), retryable: true })
    await HttpPuppet.start(handshakeServer(answer), port)
    await eventually(
      'it to answer again',
      async () => (await client.ask(call(`again-${Math.random()}`))).result !== undefined,
    )
  })

  test('somebody who takes connections and says nothing harms nobody', async () => {
    const server = createTcpServer((socket) => void socket.on('error', () => {})).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as { port: number }
    const bus = await startNear({ url: `http://127.0.0.1:${port}/`, start_timeout_sec: 1, restart: 'never' })
    const status = await bus.statusWhere('it is given up', ({ workers }) => workers[0]?.state === 'stopped')
    expect(status.workers).toHaveLength(1)
  })
})

describe('ways through other buses', () => {
  test('are told before anything else is sent, in front of the id of this bus; 508 parks the worker', async () => {
    verifies('11.6-header', '11.2-refused')
    let isLoop = false
    const serve = handshakeServer(answer)
    const puppet = await HttpPuppet.start((seen, response) => {
      if (isLoop && String(seen.headers['stdio-bus-via']).startsWith('b,')) response.writeHead(508).end()
      else serve(seen, response)
    })
    const bus = await startNear({ url: puppet.url })
    const guest = await bus.connect()
    await guest.ask({ jsonrpc: '2.0', id: 'o', method: 'bus::open', params: { via: ['a', 'z'] } })
    await shakeHands(guest)
    await guest.ask(call(1))
    const vias = puppet.seen.map(({ headers }) => String(headers['stdio-bus-via']))
    expect(vias.filter((via) => via.startsWith('a, z, '))).toHaveLength(1)
    isLoop = true
    await guest.ask({ jsonrpc: '2.0', id: 'o2', method: 'bus::open', params: { via: ['b'] } })
    const { error } = await guest.ask(call(2))
    expect(error.data).toMatchObject({ reason: 'worker_exited', why: expect.stringContaining('leads back') })
    expect(puppet.times('tools/call')).toHaveLength(1)
    const { workers } = await bus.statusWhere('it is parked', (status) => status.workers[0]?.state === 'parked')
    expect(workers[0]).toMatchObject({ last_error: expect.stringContaining('leads back') })
  })
})

describe('proxies', () => {
  test.each(['http_proxy', 'HTTP_PROXY'])('%s leads to a host that only the proxy knows', async (name) => {
    verifies('11.5-proxies')
    const puppet = await HttpPuppet.start(handshakeServer(answer))
    const { port, asked } = await startProxy(puppet.port)
    const env = { [name]: `http://127.0.0.1:${port}` }
    const bus = await startNear({ url: 'http://far.test/mcp' }, { env })
    const client = await bus.connect()
    await shakeHands(client)
    expect((await client.ask(call(1))).result).toEqual({ said: 'tool' })
    expect(asked).toContain('far.test:80')
  })

  test('none is asked for this machine', async () => {
    verifies('11.5-proxies')
    const puppet = await HttpPuppet.start(handshakeServer(answer))
    const bus = await startNear(
      { url: puppet.url },
      { env: { HTTP_PROXY: 'http://127.0.0.1:1', http_proxy: 'http://127.0.0.1:1' } },
    )
    const client = await bus.connect()
    await shakeHands(client)
    expect((await client.ask(call(1))).result).toEqual({ said: 'tool' })
  })
})

/** A proxy that leads everywhere to the same port, and remembers what it was asked for. */
async function startProxy(target: number): Promise<{ port: number; asked: string[] }> {
  const asked: string[] = []
  const proxy = createHttpServer((request, response) => {
    const { host, pathname } = new URL(request.url!)
    asked.push(host.includes(':') ? host : `${host}:80`)
    const { method, headers } = request
    const onward = httpRequest({ port: target, host: '127.0.0.1', path: pathname, method, headers }, (answered) => {
      response.writeHead(answered.statusCode!, answered.headers)
      answered.pipe(response)
    })
    onward.on('error', () => response.destroy())
    request.pipe(onward)
  })
  proxy.on('connect', (request, socket) => {
    asked.push(request.url!)
    const onward = connectTcp(target, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      onward.pipe(socket).pipe(onward)
    })
    for (const each of [onward, socket]) each.on('error', () => each.destroy())
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
  return { port: (proxy.address() as { port: number }).port, asked }
}

describe('redirects', () => {
  test.each([307, 308])('%i within the origin is followed, with the body', async (status) => {
    verifies('11.5-redirects')
    const { puppet, client } = await meet((seen, response) => {
      if (seen.path === '/mcp') return void response.writeHead(status, { location: '/mcp/' }).end()
      answer(seen, response)
    })
    expect((await client.ask(call(1))).result).toEqual({ said: 'tool' })
    expect(puppet.times('tools/call').map(({ path }) => path)).toEqual(['/mcp', '/mcp/'])
  })

  test('another origin, and one redirect after the other, are failures', async () => {
    verifies('11.5-redirects')
    const other = await HttpPuppet.start(answer)
    const { puppet, client } = await meet(
      ({ message }, response) => {
        const location = message.params.name === 'away' ? other.url : '/mcp'
        response.writeHead(307, { location }).end()
      },
      { headers: { 'X-Key': 'k' } },
    )
    expect((await client.ask(call(1, 'away'))).error.data).toEqual({ reason: 'upstream_failed', status: 307 })
    expect(other.seen).toEqual([])
    expect((await client.ask(call(2, 'round'))).error.data).toEqual({ reason: 'upstream_failed', status: 307 })
    expect(puppet.times('tools/call')).toHaveLength(1 + 4)
  })
})

function endless(response: Parameters<Serve>[1]): void {
  const pad = 'x'.repeat(64 * 1024)
  const more = (): void => {
    while (!response.destroyed) if (!response.write(pad)) return void response.once('drain', more)
  }
  more()
}
