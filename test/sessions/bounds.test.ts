/** What peers can make grow, and who may do what, in kept sessions (contract 12.14, 12.16, 12.17, 12.20). */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { KeptStage } from './kept-stage.ts'

const PERMISSION = 'session/request_permission'

function asks(stage: KeptStage, id: string, more: object = {}): void {
  stage.say(0, { id, method: PERMISSION, params: { sessionId: 's', toolCall: { toolCallId: 't' }, ...more } })
}

function outcomeOf(stage: KeptStage, id: string): string | undefined {
  return stage.atWorker.get(0)!.find((message) => message.id === id && message.method === undefined)?.result.outcome
    .outcome
}

describe('questions that wait', () => {
  function detached(): KeptStage {
    const stage = new KeptStage()
    const client = stage.come()
    stage.open(client)
    stage.leave(client)
    return stage
  }

  test('no more than 64', () => {
    verifies('12.14-bounds')
    const stage = detached()
    for (let n = 0; n < 65; n++) asks(stage, `q${n}`)
    expect([outcomeOf(stage, 'q63'), outcomeOf(stage, 'q64')]).toEqual([undefined, 'cancelled'])
    const next = stage.come()
    stage.load(next)
    expect(stage.heard(next).filter((line) => line === PERMISSION)).toHaveLength(64)
  })

  test('no more than 1 MiB; a small one after a large one still waits', () => {
    verifies('12.14-bounds')
    const stage = detached()
    const half = { text: 'x'.repeat(600_000) }
    asks(stage, 'first', half)
    asks(stage, 'second', half)
    asks(stage, 'small')
    expect(['first', 'second', 'small'].map((id) => outcomeOf(stage, id))).toEqual([undefined, 'cancelled', undefined])
  })
})

describe('questions that are put to somebody', () => {
  function driven(): { stage: KeptStage; client: number } {
    const stage = new KeptStage()
    const client = stage.come()
    stage.open(client)
    return { stage, client }
  }

  function reads(stage: KeptStage, id: string): void {
    stage.say(0, { id, method: 'fs/read_text_file', params: { sessionId: 's', path: '/a' } })
  }

  test('are as many and as long as without kept sessions; when the driver goes, what may wait does', () => {
    verifies('12.14-bounds')
    const { stage, client } = driven()
    for (let n = 0; n < 100; n++) reads(stage, `q${n}`)
    const params = { sessionId: 's', path: '/a', content: 'x'.repeat(1_040_000) }
    stage.say(0, { id: 'big', method: 'fs/write_text_file', params })
    expect(stage.heard(client).filter((line) => line.startsWith('fs/'))).toHaveLength(101)
    stage.leave(client)
    const refused = stage.atWorker.get(0)!.filter(({ error }) => error?.data.reason === 'client_gone')
    expect(refused.map(({ id }) => id)).toEqual([...Array.from({ length: 36 }, (_, n) => `q${n + 64}`), 'big'])
  })

  test('are bounded by what a queue may hold, and one more', () => {
    const { stage, client } = driven()
    const content = 'x'.repeat(1_000_000)
    for (let n = 0; n < 6; n++)
      stage.say(0, { id: `w${n}`, method: 'fs/write_text_file', params: { sessionId: 's', path: '/a', content } })
    expect(stage.heard(client).filter((line) => line.startsWith('fs/'))).toHaveLength(5)
    expect(stage.atWorker.get(0)!.at(-1)).toMatchObject({ id: 'w5', error: { data: { reason: 'overloaded' } } })
  })
})

describe('an agent that is asked for a session again', () => {
  function asked(maxBytes: number): { stage: KeptStage; client: number; id: number } {
    const stage = new KeptStage({ maxBytes })
    const client = stage.connect()
    stage.ask(client, 'initialize', { protocolVersion: 1 })
    const agentCapabilities = { loadSession: true }
    stage.say(0, { id: stage.told(0, 'initialize').id, result: { protocolVersion: 1, agentCapabilities } })
    return { stage, client, id: stage.load(client) }
  }

  test('and tells without end fills no memory: the newest is kept, after the newest of each state', () => {
    verifies('12.16-bounded')
    const { stage, client, id } = asked(10_000)
    stage.update({ sessionUpdate: 'plan', entries: [] })
    for (let n = 0; n < 400; n++) stage.chunk(`${n} ${'x'.repeat(200)}`)
    stage.say(0, { id: stage.told(0, 'session/load').id, result: {} })
    expect(stage.answerTo(client, id)!.result).toBeDefined()
    expect(stage.heard(client).filter((line) => / x/.test(line))).toHaveLength(400)
    expect(stage.snapshot.kept_sessions!.bytes).toBeLessThanOrEqual(10_000)
    const next = stage.come()
    const from = stage.count(next)
    stage.load(next)
    const heard = stage.heard(next, from)
    expect(heard[0]).toBe('plan')
    const numbers = heard.filter((line) => / x/.test(line)).map((line) => Number(line.split(' ')[0]))
    expect(numbers.at(-1)).toBe(399)
    expect(numbers).toEqual(numbers.map((_, index) => 400 - numbers.length + index))
  })

  test('and says yes without telling anything: nobody is told more than it says', () => {
    verifies('12.16-asked-once')
    const { stage, client, id } = asked(10_000)
    const from = stage.count(client)
    stage.say(0, { id: stage.told(0, 'session/load').id, result: {} })
    expect(stage.heard(client, from)).toEqual([`ok ${id}`])
    const prompt = stage.prompt(client, 'go on')
    stage.say(0, { id: stage.told(0, 'session/prompt').id, error: { code: -32002, message: 'never heard of it' } })
    expect(stage.answerTo(client, prompt)!.error.message).toBe('never heard of it')
  })

  test('and answers with another session, or nonsense, makes nobody its owner', () => {
    verifies('12.16-asked-once')
    const { stage, client, id } = asked(10_000)
    stage.say(0, { id: stage.told(0, 'session/load').id, result: { sessionId: 'other', modes: 7, configOptions: 'x' } })
    expect(stage.answerTo(client, id)!.result).toBeDefined()
    const before = stage.count(client)
    stage.chunk('not for you', 'other')
    expect(stage.count(client)).toBe(before)
    const next = stage.come()
    expect(stage.answerTo(next, stage.load(next))!.result).toMatchObject({ modes: 7, configOptions: 'x' })
  })
})

describe('many sessions', () => {
  const stored = (count: number) =>
    Array.from({ length: count }, (_, n) => ({
      session: `old-${n}`,
      pool: 'p',
      principal: n % 2 === 0 ? 'anna' : 'ben',
      cwd: '/',
      title: '',
      createdAtMs: n + 1,
      updatedAtMs: n + 1,
      seq: 0,
      firstSeq: 1,
      bytes: 0,
      isLost: false,
    }))

  test('lists go on by cursors: each once, newest first', () => {
    verifies('12.17-pages')
    const stage = new KeptStage({ isJournaled: true })
    stage.tell({ type: 'journal-opened', sessions: stored(2_500) })
    const anna = stage.come('editor', { as: 'anna' })
    const collect = (method: string, at: string, params: object = {}): string[] => {
      const ids: string[] = []
      for (let cursor: string | undefined, page = 0; page === 0 || cursor !== undefined; page++) {
        const answer = stage.answerTo(anna, stage.ask(anna, method, { ...params, cursor }))!.result
        ids.push(...answer.sessions.map((each: Record<string, string>) => each[at]))
        cursor = answer.nextCursor ?? answer.next_cursor
      }
      return ids
    }
    const own = Array.from({ length: 1_250 }, (_, n) => `old-${2_498 - 2 * n}`)
    expect(collect('session/list', 'sessionId')).toEqual(own)
    expect(collect('bus::sessions.list', 'session', { limit: 300 })).toEqual(own)
  })

  test('whose they are is remembered for 100,000; the oldest that has ended is forgotten first', () => {
    verifies('12.17-owners')
    const stage = new KeptStage({ isJournaled: true })
    stage.tell({ type: 'journal-opened', sessions: stored(100_000) })
    const ben = stage.come('editor', { as: 'ben' })
    const reason = (session: string): string => stage.answerTo(ben, stage.load(ben, session))!.error.data.reason
    expect(reason('old-0')).toBe('session_not_owned')
    stage.open(ben, 'new')
    expect(stage.journal.filter(({ order }) => order === 'delete')).toEqual([
      { order: 'delete', key: '["anna","old-0"]' },
    ])
    expect(reason('old-0')).toBe('unknown_session')
    expect(reason('old-2')).toBe('session_not_owned')
  })
})

test.each([true, false])('whose it was is remembered longer than what was said: on disk %s', (isJournaled) => {
  verifies('12.17-owners')
  const stage = new KeptStage({ keepMs: 5_000, isJournaled })
  const come = (as: string): number => {
    const client = stage.connect(as)
    stage.ask(client, 'initialize', { protocolVersion: 1 })
    const asked = stage.lastAsked('initialize')
    const result = { protocolVersion: 1, agentCapabilities: { loadSession: true } }
    if (asked !== undefined) stage.say(0, { id: asked.message.id, result })
    return client
  }
  const ann = come('ann')
  stage.open(ann)
  stage.chunk('secret')
  stage.leave(ann)
  stage.advance(60_000)
  const ben = come('ben')
  const before = stage.toldCount
  expect(stage.answerTo(ben, stage.load(ben))!.error.data.reason).toBe('session_not_owned')
  expect(stage.toldSince(before)).toEqual([])
  const again = come('ann')
  const id = stage.load(again)
  stage.chunk('told again')
  stage.say(0, { id: stage.told(0, 'session/load').id, result: {} })
  expect(stage.answerTo(again, id)!.result).toBeDefined()
  expect(stage.heard(again).filter((line) => /secret|told/.test(line))).toEqual(['told again'])
})

test('an observer makes, loads and prompts no session; the agent is not asked', () => {
  verifies('12.20-roles')
  const stage = new KeptStage()
  const anna = stage.come('one', { as: 'anna' })
  stage.open(anna)
  const olga = stage.connect('olga', 'observer')
  const before = stage.toldCount
  for (const id of [
    stage.ask(olga, 'session/new', { cwd: '/', mcpServers: [] }),
    stage.load(olga),
    stage.prompt(olga, 'x'),
  ])
    expect(stage.answerTo(olga, id)!.error).toMatchObject({ code: -32600, data: { reason: 'not_allowed' } })
  expect(stage.toldSince(before)).toEqual([])
})

test('ids with control characters are ids like others', () => {
  verifies('12.19-parameters')
  const stage = new KeptStage()
  const client = stage.come()
  const odd = '\u001b[2J\n"\u0000\u2028'
  stage.open(client, odd)
  stage.leave(client)
  stage.chunk('said', odd)
  const next = stage.come()
  const id = stage.load(next, odd)
  expect(stage.heard(next).slice(-2)).toEqual(['said', `ok ${id}`])
  const watcher = stage.connect()
  const attached = stage.ask(watcher, 'bus::sessions.attach', { session: odd, role: 'observe' })
  expect(stage.answerTo(watcher, attached)!.result.session).toBe(odd)
})

test('what an agent nests beyond reason is told as it is, and ends nothing when it is told again', () => {
  verifies('12.11-nested')
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
  const stage = new KeptStage()
  const client = stage.come()
  const answer = (method: string, result: string): void => {
    const { worker, message } = stage.lastAsked(method)!
    stage.say(worker, `{"jsonrpc":"2.0","id":${message.id},"result":${result}}\n`)
  }
  const opened = stage.ask(client, 'session/new', { cwd: '/work', mcpServers: [] })
  answer('session/new', `{"sessionId":"s","odd":${deep}}`)
  expect(stage.answerTo(client, opened)!.result.sessionId).toBe('s')
  const update = `{"sessionUpdate":"config_option_update","configOptions":[{"id":"o","odd":${deep}}]}`
  stage.say(0, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":${update}}}\n`)
  const next = stage.come()
  const loaded = stage.load(next)
  expect(stage.answerTo(next, loaded)!.result).toMatchObject({ odd: expect.anything(), configOptions: [{ id: 'o' }] })
})
