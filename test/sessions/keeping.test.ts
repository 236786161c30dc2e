/** Sessions that are kept while nobody is there (contract 12.1 to 12.7), on the clock of the test. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { KeptStage } from './kept-stage.ts'

describe('a client goes in the middle of a turn', () => {
  function interrupted(): { stage: KeptStage; before: number } {
    const stage = new KeptStage()
    const client = stage.come()
    stage.open(client)
    stage.prompt(client, 'do it')
    stage.chunk('one ')
    const before = stage.toldCount
    stage.leave(client)
    return { stage, before }
  }

  test('the agent hears nothing, and the next one sees all of it', () => {
    verifies('12.3-detached', '12.12-not-asked')
    const { stage, before } = interrupted()
    stage.chunk('two ')
    stage.endTurn()
    stage.chunk('late ')
    expect(stage.toldSince(before)).toEqual([])
    const next = stage.come()
    const from = stage.count(next)
    const id = stage.load(next)
    expect(stage.heard(next, from)).toEqual(['> do it', 'one ', 'two ', 'late ', `ok ${id}`])
    expect(stage.answerTo(next, id)!.result).toEqual({
      _meta: { 'stdio-bus/session': { seq: expect.any(Number), turn: 'idle' } },
    })
    expect(stage.told(0, 'session/load')).toBeUndefined()
  })

  test('what is live follows the answer, each line once', () => {
    const { stage } = interrupted()
    stage.chunk('two ')
    const next = stage.come()
    const from = stage.count(next)
    const id = stage.load(next)
    stage.chunk('three ')
    stage.endTurn()
    expect(stage.heard(next, from)).toEqual([
      '> do it',
      'one ',
      'two ',
      `ok ${id}`,
      'turn {"state":"running"}',
      'three ',
      'turn {"state":"idle","stopReason":"end_turn"}',
    ])
    expect(stage.answerTo(next, id)!.result._meta['stdio-bus/session'].turn).toBe('running')
  })

  test('keep_sec after the last line the turn is cancelled and the session closed, once', () => {
    verifies('12.4-keep')
    const { stage, before } = interrupted()
    stage.advance(3_000_000)
    stage.chunk('still here ')
    stage.advance(3_000_000)
    expect(stage.toldSince(before)).toEqual([])
    stage.advance(600_001)
    expect(stage.toldSince(before)).toEqual(['session/cancel'])
    stage.endTurn('cancelled')
    stage.advance(10_000_000)
    expect(stage.toldSince(before)).toEqual(['session/cancel'])
    expect(stage.snapshot.kept_sessions).toMatchObject({ kept: 0, detached: 0 })
  })

  test('an answer and a question are lines of the agent too', () => {
    verifies('12.4-keep')
    const { stage } = interrupted()
    stage.advance(3_000_000)
    stage.say(0, { id: 'q', method: 'session/request_permission', params: { sessionId: 's' } })
    stage.advance(3_000_000)
    expect(stage.snapshot.kept_sessions).toMatchObject({ detached: 1 })
    stage.endTurn()
    stage.advance(3_000_000)
    expect(stage.snapshot.kept_sessions).toMatchObject({ detached: 1 })
    stage.advance(600_001)
    expect(stage.snapshot.kept_sessions).toMatchObject({ detached: 0 })
  })

  test('after a day it ends, whatever the agent says', () => {
    verifies('12.4-day')
    const { stage, before } = interrupted()
    for (let hour = 0; hour < 24; hour += 0.5) {
      stage.advance(1_800_000)
      if (stage.snapshot.kept_sessions!.kept > 0) stage.chunk('on and on ')
    }
    expect(stage.toldSince(before)).toContain('session/cancel')
  })

  test('its other requests are not answered to anybody, and counted', () => {
    verifies('12.3-others')
    const stage = new KeptStage()
    const client = stage.come()
    stage.open(client)
    stage.ask(client, 'session/set_mode', { sessionId: 's', modeId: 'm' })
    const before = stage.toldCount
    stage.leave(client)
    stage.say(0, { id: stage.told(0, 'session/set_mode').id, result: {} })
    expect(stage.toldSince(before)).toEqual([])
    expect(stage.snapshot.dropped['late_answer']).toBe(1)
  })
})

test('clients are told that they can load, resume and list, and nothing else is changed', () => {
  verifies('12.2-advertised')
  const stage = new KeptStage()
  const client = stage.connect()
  const id = stage.ask(client, 'initialize', { protocolVersion: 1 })
  const raw = `{"jsonrpc":"2.0","id":${stage.told(0, 'initialize').id},"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":false , "sessionCapabilities":{"list":{"x":1}}},"odd": [1 ]}}\n`
  stage.say(0, raw)
  expect(stage.answerTo(client, id)!.result).toEqual({
    protocolVersion: 1,
    agentCapabilities: { loadSession: true, sessionCapabilities: { list: { x: 1 }, resume: {} } },
    odd: [1],
  })
})

test('a pool without sessions adds nothing to a welcome and ends sessions with their client', () => {
  verifies('12.1-off')
  const stage = new KeptStage({}, { keeping: undefined as never })
  const client = stage.connect()
  const id = stage.ask(client, 'initialize', { protocolVersion: 1 })
  stage.say(0, { id: stage.told(0, 'initialize').id, result: { protocolVersion: 1 } })
  expect(stage.answerTo(client, id)!.result).toEqual({ protocolVersion: 1 })
  stage.open(client)
  stage.prompt(client, 'x')
  stage.leave(client)
  expect(stage.told(0, 'session/cancel')).toBeDefined()
  expect(stage.snapshot.sessions).toBe(0)
})

test('above max_kept the idle one that is detached longest ends; with none idle the newest is not kept', () => {
  verifies('12.4-max-kept')
  const stage = new KeptStage({ maxKept: 2 })
  const clients = ['a', 'b', 'c', 'd'].map((name) => {
    const client = stage.come()
    stage.open(client, name)
    return client
  })
  stage.prompt(clients[0]!, 'long', 'a')
  for (const client of clients.slice(0, 3)) {
    stage.leave(client)
    stage.advance(1)
  }
  expect(live(stage)).toEqual(['a', 'c', 'd'])
  const other = stage.come()
  stage.load(other, 'c')
  stage.prompt(other, 'long', 'c')
  stage.leave(other)
  stage.prompt(clients[3]!, 'long', 'd')
  stage.leave(clients[3]!)
  expect(live(stage)).toEqual(['a', 'c'])
})

function live(stage: KeptStage): string[] {
  const client = stage.connect()
  const id = stage.ask(client, 'bus::sessions.list', {})
  const { sessions } = stage.answerTo(client, id)!.result
  return sessions
    .filter(({ state }: { state: string }) => state === 'attached' || state === 'detached')
    .map(({ session }: { session: string }) => session)
    .sort()
}

describe('closing', () => {
  test('the last participant closes the session; one among several only leaves it', () => {
    verifies('12.5-close')
    const stage = new KeptStage()
    const [one, two] = [stage.come('one'), stage.come('two')]
    stage.open(one)
    stage.load(two)
    const before = stage.toldCount
    const left = stage.ask(one, 'session/close', { sessionId: 's' })
    expect(stage.answerTo(one, left)!.result).toEqual({})
    expect(stage.toldSince(before)).toEqual([])
    const closed = stage.ask(two, 'session/close', { sessionId: 's' })
    expect(stage.toldSince(before)).toEqual(['session/close'])
    stage.say(0, { id: stage.told(0, 'session/close').id, result: {} })
    expect(stage.answerTo(two, closed)!.result).toEqual({})
    expect(live(stage)).toEqual([])
  })

  test('who has left is no longer its client', () => {
    const stage = new KeptStage()
    const [one, two] = [stage.come('one'), stage.come('two')]
    stage.open(one)
    stage.load(two)
    stage.ask(one, 'session/close', { sessionId: 's' })
    const before = stage.count(one)
    stage.chunk('secret')
    expect(stage.count(one)).toBe(before)
    const id = stage.prompt(one, 'x')
    expect(stage.answerTo(one, id)!.error.data.reason).toBe('session_not_owned')
  })

  test('delete takes what was said with it', () => {
    verifies('12.5-delete')
    const stage = new KeptStage()
    const one = stage.come('one')
    stage.open(one)
    stage.chunk('said')
    stage.ask(one, 'session/delete', { sessionId: 's' })
    stage.say(0, { id: stage.told(0, 'session/delete').id, result: {} })
    const id = stage.ask(one, 'bus::sessions.list', {})
    expect(stage.answerTo(one, id)!.result.sessions).toEqual([])
  })
})

test('one among several that deletes the session deletes it for all: nothing says so that is not', () => {
  verifies('12.5-delete')
  const stage = new KeptStage()
  const [one, two] = [stage.come('one'), stage.come('two')]
  stage.open(one)
  stage.load(two)
  const deleted = stage.ask(two, 'session/delete', { sessionId: 's' })
  expect(stage.answerTo(two, deleted)).toBeUndefined()
  stage.say(0, { id: stage.told(0, 'session/delete').id, result: {} })
  expect(stage.answerTo(two, deleted)!.result).toEqual({})
  expect(live(stage)).toEqual([])
  expect(stage.answerTo(one, stage.prompt(one, 'x'))!.error.data.reason).toBe('session_lost')
})

describe('isolated', () => {
  const pool = { sharing: 'isolated', instances: 0, maxInstances: 2 } as const

  test('the worker of a kept session stays; when a client needs the place, the one detached and idle longest ends', () => {
    verifies('12.6-isolated')
    const stage = new KeptStage({}, pool)
    const one = stage.come('one')
    stage.open(one, 'first')
    stage.leave(one)
    stage.advance(10)
    const two = stage.come('two')
    stage.open(two, 'second')
    stage.leave(two)
    expect(live(stage)).toEqual(['first', 'second'])
    expect(stage.stops).toEqual([])
    const three = stage.connect()
    stage.ask(three, 'initialize', { protocolVersion: 1 })
    expect(live(stage)).toEqual(['second'])
    expect(stage.stops.map(({ how }) => how)).toEqual(['end'])
  })

  test('its client comes back to the same process', () => {
    const stage = new KeptStage({}, pool)
    const one = stage.come('one')
    stage.open(one)
    stage.prompt(one, 'go')
    stage.leave(one)
    stage.chunk('meanwhile ')
    const two = stage.come('two')
    const from = stage.count(two)
    const id = stage.load(two)
    stage.chunk('now ')
    expect(stage.heard(two, from)).toEqual(['> go', 'meanwhile ', `ok ${id}`, 'turn {"state":"running"}', 'now '])
    stage.endTurn()
    stage.prompt(two, 'again')
    stage.say(0, { id: stage.lastAsked('initialize')!.message.id, result: { protocolVersion: 1 } })
    expect(stage.told(0, 'session/prompt').params.prompt[0].text).toBe('again')
  })
})

test('one principal has an id once; the second worker that chooses it is refused', () => {
  verifies('12.7-conflict')
  const stage = new KeptStage({}, { instances: 2 })
  const [one, two] = [stage.come('one'), stage.come('two')]
  stage.open(one, 's1')
  const id = stage.ask(two, 'session/new', { cwd: '/', mcpServers: [] })
  const asked = stage.atWorker.get(1)!.findLast(({ method }) => method === 'session/new')!
  stage.say(1, { id: asked.id, result: { sessionId: 's1' } })
  expect(stage.answerTo(two, id)!.error.data.reason).toBe('session_id_conflict')
})

test('the drain waits for a turn whose client has gone', () => {
  verifies('12.6-drain')
  const stage = new KeptStage()
  const client = stage.come()
  stage.open(client)
  stage.prompt(client, 'long')
  stage.leave(client)
  stage.shutDown()
  expect(stage.snapshot.phase).toBe('draining')
  stage.endTurn()
  expect(stage.snapshot.phase).not.toBe('draining')
})

test('a process to which only the bus has introduced its client is told of the end of a session too', () => {
  verifies('12.4-keep')
  const stage = new KeptStage({ keepMs: 1_000 }, { instances: 2 })
  const agentCapabilities = { sessionCapabilities: { close: {} } }
  const welcome = (worker: number): void => {
    const { id } = stage.told(worker, 'initialize')
    stage.say(worker, { id, result: { protocolVersion: 1, agentCapabilities } })
  }
  const client = stage.connect()
  stage.ask(client, 'initialize', { protocolVersion: 1 })
  welcome(0)
  stage.exit(0)
  stage.ask(client, 'session/new', { cwd: '/', mcpServers: [] })
  welcome(1)
  stage.say(1, { id: stage.told(1, 'session/new').id, result: { sessionId: 's' } })
  stage.leave(client)
  stage.advance(2_000)
  expect(stage.toldSince(0, 1)).toContain('session/close')
})
