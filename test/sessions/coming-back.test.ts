/** Coming back to a session (contract 12.8, 12.11 to 12.17), on the clock of the test. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { KeptStage } from './kept-stage.ts'

const COMMANDS = { sessionUpdate: 'available_commands_update', availableCommands: [] }

const MOVED = 'driver {"name":"editor","you":true}'

function left(stage: KeptStage): number {
  const client = stage.come('first')
  stage.open(client)
  return client
}

describe('load', () => {
  test('the answer is that of new, with the mode and the options of now', () => {
    verifies('12.12-answer')
    const stage = new KeptStage()
    const first = stage.come()
    const modes = { currentModeId: 'ask', availableModes: [{ id: 'ask' }, { id: 'code' }, { id: 'plan' }] }
    stage.open(first, 's', { modes, configOptions: [{ id: 'model', currentValue: 'a' }], odd: 1 })
    stage.update({ sessionUpdate: 'current_mode_update', currentModeId: 'code' })
    stage.ask(first, 'session/set_config_option', { sessionId: 's', configId: 'model', value: 'b' })
    const configOptions = [{ id: 'model', currentValue: 'b' }]
    stage.say(0, { id: stage.told(0, 'session/set_config_option').id, result: { configOptions } })
    stage.ask(first, 'session/set_mode', { sessionId: 's', modeId: 'plan' })
    stage.say(0, { id: stage.told(0, 'session/set_mode').id, result: {} })
    const second = stage.come()
    const id = stage.load(second)
    const { _meta, ...result } = stage.answerTo(second, id)!.result
    expect(result).toEqual({ modes: { ...modes, currentModeId: 'plan' }, configOptions, odd: 1 })
    expect(_meta['stdio-bus/session'].turn).toBe('idle')
  })

  test('a prompt that the agent repeats is told once, and one that it does not repeat too', () => {
    verifies('12.8-prompts')
    const stage = new KeptStage()
    const first = left(stage)
    stage.prompt(first, 'one')
    stage.update({ sessionUpdate: 'user_message_chunk', content: { type: 'text', text: 'one' } })
    stage.chunk('A')
    stage.endTurn()
    stage.prompt(first, 'two')
    stage.endTurn()
    const second = stage.come()
    const from = stage.count(second)
    const id = stage.load(second)
    expect(stage.heard(second, from)).toEqual(['> one', 'A', '> two', `ok ${id}`, MOVED])
  })

  test('every part of a prompt is a chunk of its own, as it was spelled', () => {
    const stage = new KeptStage()
    const first = left(stage)
    const prompt = [
      { type: 'text', text: 'look' },
      { type: 'resource_link', name: 'n', uri: 'file:///x' },
    ]
    stage.ask(first, 'session/prompt', { sessionId: 's', prompt })
    stage.chunk('A')
    const second = stage.come()
    stage.load(second)
    const chunks = stage.atClient
      .get(second)!
      .filter(({ params }) => params?.update?.sessionUpdate === 'user_message_chunk')
      .map(({ params }) => params.update.content)
    expect(chunks).toEqual(prompt)
  })

  test('what is no part of a prompt is told to nobody', () => {
    verifies('12.8-prompts')
    const stage = new KeptStage()
    const first = left(stage)
    for (const prompt of [[5, null, [], 'x', { type: 'text', text: 'ok' }], 'text', { 0: { type: 'text' } }])
      stage.ask(first, 'session/prompt', { sessionId: 's', prompt })
    stage.chunk('A')
    const second = stage.come()
    const from = stage.count(second)
    const id = stage.load(second)
    expect(stage.heard(second, from).slice(0, 3)).toEqual(['> ok', 'A', `ok ${id}`])
  })

  test('a notice is no history', () => {
    verifies('12.12-left-out')
    const stage = new KeptStage()
    const first = left(stage)
    stage.update({ sessionUpdate: 'notice', level: 'info', message: 'x' })
    stage.chunk('A')
    expect(stage.heard(first)).toContain('notice')
    const second = stage.come()
    const from = stage.count(second)
    const id = stage.load(second)
    expect(stage.heard(second, from)).toEqual(['A', `ok ${id}`, MOVED])
  })

  test("the terminal of a client that has gone becomes text; its own client's stays", () => {
    verifies('12.12-left-out')
    const stage = new KeptStage()
    const first = left(stage)
    stage.prompt(first, 'run')
    stage.say(0, { id: 't1', method: 'terminal/create', params: { sessionId: 's', command: 'ls' } })
    stage.send(first, { jsonrpc: '2.0', id: 't1', result: { terminalId: 'term-1' } })
    const content = [
      { type: 'terminal', terminalId: 'term-1' },
      { type: 'content', content: { type: 'text', text: 'x' } },
    ]
    stage.update({ sessionUpdate: 'tool_call_update', toolCallId: 'c', content })
    expect(stage.atClient.get(first)!.at(-1)!.params.update.content).toEqual(content)
    const second = stage.come()
    stage.load(second)
    const told = stage.atClient.get(second)!.find(({ params }) => params?.update?.toolCallId === 'c')!.params
      .update.content
    expect(told[0]).toMatchObject({ type: 'content', content: { type: 'text' } })
    expect(told[1]).toEqual(content[1])
  })

  test('the same client may load its session again, and is told all of it again', () => {
    const stage = new KeptStage()
    const first = left(stage)
    stage.chunk('A')
    const from = stage.count(first)
    const id = stage.load(first)
    stage.chunk('B')
    expect(stage.heard(first, from)).toEqual(['A', `ok ${id}`, 'B'])
  })

  test('somebody else is refused, and the agent is not asked', () => {
    verifies('12.20-private')
    const stage = new KeptStage()
    const first = stage.come('first', { as: 'anna' })
    stage.open(first)
    const second = stage.come('second', { as: 'ben' })
    for (const ask of [stage.load(second), stage.resume(second), stage.prompt(second, 'x')])
      expect(stage.answerTo(second, ask)!.error.data.reason).toBe('session_not_owned')
    stage.leave(first)
    expect(stage.answerTo(second, stage.load(second))!.error.data.reason).toBe('session_not_owned')
    expect(stage.told(0, 'session/load')).toBeUndefined()
    expect(stage.told(0, 'session/prompt')).toBeUndefined()
  })
})

describe('resume', () => {
  test('the answer first, then what holds, then what nobody was sent', () => {
    verifies('12.13-resume')
    const stage = new KeptStage()
    const first = left(stage)
    stage.update(COMMANDS)
    stage.update({ ...COMMANDS, availableCommands: [{ name: 'x', description: '' }] })
    stage.prompt(first, 'go')
    stage.chunk('seen ')
    stage.leave(first)
    stage.chunk('unseen ')
    const second = stage.come()
    const from = stage.count(second)
    const id = stage.resume(second)
    expect(stage.heard(second, from)).toEqual([
      `ok ${id}`,
      'available_commands_update',
      'turn {"state":"running"}',
      'unseen ',
    ])
    expect(stage.atClient.get(second)![from + 1]!.params.update.availableCommands).toHaveLength(1)
  })

  test('version 2: from the start is a load', () => {
    verifies('12.13-version-2')
    const stage = new KeptStage()
    const first = left(stage)
    stage.chunk('A')
    stage.leave(first)
    const second = stage.come()
    const from = stage.count(second)
    const params = { sessionId: 's', cwd: '/', mcpServers: [], replayFrom: { type: 'start' } }
    const id = stage.ask(second, 'session/resume', params)
    expect(stage.heard(second, from)).toEqual(['A', `ok ${id}`])
  })
})

describe('version 2', () => {
  function come(stage: KeptStage): number {
    const client = stage.connect()
    const id = stage.ask(client, 'initialize', {
      protocolVersion: 2,
      info: { name: 'c', version: '1' },
      capabilities: {},
    })
    const asked = stage.lastAsked('initialize')
    const result = { protocolVersion: 2, info: { name: 'a', version: '1' }, capabilities: { session: {} } }
    if (stage.answerTo(client, id) === undefined) stage.say(0, { id: asked!.message.id, result })
    return client
  }

  const isState = (state: string): object => ({ sessionUpdate: 'state_update', state })
  const acknowledge = (stage: KeptStage): void =>
    stage.say(0, { id: stage.told(0, 'session/prompt').id, result: { messageId: 'm' } })

  test.each([
    [{ sessionUpdate: 'user_message', messageId: 'm', content: [{ type: 'text', text: 'go' }] }],
    [{ sessionUpdate: 'user_message_chunk', messageId: 'm', content: { type: 'text', text: 'go' } }],
  ])('an agent that is at work before it repeats the prompt has it told once: %j', (repeated) => {
    verifies('12.8-prompts')
    const stage = new KeptStage()
    const first = come(stage)
    stage.open(first)
    stage.prompt(first, 'go')
    stage.update(isState('running'))
    stage.update(repeated)
    stage.chunk('A')
    const second = come(stage)
    stage.ask(second, 'session/resume', { sessionId: 's', cwd: '/', replayFrom: { type: 'start' } })
    const told = stage.atClient.get(second)!.filter(({ method }) => method === 'session/update')
    const kinds = told.map(({ params }) => params.update.sessionUpdate)
    expect(kinds.slice(0, 3)).toEqual(['state_update', repeated.sessionUpdate, 'agent_message_chunk'])
  })

  test('one that says nothing but that it is at work and is not: the prompt is told before the end', () => {
    const stage = new KeptStage()
    const first = come(stage)
    stage.open(first)
    stage.prompt(first, 'go')
    acknowledge(stage)
    stage.update(isState('running'))
    stage.update(isState('idle'))
    const second = come(stage)
    const from = stage.count(second)
    stage.ask(second, 'session/resume', { sessionId: 's', cwd: '/', replayFrom: { type: 'start' } })
    expect(stage.heard(second, from).slice(0, 3)).toEqual(['state_update', '> go', 'state_update'])
  })

  test('a turn that is over before its prompt is acknowledged is over: the next one begins', () => {
    verifies('12.15-one-turn')
    const stage = new KeptStage()
    const [first, second] = [come(stage), come(stage)]
    stage.open(first)
    stage.resume(second)
    stage.prompt(first, 'go')
    stage.prompt(second, 'next')
    // Of the turn before.
    stage.update(isState('idle'))
    stage.update(isState('running'))
    stage.update(isState('idle'))
    expect(stage.told(0, 'session/prompt').params.prompt[0].text).toBe('go')
    acknowledge(stage)
    expect(stage.told(0, 'session/prompt').params.prompt[0].text).toBe('next')
  })

  test('whoever resumes in the middle of a turn is told that it runs', () => {
    verifies('12.13-resume')
    const stage = new KeptStage()
    const first = come(stage)
    stage.open(first)
    stage.prompt(first, 'go')
    stage.update(isState('running'))
    const second = come(stage)
    const from = stage.count(second)
    const id = stage.resume(second)
    expect(stage.heard(second, from).slice(0, 2)).toEqual([`ok ${id}`, 'state_update'])
  })
})

describe('bounds', () => {
  test('the oldest turns go first; what is left is told after the newest of each state', () => {
    verifies('12.11-session')
    const stage = new KeptStage({ maxBytes: 6_000 })
    const first = left(stage)
    stage.update(COMMANDS)
    for (let turn = 0; turn < 20; turn++) {
      stage.prompt(first, `turn ${turn}`)
      stage.chunk(`answer ${turn} ${'x'.repeat(400)}`)
      stage.endTurn()
    }
    const second = stage.come()
    const from = stage.count(second)
    stage.load(second)
    const heard = stage.heard(second, from)
    expect(heard[0]).toBe('available_commands_update')
    const turns = heard.slice(1, -1).filter((line) => line.startsWith('> '))
    expect(heard[1]).toBe(turns[0])
    expect(turns.at(-1)).toBe('> turn 19')
    expect(turns.length).toBeGreaterThan(2)
    expect(turns.length).toBeLessThan(12)
    expect(stage.snapshot.kept_sessions!.bytes).toBeLessThanOrEqual(6_000)
  })

  test('one long turn gives up its beginning', () => {
    const stage = new KeptStage({ maxBytes: 4_000 })
    const first = left(stage)
    stage.prompt(first, 'long')
    for (let n = 0; n < 50; n++) stage.chunk(`${n} ${'x'.repeat(100)}`)
    expect(stage.snapshot.kept_sessions!.bytes).toBeLessThanOrEqual(4_000 + 1_000)
    const second = stage.come()
    const from = stage.count(second)
    stage.load(second)
    expect(stage.heard(second, from).at(-4)).toMatch(/^49 /)
  })

  test('over all sessions those that have ended go before those that live', () => {
    verifies('12.11-all')
    const stage = new KeptStage({}, {}, { maxJournalBytes: 20_000 })
    const ended = stage.come()
    stage.open(ended, 'ended')
    stage.chunk('x'.repeat(9_000), 'ended')
    stage.ask(ended, 'session/close', { sessionId: 'ended' })
    stage.say(0, { id: stage.told(0, 'session/close').id, result: {} })
    const lives = stage.come()
    stage.open(lives, 'lives')
    stage.chunk('y'.repeat(9_000), 'lives')
    stage.chunk('z'.repeat(5_000), 'lives')
    const id = stage.ask(lives, 'bus::sessions.list')
    const bytes = Object.fromEntries(
      stage
        .answerTo(lives, id)!
        .result.sessions.map((each: { session: string; bytes: number }) => [each.session, each.bytes]),
    )
    expect(bytes['ended']).toBe(0)
    expect(bytes['lives']).toBeGreaterThan(14_000)
  })
})

describe('the agent has gone', () => {
  const can = { loadSession: true, sessionCapabilities: { resume: {} } }

  /** A session of a process that has ended; the next one can do this. */
  function lost(agentCapabilities: object = {}): { stage: KeptStage; client: number } {
    const stage = new KeptStage()
    const first = left(stage)
    stage.prompt(first, 'go')
    stage.chunk('said ')
    stage.leave(first)
    stage.exit(0)
    stage.advance(1_000)
    const client = stage.connect()
    stage.ask(client, 'initialize', { protocolVersion: 1, clientInfo: { name: 'second' } })
    stage.say(0, { id: stage.told(0, 'initialize').id, result: { protocolVersion: 1, agentCapabilities } })
    return { stage, client }
  }

  test('one that can is asked once, and what it tells is all that is told', () => {
    verifies('12.16-asked-once')
    const { stage, client } = lost(can)
    const from = stage.count(client)
    const id = stage.load(client)
    const other = stage.come('other')
    const otherFrom = stage.count(other)
    const waits = stage.load(other)
    stage.chunk('again ')
    stage.say(0, { id: stage.told(0, 'session/load').id, result: {} })
    expect(stage.heard(client, from).slice(0, 2)).toEqual(['again ', `ok ${id}`])
    expect(stage.heard(other, otherFrom).slice(0, 2)).toEqual(['again ', `ok ${waits}`])
    expect(stage.atWorker.get(0)!.filter(({ method }) => method === 'session/load')).toHaveLength(1)
    stage.prompt(client, 'more')
    stage.chunk('goes on ')
    expect(stage.heard(client).at(-1)).toBe('goes on ')
  })

  test.each([
    ['cannot', {}, false],
    ['refuses', can, true],
  ])('one that %s: what was said is shown, and that the session is lost', (_what, capabilities, isAsked) => {
    verifies('12.16-lost')
    const { stage, client } = lost(capabilities)
    const from = stage.count(client)
    const id = stage.load(client)
    if (isAsked) stage.say(0, { id: stage.told(0, 'session/load').id, error: { code: -32002, message: 'no' } })
    const heard = stage.heard(client, from)
    expect(heard.slice(0, 2)).toEqual(['> go', 'said '])
    expect(heard[2]).toMatch(/lost the session.*lost true/)
    expect(heard[3]).toBe(`ok ${id}`)
    expect(stage.told(0, 'session/load') !== undefined).toBe(isAsked)
    expect(stage.answerTo(client, stage.prompt(client, 'x'))!.error).toMatchObject({
      code: -32002,
      data: { reason: 'session_lost' },
    })
    const resumed = stage.resume(client)
    if (isAsked) stage.say(0, { id: stage.told(0, 'session/resume').id, error: { code: -32002, message: 'no' } })
    expect(stage.answerTo(client, resumed)!.error.data.reason).toBe('session_lost')
  })

  test('what nobody knows is unknown', () => {
    const { stage, client } = lost()
    expect(stage.answerTo(client, stage.load(client, 'never'))!.error.data.reason).toBe('unknown_session')
    const id = stage.ask(client, 'bus::sessions.list')
    expect(stage.answerTo(client, id)!.result.sessions.map(({ session }: { session: string }) => session)).toEqual([
      's',
    ])
  })

  test('a session that the bus never saw is kept once its agent has loaded it', () => {
    const { stage, client } = lost(can)
    stage.load(client, 'old')
    stage.chunk('from disk ', 'old')
    stage.say(0, { id: stage.told(0, 'session/load').id, result: {} })
    stage.leave(client)
    const next = stage.come()
    const from = stage.count(next)
    const id = stage.load(next, 'old')
    expect(stage.heard(next, from)).toEqual(['from disk ', `ok ${id}`])
  })
})

describe('the list of sessions', () => {
  test("the agent's and the others of the principal, each once, newest first, with what they are", () => {
    verifies('12.17-list')
    const stage = new KeptStage()
    const anna = stage.connect('anna')
    stage.ask(anna, 'initialize', { protocolVersion: 1 })
    stage.say(0, {
      id: stage.told(0, 'initialize').id,
      result: { protocolVersion: 1, agentCapabilities: { sessionCapabilities: { list: {} } } },
    })
    stage.open(anna, 'a1')
    stage.prompt(anna, '  fix   the\nbug ', 'a1')
    stage.advance(1_000)
    stage.open(anna, 'a2')
    stage.update({ sessionUpdate: 'session_info_update', title: 'Named' }, 'a2')
    const ben = stage.come('ben', { as: 'ben' })
    stage.open(ben, 'b1')
    const id = stage.ask(anna, 'session/list', {})
    const first = stage.told(0, 'session/list')
    stage.say(0, {
      id: first.id,
      result: {
        sessions: [
          { sessionId: 'a1', cwd: '/work' },
          { sessionId: 'b1', cwd: '/' },
        ],
        nextCursor: 'more',
      },
    })
    const second = stage.told(0, 'session/list')
    expect(second.params.cursor).toBe('more')
    stage.say(0, { id: second.id, result: { sessions: [{ sessionId: 'old', cwd: '/', title: 'Old' }] } })
    const { sessions } = stage.answerTo(anna, id)!.result
    expect(sessions.map((each: { sessionId: string; title?: string }) => [each.sessionId, each.title])).toEqual([
      ['a2', 'Named'],
      ['a1', 'fix the bug'],
      ['old', 'Old'],
    ])
    expect(sessions[1]._meta['stdio-bus/session']).toEqual({ state: 'attached', turn: 'running', clients: 1 })
  })

  test('the folder is heeded where the agent does not', () => {
    const stage = new KeptStage()
    const client = stage.connect()
    stage.ask(client, 'initialize', { protocolVersion: 1 })
    const agentCapabilities = { sessionCapabilities: { list: {} } }
    stage.say(0, { id: stage.told(0, 'initialize').id, result: { protocolVersion: 1, agentCapabilities } })
    const id = stage.ask(client, 'session/list', { cwd: '/here' })
    const sessions = [
      { sessionId: 'here', cwd: '/here' },
      { sessionId: 'there', cwd: '/there' },
      null,
      { sessionId: 5 },
    ]
    stage.say(0, { id: stage.told(0, 'session/list').id, result: { sessions } })
    expect(stage.answerTo(client, id)!.result.sessions).toMatchObject([{ sessionId: 'here' }])
  })

  test('an agent without the method is not asked; the folder is heeded', () => {
    const stage = new KeptStage()
    const client = left(stage)
    const ids = (params: object): string[] => {
      const id = stage.ask(client, 'session/list', params)
      return stage.answerTo(client, id)!.result.sessions.map(({ sessionId }: { sessionId: string }) => sessionId)
    }
    expect(ids({})).toEqual(['s'])
    expect(ids({ cwd: '/work' })).toEqual(['s'])
    expect(ids({ cwd: '/elsewhere' })).toEqual([])
    const bad = stage.ask(client, 'session/list', { cursor: 'nonsense' })
    expect(stage.answerTo(client, bad)!.error.data.reason).toBe('bad_params')
    expect(stage.told(0, 'session/list')).toBeUndefined()
  })
})
