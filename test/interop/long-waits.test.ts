/** What takes too long, or too much, to be met with the real program: silence, bounds and quarantine, on a clock of the test's own. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { call, initializeLine, MODERN } from './mcp-peers.ts'
import { Stage } from './stage.ts'

const DISCOVERED = { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: {} }
const WELCOME = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } }
const discover = (id: number) => ({ jsonrpc: '2.0', id, method: 'server/discover', params: { _meta: MODERN } })

/** A stage whose only worker has been greeted; one that is leased waits for the first client. */
function greetedStage(sharing: 'shared' | 'lease'): Stage {
  const stage = new Stage({ protocol: 'mcp', sharing })
  if (sharing === 'lease') stage.send(stage.connect(), initializeLine(0))
  stage.say(0, { id: stage.told(0, 'initialize').id, result: WELCOME })
  return stage
}

describe('spec M3: a server that says nothing to the handshake', () => {
  test('is asked for its era after a while, and stays what it was when it does not know the question', () => {
    verifies('M3-silence')
    const stage = new Stage({ protocol: 'mcp' })
    const { id } = stage.told(0, 'initialize')
    stage.advance(9_999)
    expect(stage.told(0, 'server/discover')).toBeUndefined()
    stage.advance(2)
    stage.say(0, { id: stage.told(0, 'server/discover').id, error: { code: -32601, message: 'no' } })
    stage.advance(20_000)
    expect(stage.snapshot.workers[0]!.state).toBe('starting')
    stage.say(0, { id, result: WELCOME })
    expect(stage.snapshot.workers[0]!.state).toBe('ready')
    const client = stage.connect()
    stage.send(client, initializeLine(0))
    expect(stage.atClient.get(client)).toMatchObject([{ id: 0, result: WELCOME }])
  })

  test.each([
    ['answers it', { result: DISCOVERED }],
    ['refuses the version', { error: { code: -32022, message: 'v' } }],
  ])('is of the stateless era when it %s', (_, answer) => {
    verifies('M3-modern')
    const stage = new Stage({ protocol: 'mcp' })
    stage.advance(10_001)
    stage.say(0, { id: stage.told(0, 'server/discover').id, ...answer })
    const client = stage.connect()
    stage.send(client, initializeLine(0))
    expect(stage.atClient.get(client)).toMatchObject([{ error: { data: { reason: 'protocol_mismatch' } } }])
  })

  test('a client that asks for the era of a silent server is served when the server knows it', () => {
    const stage = new Stage({})
    const client = stage.connect()
    stage.send(client, discover(7))
    stage.advance(10_001)
    stage.say(0, { id: stage.told(0, 'server/discover').id, result: DISCOVERED })
    expect(stage.told(0, 'server/discover').id).toBe(7)
  })
})

test('spec M4: a handshake that failed is not kept, the next client makes another', () => {
  verifies('M4-errors')
  const stage = new Stage({ era: 'legacy' })
  const [first, second] = [stage.connect(), stage.connect()]
  stage.send(first, initializeLine('a'))
  stage.say(0, { id: stage.told(0, 'initialize').id, error: { code: -32603, message: 'not yet' } })
  expect(stage.atClient.get(first)).toMatchObject([{ id: 'a', error: { code: -32603, message: 'not yet' } }])
  stage.send(second, initializeLine('b'))
  stage.say(0, { id: stage.told(0, 'initialize').id, result: WELCOME })
  expect(stage.atClient.get(second)).toMatchObject([{ id: 'b', result: WELCOME }])
})

describe('spec M3: a server that ends over the question', () => {
  test('is not asked for ever', () => {
    verifies('M3-fatal')
    const stage = new Stage({})
    for (let n = 0; n < 4; n++) {
      const client = stage.connect()
      stage.send(client, call(n, undefined, MODERN))
      if (stage.atWorker.get(0)!.at(-1).method === 'server/discover') stage.exit(0)
      stage.advance(1_000)
    }
    const asked = stage.atWorker.get(0)!.map(({ method }) => method)
    expect(asked.filter((method) => method === 'server/discover')).toHaveLength(2)
    expect(asked.at(-1)).toBe('initialize')
  })
})

describe('contract 6.7: lease', () => {
  test('a waiter is told after 30 s', () => {
    verifies('6.7.3-wait')
    const stage = greetedStage('lease')
    const [holder, waiter] = [stage.connect(), stage.connect()]
    stage.send(holder, call(1, undefined))
    stage.send(waiter, call(1, undefined))
    stage.advance(29_999)
    expect(stage.atClient.get(waiter)).toEqual([])
    stage.advance(2)
    expect(stage.atClient.get(waiter)).toMatchObject([
      { id: 1, error: { data: { reason: 'overloaded', retryable: true } } },
    ])
  })

  test('1,024 may wait, the next is told at once', () => {
    verifies('6.7.3-waiters')
    const stage = greetedStage('lease')
    const [holder, waiter] = [stage.connect(), stage.connect()]
    stage.send(holder, call(0, undefined))
    for (let n = 0; n < 1_024; n++) stage.send(waiter, call(n, undefined))
    expect(stage.atClient.get(waiter)).toEqual([])
    stage.send(waiter, call('more', undefined))
    expect(stage.atClient.get(waiter)).toMatchObject([{ id: 'more', error: { data: { reason: 'overloaded' } } }])
  })
})

describe('contract 6.8: a worker that may still be at work for somebody else', () => {
  const question = { jsonrpc: '2.0', id: 'q', method: 'sampling/createMessage', params: {} }

  test.each(['shared', 'lease'] as const)(
    '%s: what it says is put to nobody for 5 s, then to the one client it works for',
    (sharing) => {
      verifies('6.8-quarantine')
      const stage = greetedStage(sharing)
      const [gone, other] = [stage.connect(), stage.connect()]
      stage.send(gone, call(1, undefined))
      stage.leave(gone)
      stage.send(other, initializeLine(0))
      stage.send(other, call(2, undefined))
      stage.advance(4_999)
      stage.say(0, question)
      expect(stage.atClient.get(other)).toMatchObject([{ id: 0 }])
      expect(stage.atWorker.get(0)!.at(-1)).toMatchObject({ id: 'q', error: { data: { reason: 'no_client' } } })
      stage.advance(2)
      stage.say(0, question)
      expect(stage.atClient.get(other)).toMatchObject([{ id: 0 }, { id: 'q' }])
    },
  )

  test('what a client has cancelled itself does not keep its questions from it', () => {
    const stage = greetedStage('lease')
    const client = stage.connect()
    stage.send(client, initializeLine(0))
    stage.send(client, call(1, undefined))
    stage.send(client, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    stage.send(client, call(2, undefined))
    stage.say(0, question)
    expect(stage.atClient.get(client)).toMatchObject([{ id: 0 }, { id: 'q' }])
  })
})

describe('contract 6.9: updates that come before the answer that announces their session', () => {
  const update = (text: string) => ({
    jsonrpc: '2.0',
    method: 'session/update',
    params: { sessionId: 's', update: { text } },
  })
  const begun = () => {
    const stage = new Stage({ protocol: 'acp' })
    const client = stage.connect()
    stage.send(client, { jsonrpc: '2.0', id: 0, method: 'session/new', params: {} })
    return { stage, client }
  }

  test('256 lines are held; what is beyond is dropped and counted', () => {
    verifies('6.9-bound')
    const { stage, client } = begun()
    for (let n = 0; n < 300; n++) stage.say(0, update(String(n)))
    expect(stage.atClient.get(client)).toEqual([])
    stage.say(0, { id: 0, result: { sessionId: 's' } })
    const texts = stage.atClient.get(client)!.map(({ params }) => params?.update.text)
    expect(texts).toEqual([undefined, ...Array.from({ length: 256 }, (_, n) => String(n))])
    expect(stage.snapshot.dropped['session_held_too_long']).toBe(44)
  })

  test('1 MiB is held', () => {
    verifies('6.9-bound')
    const { stage, client } = begun()
    for (let n = 0; n < 12; n++) stage.say(0, update('x'.repeat(100 * 1_024)))
    stage.say(0, { id: 0, result: { sessionId: 's' } })
    expect(stage.atClient.get(client)).toHaveLength(11)
    expect(stage.snapshot.dropped['session_held_too_long']).toBe(2)
  })

  test.each([
    ['the answer is an error', (stage: Stage) => stage.say(0, { id: 0, error: { code: 1, message: 'no' } })],
    ['the worker ends', (stage: Stage) => stage.exit(0)],
  ])('they are dropped and counted when %s', (_, end) => {
    verifies('6.9-fails')
    const { stage, client } = begun()
    stage.say(0, update('lost'))
    end(stage)
    stage.advance(1_000)
    expect(stage.atClient.get(client)).toMatchObject([{ id: 0, error: {} }])
    expect(stage.snapshot.dropped['unknown_session']).toBe(1)
  })

  test('what was held for a client that has gone does not take the room of others', () => {
    const { stage, client } = begun()
    for (let n = 0; n < 256; n++) stage.say(0, update(String(n)))
    stage.leave(client)
    stage.say(0, { id: 0, result: { sessionId: 's' } })
    const next = stage.connect()
    stage.send(next, { jsonrpc: '2.0', id: 0, method: 'session/new', params: {} })
    stage.say(0, { ...update('mine'), params: { sessionId: 't', update: { text: 'mine' } } })
    stage.say(0, { id: stage.told(0, 'session/new').id, result: { sessionId: 't' } })
    expect(stage.atClient.get(next)).toMatchObject([{ id: 0 }, { params: { update: { text: 'mine' } } }])
  })
})
