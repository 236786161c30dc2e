/** Questions, several clients at once, and the methods of the bus (contract 12.14, 12.15, 12.18 to 12.20). */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { KeptStage } from './kept-stage.ts'

const PERMISSION = { sessionId: 's', toolCall: { toolCallId: 't' }, options: [{ optionId: 'yes' }] }

function asks(
  stage: KeptStage,
  id: string | number = 'q',
  method = 'session/request_permission',
  params: object = PERMISSION,
): void {
  stage.say(0, { id, method, params })
}

function answerAt(stage: KeptStage, id: string | number = 'q') {
  return stage.atWorker.get(0)!.find((message) => message.id === id && message.method === undefined)
}

describe('questions', () => {
  test('they wait while nobody drives, and are put to the next driver after its answer', () => {
    verifies('12.14-wait')
    const stage = new KeptStage()
    const first = stage.come('first')
    stage.open(first)
    stage.prompt(first, 'go')
    stage.leave(first)
    asks(stage)
    expect(answerAt(stage)).toBeUndefined()
    const second = stage.come('second')
    const from = stage.count(second)
    const id = stage.load(second)
    expect(stage.answerTo(second, id)!.result._meta['stdio-bus/session'].turn).toBe('waiting')
    expect(stage.heard(second, from)).toEqual([`ok ${id}`, 'turn {"state":"running"}', 'session/request_permission'])
    const asked = stage.atClient.get(second)!.at(-1)!
    stage.send(second, { jsonrpc: '2.0', id: asked.id, result: { outcome: { outcome: 'selected', optionId: 'yes' } } })
    expect(answerAt(stage)!.result.outcome.outcome).toBe('selected')
  })

  test('one that was put to a client that goes is put to the next', () => {
    const stage = new KeptStage()
    const first = stage.come('first')
    stage.open(first)
    stage.prompt(first, 'go')
    asks(stage)
    stage.leave(first)
    expect(answerAt(stage)).toBeUndefined()
    const second = stage.come('second')
    stage.resume(second)
    expect(stage.heard(second).at(-1)).toBe('session/request_permission')
  })

  test.each([
    ['session/request_permission', PERMISSION, { result: { outcome: { outcome: 'cancelled' } } }],
    ['elicitation/create', { sessionId: 's', mode: 'form' }, { result: { action: 'cancel' } }],
    ['fs/read_text_file', { sessionId: 's', path: '/a' }, { error: { code: -32603, data: { reason: 'client_gone' } } }],
  ])('%s is answered after question_sec, never with consent', (method, params, expected) => {
    verifies('12.14-answered')
    const stage = new KeptStage({ questionMs: 60_000 })
    const first = stage.come('first')
    stage.open(first)
    stage.prompt(first, 'go')
    stage.leave(first)
    asks(stage, 'q', method, params)
    stage.advance(59_000)
    expect(answerAt(stage)).toBeUndefined()
    stage.advance(1_001)
    expect(answerAt(stage)).toMatchObject(expected)
  })

  test('what the driver has not offered is answered at once; so is what names the terminal of one that has gone', () => {
    verifies('12.14-answered')
    const stage = new KeptStage()
    const first = stage.come('first', { offers: {} })
    stage.open(first)
    stage.prompt(first, 'go')
    asks(stage, 'q1', 'fs/read_text_file', { sessionId: 's', path: '/a' })
    expect(answerAt(stage, 'q1')!.error.data.reason).toBe('client_gone')
    const second = stage.come('second')
    stage.load(second)
    asks(stage, 'q2', 'terminal/create', { sessionId: 's', command: 'x' })
    stage.send(second, { jsonrpc: '2.0', id: 'q2', result: { terminalId: 'T' } })
    stage.leave(second)
    asks(stage, 'q3', 'terminal/output', { sessionId: 's', terminalId: 'T' })
    expect(answerAt(stage, 'q3')!.error.data.reason).toBe('client_gone')
  })

  test.each([
    ['form', true],
    ['url', false],
    ['constructor', false],
  ])('a driver that fills in forms is asked in the way "%s": %s', (mode, isAsked) => {
    verifies('12.14-answered')
    const stage = new KeptStage()
    const client = stage.come('first', { offers: { elicitation: { form: {} } } })
    stage.open(client)
    asks(stage, 'q', 'elicitation/create', { sessionId: 's', mode, message: 'who?' })
    expect(stage.heard(client).includes('elicitation/create')).toBe(isAsked)
    expect(answerAt(stage)?.result).toEqual(isAsked ? undefined : { action: 'cancel' })
  })

  test('a question about a terminal goes to the client that has it, whoever drives', () => {
    const stage = new KeptStage()
    const [one, two] = [stage.come('one'), stage.come('two')]
    stage.open(one)
    stage.prompt(one, 'go')
    asks(stage, 'q1', 'terminal/create', { sessionId: 's', command: 'x' })
    stage.send(one, { jsonrpc: '2.0', id: 'q1', result: { terminalId: 'T' } })
    stage.load(two)
    asks(stage, 'q2', 'terminal/output', { sessionId: 's', terminalId: 'T' })
    expect(stage.heard(one).at(-1)).toBe('terminal/output')
  })

  test('when the drive moves they are withdrawn and put to the new driver; a late answer is dropped', () => {
    verifies('12.18-questions')
    const stage = new KeptStage()
    const [one, two] = [stage.come('one'), stage.come('two')]
    stage.open(one)
    stage.prompt(one, 'go')
    asks(stage, 7)
    const from = stage.count(one)
    stage.load(two)
    expect(stage.heard(one, from)).toEqual(['driver {"name":"two","you":false}', '$/cancel_request'])
    expect(stage.atClient.get(one)!.at(-1)!.params).toEqual({ requestId: 7 })
    stage.send(one, { jsonrpc: '2.0', id: 7, result: { outcome: { outcome: 'selected', optionId: 'no' } } })
    expect(answerAt(stage, 7)).toBeUndefined()
    const asked = stage.atClient.get(two)!.at(-1)!
    expect(asked.method).toBe('session/request_permission')
    stage.send(two, { jsonrpc: '2.0', id: asked.id, result: { outcome: { outcome: 'selected', optionId: 'yes' } } })
    expect(answerAt(stage, 7)!.result.outcome.optionId).toBe('yes')
    expect(stage.snapshot.dropped['late_answer']).toBe(1)
  })

  test('the agent withdraws one that waits', () => {
    const stage = new KeptStage()
    const first = stage.come('first')
    stage.open(first)
    stage.leave(first)
    asks(stage, 5)
    stage.say(0, { method: '$/cancel_request', params: { requestId: 5 } })
    expect(answerAt(stage, 5)!.result.outcome.outcome).toBe('cancelled')
  })
})

describe('several that take part', () => {
  function pair(): { stage: KeptStage; one: number; two: number } {
    const stage = new KeptStage()
    const [one, two] = [stage.come('one'), stage.come('two')]
    stage.open(one)
    stage.load(two)
    return { stage, one, two }
  }

  test('all get every update, and the prompts of the others', () => {
    verifies('12.18-several', '12.15-told')
    const { stage, one, two } = pair()
    const [fromOne, fromTwo] = [stage.count(one), stage.count(two)]
    const id = stage.prompt(two, 'hello')
    stage.chunk('A')
    stage.endTurn()
    expect(stage.heard(one, fromOne)).toEqual([
      'turn {"state":"running"}',
      '> hello',
      'A',
      'turn {"state":"idle","stopReason":"end_turn"}',
    ])
    expect(stage.heard(two, fromTwo)).toEqual(['A', `ok ${id} end_turn`])
  })

  test('who prompts drives; the others are told', () => {
    verifies('12.18-several')
    const { stage, one, two } = pair()
    const [fromOne, fromTwo] = [stage.count(one), stage.count(two)]
    stage.prompt(one, 'mine')
    expect(stage.heard(one, fromOne)).toEqual(['driver {"name":"one","you":true}'])
    expect(stage.heard(two, fromTwo)).toEqual(['driver {"name":"one","you":false}', 'turn {"state":"running"}'])
  })

  test("a prompt waits for the end of another client's turn; the agent has one at a time", () => {
    verifies('12.15-one-turn')
    const { stage, one, two } = pair()
    stage.prompt(one, 'first')
    const second = stage.prompt(two, 'second')
    const prompts = (): number => stage.atWorker.get(0)!.filter(({ method }) => method === 'session/prompt').length
    expect(prompts()).toBe(1)
    stage.endTurn()
    expect(prompts()).toBe(2)
    stage.endTurn()
    expect(stage.answerTo(two, second)!.result.stopReason).toBe('end_turn')
  })

  test('what the driver is asked holds up no turn that another stops; its own it refuses itself', () => {
    verifies('12.15-cancel')
    const { stage, one, two } = pair()
    stage.prompt(one, 'first')
    asks(stage)
    const [before, from] = [stage.toldCount, stage.count(one)]
    const cancel = { jsonrpc: '2.0', method: 'session/cancel', params: { sessionId: 's' } }
    stage.send(one, cancel)
    expect(stage.toldSince(before)).toEqual(['session/cancel'])
    stage.send(two, cancel)
    expect(stage.toldSince(before)).toEqual(['session/cancel', 'session/cancel', 'answer q'])
    expect(answerAt(stage)!.result.outcome.outcome).toBe('cancelled')
    expect(stage.heard(one, from)).toEqual(['$/cancel_request'])
  })

  test('a prompt that waits is cancelled by its id, and never begins', () => {
    verifies('12.15-cancel')
    const { stage, one, two } = pair()
    stage.prompt(one, 'first')
    const waiting = [stage.prompt(two, 'second'), stage.prompt(two, 'third')]
    const before = stage.toldCount
    stage.send(two, { jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: waiting[0] } })
    expect(stage.answerTo(two, waiting[0]!)!.result.stopReason).toBe('cancelled')
    stage.endTurn()
    expect(stage.toldSince(before)).toEqual(['session/prompt'])
    expect(stage.told(0, 'session/prompt').params.prompt[0].text).toBe('third')
  })

  test('sixteen wait, the next is refused; cancel answers those of its sender', () => {
    verifies('12.15-one-turn', '12.15-cancel')
    const { stage, one, two } = pair()
    stage.prompt(one, 'first')
    const waiting = Array.from({ length: 16 }, (_, n) => stage.prompt(two, `w${n}`))
    expect(stage.answerTo(two, stage.prompt(two, 'too much'))!.error.data).toMatchObject({
      reason: 'session_busy',
      retryable: true,
    })
    stage.send(two, { jsonrpc: '2.0', method: 'session/cancel', params: { sessionId: 's' } })
    expect(waiting.map((id) => stage.answerTo(two, id)!.result.stopReason)).toEqual(waiting.map(() => 'cancelled'))
    expect(stage.told(0, 'session/cancel')).toBeDefined()
  })

  test('when the driver goes the one before drives again', () => {
    const { stage, one, two } = pair()
    const from = stage.count(one)
    stage.leave(two)
    expect(stage.heard(one, from)).toEqual(['driver {"name":"one","you":true}'])
    asks(stage, 1)
    expect(stage.heard(one).at(-1)).toBe('session/request_permission')
  })

  test('the answer to a prompt goes to its sender, though it drives no more', () => {
    const { stage, one, two } = pair()
    const id = stage.prompt(one, 'mine')
    stage.load(two)
    stage.endTurn()
    expect(stage.answerTo(one, id)!.result.stopReason).toBe('end_turn')
    expect(stage.answerTo(two, id)).toBeUndefined()
  })

  test('children of the session belong to all that take part', () => {
    const { stage, one, two } = pair()
    stage.update({ sessionUpdate: 'subagent_update', sessionId: 'child', status: 'running' })
    stage.chunk('from the child', 'child')
    expect(stage.heard(one).at(-1)).toBe('from the child')
    expect(stage.heard(two).at(-1)).toBe('from the child')
    const three = stage.come('three')
    const from = stage.count(three)
    stage.load(three)
    expect(stage.heard(three, from)).toContain('from the child')
  })
})

describe('the methods of the bus', () => {
  test('an observer gets every number once, in order, and changes nothing', () => {
    verifies('12.19-numbers', '12.19-observers')
    const stage = new KeptStage()
    const one = stage.come('one')
    stage.open(one)
    stage.prompt(one, 'go')
    stage.chunk('A')
    const watcher = stage.connect()
    const id = stage.ask(watcher, 'bus::sessions.attach', { session: 's', role: 'observe', from: 1 })
    stage.chunk('B')
    stage.endTurn()
    expect(stage.answerTo(watcher, id)!.result).toEqual({
      session: 's',
      role: 'observe',
      seq: 4,
      first_seq: 1,
      turn: 'running',
    })
    expect(stage.heard(watcher)).toEqual([
      `ok ${id}`,
      '#1 joined',
      '#2 turn_started',
      '> go',
      'A',
      '#5 joined',
      'B',
      '#7 turn_ended',
    ])
    for (const method of ['session/prompt', 'session/set_mode']) {
      const refused = stage.ask(watcher, method, { sessionId: 's', prompt: [] })
      expect(stage.answerTo(watcher, refused)!.error.data.reason).toBe('session_not_owned')
    }
    const before = stage.toldCount
    stage.send(watcher, { jsonrpc: '2.0', method: 'session/cancel', params: { sessionId: 's' } })
    expect(stage.toldSince(before)).toEqual([])
    stage.leave(one)
    expect(stage.snapshot.kept_sessions!.detached).toBe(1)
  })

  test('positions: from now, from a number, below the first, above the last', () => {
    verifies('12.19-parameters', '12.19-numbers')
    const stage = new KeptStage({ maxBytes: 4_096 })
    const one = stage.come('one')
    stage.open(one)
    for (let n = 0; n < 40; n++) stage.chunk(`${n} ${'x'.repeat(200)}`)
    const watcher = stage.connect()
    const attach = (from?: number) =>
      stage.ask(watcher, 'bus::sessions.attach', { session: 's', role: 'observe', from })
    const now = attach()
    const { seq, first_seq: first } = stage.answerTo(watcher, now)!.result
    expect(first).toBeGreaterThan(1)
    expect(stage.answerTo(watcher, attach(seq + 50))!.error).toMatchObject({
      code: -32602,
      data: { reason: 'bad_position' },
    })
    stage.ask(watcher, 'bus::sessions.detach', { session: 's' })
    const from = stage.count(watcher)
    const id = attach(1)
    const heard = stage.atClient.get(watcher)!.slice(from)
    expect(heard[0]!.id).toBe(id)
    expect(heard[1]!.params).toMatchObject({ kind: 'gap', seq: heard[0]!.result.first_seq - 1 })
    expect(stage.heard(watcher, from).at(2)).toMatch(/^\d+ x/)
  })

  test('who drives by attach prompts without having introduced itself', () => {
    const stage = new KeptStage()
    const one = stage.come('one')
    stage.open(one)
    const remote = stage.connect()
    stage.ask(remote, 'bus::sessions.attach', { session: 's', role: 'drive' })
    const id = stage.prompt(remote, 'from the phone')
    stage.chunk('A')
    stage.endTurn()
    expect(stage.answerTo(remote, id)!.result.stopReason).toBe('end_turn')
    expect(stage.heard(one)).toContain('> from the phone')
    expect(stage.heard(remote)).toContain('> from the phone')
  })

  test('bad parameters, unknown sessions', () => {
    verifies('12.19-parameters')
    const stage = new KeptStage()
    const one = stage.come('one')
    stage.open(one)
    const reason = (method: string, params: object): string =>
      stage.answerTo(one, stage.ask(one, `bus::sessions.${method}`, params))!.error.data.reason
    expect(reason('attach', { session: 'x', role: 'observe' })).toBe('unknown_session')
    expect(reason('attach', { session: 's' })).toBe('bad_params')
    expect(reason('attach', { session: 's', role: 'observe', from: 1.5 })).toBe('bad_params')
    expect(reason('attach', { session: 7, role: 'observe' })).toBe('bad_params')
    expect(reason('attach', { session: 's', role: 'observe', pool: 'other' })).toBe('unknown_session')
    expect(reason('end', { session: 'x' })).toBe('unknown_session')
    expect(reason('end', { session: 's', delete: 'yes' })).toBe('bad_params')
    expect(reason('detach', { session: 'x' })).toBe('unknown_session')
    expect(reason('list', { state: 'odd' })).toBe('bad_params')
    expect(reason('list', { limit: 0 })).toBe('bad_params')
    expect(reason('list', { cursor: 'odd' })).toBe('bad_params')
  })

  test('privacy: a session of somebody else does not exist; an administrator sees it, an observer looks on', () => {
    verifies('12.20-private', '12.20-roles')
    const stage = new KeptStage()
    const anna = stage.come('one', { as: 'anna' })
    stage.open(anna)
    const listed = (client: number, params: object = {}): string[] =>
      stage
        .answerTo(client, stage.ask(client, 'bus::sessions.list', params))!
        .result.sessions.map(({ session }: { session: string }) => session)
    const outcome = (client: number, method: string, params: object) => {
      const answer = stage.answerTo(client, stage.ask(client, `bus::sessions.${method}`, params))!
      return answer.error?.data.reason ?? 'ok'
    }
    const ben = stage.connect('ben')
    expect(listed(ben, { all: true })).toEqual([])
    for (const [method, params] of [
      ['attach', { role: 'observe' }],
      ['end', {}],
      ['detach', {}],
    ] as const)
      expect(outcome(ben, method, { session: 's', ...params })).toBe('unknown_session')
    const olga = stage.connect('olga', 'observer')
    expect(listed(olga)).toEqual(['s'])
    expect(outcome(olga, 'attach', { session: 's', role: 'drive' })).toBe('not_allowed')
    expect(outcome(olga, 'attach', { session: 's', role: 'observe' })).toBe('ok')
    expect(outcome(olga, 'end', { session: 's' })).toBe('not_allowed')
    const root = stage.connect('root', 'admin')
    expect(listed(root)).toEqual([])
    expect(listed(root, { all: true })).toEqual(['s'])
    expect(outcome(root, 'attach', { session: 's', role: 'drive' })).toBe('ok')
    expect(outcome(root, 'end', { session: 's' })).toBe('ok')
  })

  test('32 clients, and no more', () => {
    verifies('12.19-clients')
    const stage = new KeptStage()
    const one = stage.come('one')
    stage.open(one)
    const join = (): string => {
      const client = stage.connect()
      const id = stage.ask(client, 'bus::sessions.attach', { session: 's', role: 'observe' })
      return stage.answerTo(client, id)!.error?.data.reason ?? 'ok'
    }
    for (let n = 0; n < 31; n++) expect(join()).toBe('ok')
    expect(join()).toBe('too_many_clients')
  })

  test('the end of a session is told, and what is asked of it afterwards', () => {
    const stage = new KeptStage()
    const one = stage.come('one')
    stage.open(one)
    stage.prompt(one, 'go')
    const watcher = stage.connect()
    stage.ask(watcher, 'bus::sessions.attach', { session: 's', role: 'observe' })
    const before = stage.toldCount
    stage.ask(watcher, 'bus::sessions.end', { session: 's' })
    expect(stage.toldSince(before)).toEqual(['session/cancel'])
    expect(
      stage
        .heard(watcher)
        .slice(-3, -1)
        .map((line) => line.split(' ')[1]),
    ).toEqual(['turn_ended', 'ended'])
    expect(stage.answerTo(one, stage.prompt(one, 'x'))!.error.data.reason).toBe('session_lost')
  })

  test('one that does not read holds up nobody, is taken off, and goes on from its number', () => {
    verifies('12.19-lagging')
    const stage = new KeptStage(
      {},
      {},
      { maxOutputQueueBytes: 10_000, blockingTimeoutMs: 5_000, backpressureTimeoutMs: 60_000 },
    )
    const one = stage.come('one')
    stage.open(one)
    const watcher = stage.connect()
    stage.ask(watcher, 'bus::sessions.attach', { session: 's', role: 'observe', from: 1 })
    stage.setReading(watcher, false)
    for (let n = 0; n < 100; n++) stage.chunk(`${n} ${'x'.repeat(1_000)}`)
    expect(stage.heard(one).filter((line) => / x/.test(line))).toHaveLength(100)
    stage.advance(5_100)
    const id = stage.ask(one, 'bus::sessions.list')
    expect(stage.answerTo(one, id)!.result.sessions[0].clients.map(({ role }: { role: string }) => role)).toEqual([
      'drive',
    ])
    stage.setReading(watcher, true)
    const at = stage.atClient.get(watcher)!.at(-1)!
    expect(at.params.kind).toBe('dropped')
    const lines = stage.heard(watcher).filter((line) => / x/.test(line)).length
    expect(lines).toBeLessThan(100)
    stage.ask(watcher, 'bus::sessions.attach', { session: 's', role: 'observe', from: at.params.seq + 1 })
    const all = stage.heard(watcher).filter((line) => / x/.test(line))
    expect(all).toEqual(Array.from({ length: 100 }, (_, n) => `${n} ${'x'.repeat(1_000)}`))
  })
})
