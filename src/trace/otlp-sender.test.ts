import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { callEnd, callStart, NOON_MS, TRACE } from '../../test/fixtures/trace/calls.ts'
import type { OtlpDocument, OtlpSpan } from './export-otlp.ts'
import { LiveExport } from './live-export.ts'
import { OtlpSender, type SenderOptions } from './otlp-sender.ts'
import { openTraceStore } from './store.ts'

interface Collector {
  readonly endpoint: string
  readonly received: { headers: Record<string, unknown>; body: OtlpDocument }[]
  answer: { status: number; headers?: Record<string, string> }
}

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections()
})

async function startCollector(status = 200): Promise<Collector> {
  const received: Collector['received'] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    received.push({ headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) })
    response.writeHead(collector.answer.status, collector.answer.headers).end('{}')
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`
  const collector: Collector = { endpoint, received, answer: { status } }
  return collector
}

function spanNamed(name: string): OtlpSpan {
  const times = { startTimeUnixNano: '1', endTimeUnixNano: '2' }
  return {
    traceId: 'a'.repeat(32),
    spanId: 'b'.repeat(16),
    name,
    kind: 3,
    ...times,
    attributes: [],
    status: { code: 0 },
  }
}

const namesOf = (collector: Collector) =>
  collector.received.flatMap(({ body }) => body.resourceSpans[0]?.scopeSpans[0]?.spans.map((span) => span.name) ?? [])

function makeSender(endpoint: string, options: Partial<SenderOptions> = {}): { sender: OtlpSender; states: string[] } {
  const states: string[] = []
  const onState: SenderOptions['onState'] = ({ state, message }) => states.push(`${state}: ${message}`)
  const settings = { endpoint, batchMs: 5, firstPauseMs: 5, onState, ...options }
  return { sender: new OtlpSender(settings, () => 'bus'), states }
}

describe('the sender', () => {
  it('loses a batch that cannot be written, and goes on', async () => {
    const collector = await startCollector()
    const { sender, states } = makeSender(collector.endpoint)
    sender.add({ ...spanNamed('odd'), kind: 3n } as never)
    await expect.poll(() => sender.dropped).toBe(1)
    sender.add(spanNamed('even'))
    await expect.poll(() => namesOf(collector)).toEqual(['even'])
    await expect.poll(() => states).toEqual([expect.stringContaining('failed'), expect.stringContaining('ok')])
    await sender.close()
  })

  it('sends spans in batches with the headers it was given', async () => {
    const collector = await startCollector()
    const { sender } = makeSender(collector.endpoint, { headers: { authorization: 'Basic x' } })
    sender.add(spanNamed('one'))
    sender.add(spanNamed('two'))
    await expect.poll(() => namesOf(collector)).toEqual(['one', 'two'])
    expect(collector.received).toHaveLength(1)
    expect(collector.received[0]?.headers).toMatchObject({
      authorization: 'Basic x',
      'content-type': 'application/json',
    })
    await sender.close()
  })

  it('tries again while the collector is busy, and says so once', async () => {
    const collector = await startCollector(503)
    const { sender, states } = makeSender(collector.endpoint)
    sender.add(spanNamed('one'))
    await expect.poll(() => collector.received.length).toBeGreaterThan(2)
    collector.answer = { status: 200 }
    await expect.poll(() => sender.sent).toBe(1)
    expect(states).toHaveLength(2)
    expect(states[0]).toMatch(/^failed: .*it answered 503; check aio.otlp.endpoint/)
    expect(states[1]).toMatch(/^ok: .*again/)
    await sender.close()
  })

  it('waits as long as it is asked to', async () => {
    const collector = await startCollector(429)
    collector.answer = { status: 429, headers: { 'retry-after': '1' } }
    const { sender } = makeSender(collector.endpoint)
    sender.add(spanNamed('one'))
    await expect.poll(() => collector.received.length).toBe(1)
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(collector.received).toHaveLength(1)
    await sender.close(10)
  })

  it.each([400, 401, 415])('gives up a batch that is refused with %i, and only that', async (status) => {
    const collector = await startCollector(status)
    const { sender } = makeSender(collector.endpoint)
    sender.add(spanNamed('one'))
    await expect.poll(() => sender.dropped).toBe(1)
    collector.answer = { status: 200 }
    sender.add(spanNamed('two'))
    await expect.poll(() => sender.sent).toBe(1)
    expect(namesOf(collector)).toEqual(['one', 'two'])
    await sender.close()
  })

  it('keeps no more than its bound while nobody is there, the newest', async () => {
    verifies('T8-bound')
    const { sender, states } = makeSender('http://127.0.0.1:1/v1/traces', {
      maxQueued: 10,
      headers: { authorization: 'SECRET' },
    })
    for (let n = 0; n < 25; n += 1) sender.add(spanNamed(String(n)))
    expect(sender.dropped).toBe(15)
    await expect.poll(() => states.length).toBe(1)
    expect(states[0]).not.toContain('SECRET')
    await sender.close(20)
    expect(sender.dropped).toBe(25)
  })

  it('ends in time although the collector never answers', async () => {
    const hanging = ((_, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener('abort', () => reject(new Error('aborted')))
      })) as typeof fetch
    const { sender } = makeSender('http://127.0.0.1:1/', { fetch: hanging })
    sender.add(spanNamed('one'))
    const before = performance.now()
    await sender.close(50)
    expect(performance.now() - before).toBeLessThan(1_000)
    expect(sender.dropped).toBe(1)
  })
})

describe('live export', () => {
  async function follow(options: { quietMs: number; payloads?: boolean }) {
    const store = await openTraceStore({ nowMs: () => NOON_MS })
    const spans: OtlpSpan[] = []
    const live = new LiveExport(store.ids, (span) => spans.push(span), {
      payloadBytes: 1_000,
      redact: ['password'],
      ...options,
    })
    store.follow(live.take)
    return { store, spans, live }
  }

  it('sends a call when it ends and the root when the trace is quiet', async () => {
    const { store, spans } = await follow({ quietMs: 20 })
    store.begin(callStart())
    store.begin(callStart({ callId: 2, parentId: 1, agent: 'child' }))
    expect(spans).toEqual([])
    store.end(callEnd({ callId: 2 }))
    store.end(callEnd())
    await expect
      .poll(() => spans.map((span) => span.name))
      .toEqual(['invoke_agent child', 'invoke_agent reader', 'invoke_workflow'])
    const [child, reader, root] = spans
    expect([child?.parentSpanId, reader?.parentSpanId]).toEqual([reader?.spanId, root?.spanId])
  })

  it('equals what is exported later', async () => {
    const { store, spans, live } = await follow({ quietMs: 10_000 })
    store.begin(callStart())
    store.end(callEnd({ status: 'error', error: { code: 1, message: 'no' } }))
    live.close()
    const answer = await store.query('export', { trace_id: TRACE, format: 'otlp-json' })
    const exported: OtlpDocument = JSON.parse('text' in answer ? answer.text : '')
    const [root, call] = exported.resourceSpans[0]?.scopeSpans[0]?.spans ?? []
    expect(spans).toEqual([call, root])
  })

  it('keeps secrets to itself even when payloads are sent', async () => {
    const { store, spans } = await follow({ quietMs: 10_000, payloads: true })
    store.begin(callStart({ input: { password: 'hunter2', a: 1 } }))
    store.end(callEnd())
    expect(JSON.stringify(spans)).toContain('[redacted]')
    expect(JSON.stringify(spans)).not.toContain('hunter2')
  })
})
