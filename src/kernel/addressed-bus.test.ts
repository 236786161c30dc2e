import { describe, expect, it } from 'vitest'
import { KernelRig, type Message } from '../../test/support/kernel-rig.ts'
import { FIELD } from '../wire/fields.ts'
import { DEFAULT_LIMITS } from './limits.ts'

const IDLE_MS = 600_000
const START_MS = 900_000
const CLIENT = 1
const WELCOME = { protocolVersion: 1, agentInfo: { name: 'launcher' } }
const AGENT = { protocol: 'acp', startTimeoutMs: START_MS, isLazy: true, idleTimeoutMs: IDLE_MS } as const
const FIELDS = [FIELD.agentId, FIELD.paramsAgentId, FIELD.metaAgentId]

/** Two agents that start when the test says so, and one client that asks them. */
class Rig extends KernelRig {
  #id = 0

  constructor() {
    const addressing = { fields: FIELDS, welcome: JSON.stringify(WELCOME) }
    super({ pools: ['a', 'b'].map((id) => ({ id, ...AGENT })), addressing }, { isSlow: true })
    this.connects(CLIENT)
  }

  get atClient(): Message[] {
    return this.all(CLIENT)
  }

  get spawns(): string[] {
    return this.started.map(({ pool }) => pool)
  }

  get stops(): string[] {
    const stops = this.did('close-worker').filter(({ how }) => how !== 'clear')
    return stops.map((stop) => this.started.find(({ worker }) => worker === stop.worker)!.pool)
  }

  /** Sends a request and gives its id. */
  ask(method: string, params: object, more: object = {}): number {
    const id = ++this.#id
    this.send(CLIENT, { jsonrpc: '2.0', id, method, params, ...more })
    return id
  }

  override says(agent: string, message: object): void {
    super.says(agent, { jsonrpc: '2.0', ...message })
  }

  /** The agent answers what it was asked last. */
  answers(agent: string, result: object): void {
    this.says(agent, { id: this.last(agent).id, result })
  }

  /** A session of the agent that calls it `sessionId`; gives the name at the client. */
  newSession(agent: string, sessionId: string): string {
    this.ask('session/new', { cwd: '/', mcpServers: [] }, { agentId: agent })
    if (this.isStarting(agent)) this.opens(agent)
    this.answers(agent, { sessionId })
    return this.atClient.at(-1).result.sessionId
  }

  isStarting(agent: string): boolean {
    return this.snapshot.workers.some(({ pool, state }) => pool === agent && state === 'starting')
  }

  last(agent: string): Message {
    return this.at(agent).at(-1)
  }

  answerTo(id: number): Message {
    return this.atClient.find((message) => message.id === id && message.method === undefined)
  }
}

const update = (sessionId: string, more: object = {}) => ({
  method: 'session/update',
  params: { sessionId, update: { sessionUpdate: 'x', ...more } },
})

describe('which agent', () => {
  it('is read from the top, from params, from _meta, in this order, and cut', () => {
    const rig = new Rig()
    rig.ask('session/new', { agentId: 'b', _meta: { 'stdio-bus/agentId': 'nobody' }, cwd: '/' }, { agentId: 'a' })
    rig.ask('session/new', { cwd: '/', _meta: { 'stdio-bus/agentId': 'nobody' }, agentId: 'b' })
    rig.ask('session/new', { _meta: { 'stdio-bus/agentId': 'b' } })
    rig.opens('a')
    rig.opens('b')
    expect(rig.at('a')).toEqual([{ jsonrpc: '2.0', id: 1, method: 'session/new', params: { _meta: {}, cwd: '/' } }])
    expect(rig.at('b').map(({ params }) => params)).toEqual([{ cwd: '/', _meta: {} }, { _meta: {} }])
  })

  it.each([
    '{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":1},"agentId":"a"}',
    '{"agentId":"a","jsonrpc":"2.0","id":1,"method":"m","params":{"x":1}}',
    '{"jsonrpc":"2.0","id":1,"agentId" : "a" , "pool":"p","method":"m","params":{"agentId":"b","x":1}}',
    '{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":1,"agentId":"a"},"agentId":"a","pool":"p"}',
    '{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":1 , "agentId":"a" },"pool":"p" }',
  ])('leaves no trace in %s', (line) => {
    const rig = new Rig()
    rig.send(CLIENT, line)
    rig.opens('a')
    expect(rig.last('a')).toEqual({ jsonrpc: '2.0', id: 1, method: 'm', params: { x: 1 } })
  })

  it('must be named, and be there', () => {
    const rig = new Rig()
    const nobody = rig.ask('session/new', {})
    const unknown = rig.ask('session/new', { agentId: 'c' })
    rig.send(CLIENT, { jsonrpc: '2.0', method: 'session/cancel', params: { sessionId: 's' } })
    expect(rig.answerTo(nobody).error).toMatchObject({
      code: -32600,
      data: { reason: 'agent_required', known: ['a', 'b'] },
    })
    expect(rig.answerTo(unknown).error).toMatchObject({
      code: -32601,
      data: { reason: 'unknown_agent', agentId: 'c', known: ['a', 'b'] },
    })
    expect(rig.spawns).toEqual([])
  })

  it('need not be named in an initialize: the bus answers it itself', () => {
    const rig = new Rig()
    const id = rig.ask('initialize', { protocolVersion: 1 })
    expect(rig.answerTo(id)).toEqual({ jsonrpc: '2.0', id, result: WELCOME })
    expect(rig.spawns).toEqual([])
  })

  it('follows from a known session, a lost one, or the request that is cancelled', () => {
    const rig = new Rig()
    const session = rig.newSession('a', 's')
    const turn = rig.ask('session/prompt', { sessionId: session, prompt: [] }, { agentId: 'b' })
    expect(rig.last('a')).toMatchObject({ id: turn, method: 'session/prompt' })
    rig.send(CLIENT, { jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: turn } })
    expect(rig.last('a')).toMatchObject({ method: '$/cancel_request', params: { requestId: turn } })
    rig.dies('a')
    expect(rig.answerTo(turn).error.data.reason).toBe('worker_exited')
    const late = rig.ask('session/prompt', { sessionId: session, prompt: [] })
    expect(rig.answerTo(late).error).toMatchObject({ code: -32002, data: { reason: 'session_lost' } })
    const load = rig.ask('session/load', { sessionId: session, cwd: '/', mcpServers: [] })
    rig.opens('a')
    rig.answers('a', {})
    expect(rig.answerTo(load).result).toEqual({})
    expect(rig.spawns).toEqual(['a', 'a'])
  })
})

describe('an agent that starts on demand', () => {
  it('starts with its first message, is initialised again after it died, and answers what it owed with errors', () => {
    const rig = new Rig()
    expect(rig.spawns).toEqual([])
    rig.ask('initialize', { protocolVersion: 1, agentId: 'a' })
    expect(rig.spawns).toEqual(['a'])
    rig.opens('a')
    rig.answers('a', { protocolVersion: 1 })
    const owed = rig.ask('authenticate', { agentId: 'a' })
    rig.dies('a')
    expect(rig.answerTo(owed).error.data).toMatchObject({ reason: 'worker_exited', retryable: true })
    expect(rig.spawns).toEqual(['a'])
    const next = rig.ask('session/new', {}, { agentId: 'a' })
    expect(rig.spawns).toEqual(['a', 'a'])
    rig.opens('a')
    const again = rig.last('a')
    expect(again).toMatchObject({ method: 'initialize', params: { protocolVersion: 1 } })
    expect(again.params).not.toHaveProperty('agentId')
    rig.answers('a', { protocolVersion: 1 })
    expect(rig.last('a')).toMatchObject({ id: next, method: 'session/new' })
    expect(rig.atClient.filter(({ id }) => id === again.id)).toEqual([])
  })

  it('that is slow to say hello again holds up nobody else', () => {
    const rig = new Rig()
    rig.ask('initialize', { protocolVersion: 1, agentId: 'a' })
    rig.opens('a')
    rig.answers('a', { protocolVersion: 1 })
    rig.dies('a')
    const slow = rig.ask('session/new', {}, { agentId: 'a' })
    rig.opens('a')
    expect(rig.newSession('b', 's')).toBe('s')
    rig.answers('a', { protocolVersion: 1 })
    rig.answers('a', { sessionId: 't' })
    expect(rig.answerTo(slow).result).toEqual({ sessionId: 't' })
  })

  it('is waited for as long as its start may take, and no longer', () => {
    const rig = new Rig()
    const id = rig.ask('session/new', {}, { agentId: 'a' })
    rig.pass(START_MS - 1)
    expect(rig.answerTo(id)).toBeUndefined()
    rig.pass(1)
    expect(rig.answerTo(id).error.data.reason).toBe('no_worker')
  })

  it('that cannot be had says why to all who wait, and is tried again with the next message', () => {
    const rig = new Rig()
    const [first, second] = [rig.ask('session/new', {}, { agentId: 'a' }), rig.ask('m', {}, { agentId: 'a' })]
    rig.fails('a', 'no such package')
    for (const id of [first, second])
      expect(rig.answerTo(id).error).toMatchObject({
        code: -32603,
        data: { reason: 'no_worker', retryable: true, why: 'no such package' },
      })
    expect(rig.spawns).toEqual(['a'])
    rig.newSession('a', 's')
    expect(rig.spawns).toEqual(['a', 'a'])
  })

  it('is waited for with a bound, and nobody else waits with it', () => {
    const rig = new Rig()
    const much = 'x'.repeat(1_000_000)
    const waiting = [1, 2, 3, 4, 5].map(() => rig.ask('m', { much }, { agentId: 'a' }))
    const refused = rig.ask('m', {}, { agentId: 'a' })
    expect(waiting.map((id) => rig.answerTo(id))).toEqual(waiting.map(() => undefined))
    expect(rig.answerTo(refused).error.data).toMatchObject({ reason: 'overloaded', retryable: true })
    expect(rig.newSession('b', 's')).toBe('s')
    rig.opens('a')
    expect(rig.at('a').map(({ id }) => id)).toEqual(waiting)
  })

  it('that keeps ending is left alone until the window has room', () => {
    const rig = new Rig()
    for (let i = 0; i <= DEFAULT_LIMITS.maxRestarts; i++) {
      rig.ask('m', {}, { agentId: 'a' })
      rig.opens('a')
      rig.dies('a')
    }
    const refused = rig.ask('m', {}, { agentId: 'a' })
    expect(rig.answerTo(refused).error.data.reason).toBe('no_worker')
    rig.pass(DEFAULT_LIMITS.restartWindowMs)
    expect(rig.spawns).toHaveLength(1 + DEFAULT_LIMITS.maxRestarts)
    rig.ask('m', {}, { agentId: 'a' })
    expect(rig.isStarting('a')).toBe(true)
  })

  it('ends when it is idle, not before, and starts again when it is wanted', () => {
    const rig = new Rig()
    const session = rig.newSession('a', 's')
    rig.pass(2 * IDLE_MS)
    expect(rig.stops).toEqual([])
    rig.ask('session/close', { sessionId: session })
    rig.answers('a', {})
    rig.pass(IDLE_MS - 1)
    expect(rig.stops).toEqual([])
    rig.pass(1)
    expect(rig.stops).toEqual(['a'])
    const id = rig.ask('session/new', {}, { agentId: 'a' })
    rig.dies('a')
    rig.opens('a')
    rig.answers('a', { sessionId: 't' })
    expect(rig.answerTo(id).result).toEqual({ sessionId: 't' })
  })

  it('is idle when its sessions are closed, though it cannot close any', () => {
    const rig = new Rig()
    rig.ask('initialize', { protocolVersion: 1, agentId: 'a' })
    rig.opens('a')
    rig.answers('a', { protocolVersion: 1, agentCapabilities: {} })
    const session = rig.newSession('a', 's')
    const close = rig.ask('session/close', { sessionId: session })
    expect(rig.answerTo(close).result).toEqual({})
    expect(rig.last('a').method).toBe('session/new')
    rig.pass(IDLE_MS)
    expect(rig.stops).toEqual(['a'])
  })

  it('is not idle while it owes an answer', () => {
    const rig = new Rig()
    rig.ask('m', {}, { agentId: 'a' })
    rig.opens('a')
    rig.pass(3 * IDLE_MS)
    expect(rig.stops).toEqual([])
  })
})

describe('two agents that choose the same session id', () => {
  const collide = () => {
    const rig = new Rig()
    const [first, second] = [rig.newSession('a', 's'), rig.newSession('b', 's')]
    return { rig, first, second }
  }

  it('are told apart by a name of the bus, restored on the way back', () => {
    const { rig, first, second } = collide()
    expect(first).toBe('s')
    expect(second).not.toBe('s')
    rig.ask('session/prompt', { sessionId: second, prompt: [] })
    expect(rig.last('b').params).toEqual({ sessionId: 's', prompt: [] })
    rig.says('b', update('s'))
    expect(rig.atClient.at(-1).params.sessionId).toBe(second)
    rig.says('a', update('s'))
    expect(rig.atClient.at(-1).params.sessionId).toBe('s')
    rig.ask('session/fork', { sessionId: second })
    expect(rig.last('b').params.sessionId).toBe('s')
  })

  it('ask their own client, and get its answer', () => {
    const { rig, second } = collide()
    rig.says('a', { id: 1, method: 'session/request_permission', params: { sessionId: 's' } })
    rig.says('b', { id: 1, method: 'session/request_permission', params: { sessionId: 's' } })
    const [one, two] = rig.atClient.slice(-2)
    expect([one.params.sessionId, two.params.sessionId]).toEqual(['s', second])
    expect(two.id).not.toBe(one.id)
    rig.send(CLIENT, { jsonrpc: '2.0', id: two.id, result: 'for b' })
    rig.send(CLIENT, { jsonrpc: '2.0', id: one.id, result: 'for a' })
    expect(rig.last('a')).toEqual({ jsonrpc: '2.0', id: 1, result: 'for a' })
    expect(rig.last('b')).toEqual({ jsonrpc: '2.0', id: 1, result: 'for b' })
  })

  it('an answer to what an agent asked before it died is no answer to what it asks after', () => {
    const { rig, first } = collide()
    const question = { id: 1, method: 'session/request_permission', params: { sessionId: 's' } }
    rig.says('a', question)
    const old = rig.atClient.at(-1)
    expect(old.params.sessionId).toBe(first)
    rig.dies('a')
    rig.newSession('a', 's')
    rig.says('a', question)
    const fresh = rig.atClient.at(-1)
    rig.send(CLIENT, { jsonrpc: '2.0', id: old.id, result: 'too late' })
    expect(rig.last('a').result).toBeUndefined()
    rig.send(CLIENT, { jsonrpc: '2.0', id: fresh.id, result: 'in time' })
    expect(rig.last('a')).toEqual({ jsonrpc: '2.0', id: 1, result: 'in time' })
  })

  it('are told apart in lists, in child sessions and in what came too early', () => {
    const { rig, second } = collide()
    const list = rig.ask('session/list', {}, { agentId: 'b' })
    rig.answers('b', {
      sessions: [
        { sessionId: 's', title: 'sessionId' },
        { cwd: '/', sessionId: 'u' },
      ],
      more: 1,
    })
    expect(rig.answerTo(list).result).toEqual({
      sessions: [
        { sessionId: second, title: 'sessionId' },
        { cwd: '/', sessionId: 'u' },
      ],
      more: 1,
    })
    rig.says('a', update('s', { sessionId: 'u' }))
    const child = rig.atClient.at(-1).params.update.sessionId
    expect(child).not.toBe('u')
    rig.says('a', update('u'))
    expect(rig.atClient.at(-1).params.sessionId).toBe(child)
    rig.ask('session/new', {}, { agentId: 'a' })
    rig.says('a', update('v'))
    rig.answers('a', { sessionId: 'v' })
    expect(rig.atClient.at(-1).params.sessionId).toBe('v')
  })

  it('a listed session is loaded where it was listed', () => {
    const { rig } = collide()
    rig.ask('session/list', {}, { agentId: 'b' })
    rig.answers('b', { sessions: [{ sessionId: 'old' }] })
    const load = rig.ask('session/load', { sessionId: 'old' })
    expect(rig.last('b')).toMatchObject({ id: load, params: { sessionId: 'old' } })
    rig.says('b', update('old'))
    expect(rig.atClient.at(-1).params.sessionId).toBe('old')
    rig.answers('b', {})
    const other = rig.newSession('a', 'old')
    expect(other).not.toBe('old')
  })

  it('an id that an agent uses again after it was started anew is another session', () => {
    const { rig, first } = collide()
    rig.dies('a')
    const again = rig.newSession('a', 's')
    expect(again).not.toBe(first)
    const late = rig.ask('session/prompt', { sessionId: first })
    expect(rig.answerTo(late).error.data.reason).toBe('session_lost')
    const load = rig.ask('session/load', { sessionId: first })
    expect(rig.answerTo(load).error.data.reason).toBe('session_not_owned')
    rig.ask('session/prompt', { sessionId: again })
    expect(rig.last('a').params.sessionId).toBe('s')
  })

  it('a lost session is loaded under the name that the client knows', () => {
    const { rig, second } = collide()
    rig.dies('b')
    const load = rig.ask('session/load', { sessionId: second })
    rig.opens('b')
    expect(rig.last('b').params.sessionId).toBe('s')
    rig.answers('b', {})
    expect(rig.answerTo(load).result).toEqual({})
    rig.says('b', update('s'))
    expect(rig.atClient.at(-1).params.sessionId).toBe(second)
  })

  it('stay told apart after an agent has refused a handshake', () => {
    const { rig, second } = collide()
    rig.ask('initialize', { agentId: 'b' })
    rig.says('b', { id: rig.last('b').id, error: { code: -32602, message: 'no' } })
    rig.says('b', update('s'))
    expect(rig.atClient.at(-1).params.sessionId).toBe(second)
  })

  it('are cancelled and closed by their own ids when the client goes', () => {
    const { rig, second } = collide()
    rig.ask('initialize', { agentId: 'b' })
    rig.answers('b', { agentCapabilities: { sessionCapabilities: { close: {} } } })
    rig.ask('session/prompt', { sessionId: second })
    rig.goes(CLIENT)
    const told = rig.at('b').slice(-2)
    expect(told.map(({ method, params }) => [method, params])).toEqual([
      ['session/cancel', { sessionId: 's' }],
      ['session/close', { sessionId: 's' }],
    ])
  })
})
