/** Decisions of the kernel that neither the conformance suite nor the simulation pins down, one by one. */
import { expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import {
  ANNA,
  BERT,
  type BusPart,
  CARL,
  DORA,
  identityOf,
  KernelRig,
  type Message,
  type PoolPart,
} from '../../test/support/kernel-rig.ts'
import type { Action } from './events.ts'
import type { ClientId } from './vocabulary.ts'

/** A bus with these pools and three clients. */
class Rig extends KernelRig {
  constructor(pools: readonly PoolPart[], part: BusPart = {}) {
    super({ pools: pools.map((pool) => ({ maxInstances: 4, ...pool })), ...part })
    for (const client of [ANNA, BERT, CARL]) this.connects(client)
  }
}

it('6.4 a session that two clients have loaded at workers of their own is a third one’s of nobody', () => {
  const rig = new Rig([{ sharing: 'isolated', protocol: 'acp' }])
  for (const [client, worker] of [
    [ANNA, 0],
    [BERT, 1],
  ] as const) {
    rig.send(client, { id: 1, method: 'initialize', params: { protocolVersion: 1 } })
    rig.says(worker, { id: 1, result: { protocolVersion: 1, agentCapabilities: {} } })
    rig.send(client, { id: 2, method: 'session/load', params: { sessionId: 'S' } })
    rig.says(worker, { id: 2, result: {} })
  }
  expect(rig.heard(BERT, 2).result).toEqual({})
  rig.send(CARL, { id: 1, method: 'initialize', params: { protocolVersion: 1 } })
  rig.says(2, { id: 1, result: { protocolVersion: 1, agentCapabilities: {} } })
  rig.send(CARL, { id: 2, method: 'session/prompt', params: { sessionId: 'S', prompt: [] } })
  expect(rig.reason(CARL, 2)).toBe('session_not_owned')
})

it('7.2 a worker that owes an answer is ended when hang_timeout_sec has passed, and not before', () => {
  const rig = new Rig([{ hangTimeoutMs: 400 }])
  rig.send(ANNA, { id: 1, method: 'work' })
  rig.pass(399)
  expect(rig.reason(ANNA, 1)).toBeUndefined()
  rig.pass(1)
  expect(rig.reason(ANNA, 1)).toBe('worker_stalled')
})

/** A server of a client's own, whose traffic is traced. */
function traced(): Rig {
  return new Rig([{ sharing: 'isolated', protocol: 'mcp', era: 'legacy', trace: true }])
}

const observed = (rig: Rig): Message[] => rig.did('observed').map(({ what }) => what)

it('T9 a request of a traced pool is told of twice: when it is sent, and when it is answered', () => {
  const rig = traced()
  rig.send(ANNA, { id: 'x', method: 'tools/call', params: { name: 'n' } })
  rig.says(0, { id: 'x', result: { content: [] } })
  const [opened, answered, ...more] = observed(rig)
  expect(opened).toMatchObject({ kind: 'opened', pool: 'p', protocol: 'mcp', method: 'tools/call', id: 'x', worker: 0 })
  expect(opened.body.toString()).toBe('{"name":"n"}')
  expect(answered).toMatchObject({ kind: 'answered', request: opened.request })
  expect(answered.body.toString()).toBe('{"content":[]}')
  expect(more).toEqual([])
})

it('9.24 calls and requests of a traced pool say whose they are', () => {
  const rig = new Rig([{ protocol: 'mcp', era: 'legacy', sharing: 'isolated', trace: true }], { gateway: 'all' })
  rig.connects(DORA, { door: 'tcp', identity: identityOf('dora') })
  for (const client of [ANNA, DORA]) {
    rig.send(client, { id: 1, method: 'tools/call', params: {} })
    rig.send(client, { id: 2, method: 'reader::input', params: {} })
  }
  const calls = rig.did('call').map(({ from }) => from)
  expect(calls).toMatchObject([{ client: ANNA }, { client: DORA, principal: 'dora' }])
  expect(calls[0]).not.toHaveProperty('principal')
  expect(observed(rig)).toMatchObject([
    { client: ANNA, principal: 'local' },
    { client: DORA, principal: 'dora' },
  ])
})

it('T9 an error has no body, and a request whose client goes ends as one', () => {
  const rig = traced()
  rig.send(ANNA, { id: 1, method: 'tools/call', params: {} })
  rig.says(0, { id: 1, error: { code: 1, message: 'no' } })
  rig.send(ANNA, { id: 2, method: 'tools/call', params: {} })
  rig.goes(ANNA)
  const [first, answered, second, failed, ...more] = observed(rig)
  expect(answered).toMatchObject({ kind: 'answered', request: first.request, body: undefined })
  expect(second.request).not.toBe(first.request)
  expect(failed).toMatchObject({ kind: 'failed', request: second.request, error: { data: { reason: 'client_gone' } } })
  expect(more).toEqual([])
})

it('T9 what a traced worker says and asks is told of, and how its question ends', () => {
  const rig = traced()
  rig.send(ANNA, { id: 1, method: 'tools/call', params: { _meta: { progressToken: 't' } } })
  rig.says(0, { method: 'notifications/progress', params: { progressToken: 't', progress: 1 } })
  rig.says(0, { id: 7, method: 'sampling/createMessage', params: {} })
  rig.send(ANNA, { id: 7, result: {} })
  rig.says(0, { id: 8, method: 'sampling/createMessage', params: {} })
  rig.apply({ type: 'client-ended', client: ANNA })
  const [opened, progress, asked, settled, askedAgain, ...rest] = observed(rig)
  expect(progress).toMatchObject({ kind: 'said', request: opened.request, question: undefined })
  expect(asked).toMatchObject({ kind: 'said', request: undefined, question: expect.any(Number) })
  expect(settled).toMatchObject({ kind: 'settled', question: asked.question })
  expect(JSON.parse(settled.line.toString())).toEqual({ id: 7, result: {} })
  expect(askedAgain.question).not.toBe(asked.question)
  expect(rest.map(({ kind }) => kind).sort()).toEqual(['failed', 'settled'])
  expect(rest.find(({ kind }) => kind === 'settled')).toMatchObject({ question: askedAgain.question, line: undefined })
})

it('T9 of a pool that is not traced nothing is told', () => {
  const rig = new Rig([{ sharing: 'isolated', protocol: 'mcp', era: 'legacy' }])
  rig.send(ANNA, { id: 1, method: 'tools/call', params: {} })
  rig.says(0, { id: 1, result: {} })
  expect(observed(rig)).toEqual([])
})

const INITIALIZE = { id: 1, method: 'initialize', params: { protocolVersion: 1 } }
const WELCOME = { id: 1, result: { protocolVersion: 1, agentCapabilities: {} } }

it('6.6 where sessions are spread, each new one goes to the next worker, which hears the handshake first', () => {
  const rig = new Rig([{ instances: 2, protocol: 'acp', balance: 'session' }])
  rig.send(ANNA, INITIALIZE)
  rig.says(0, WELCOME)
  rig.send(ANNA, { id: 2, method: 'session/new', params: {} })
  const [repeated, ...early] = rig.at(1)
  expect(repeated.method).toBe('initialize')
  expect(early).toEqual([])
  rig.says(1, { id: repeated.id, result: WELCOME.result })
  expect(rig.at(1).at(-1)).toMatchObject({ id: 2, method: 'session/new' })
  rig.says(1, { id: 2, result: { sessionId: 'at1' } })
  rig.send(ANNA, { id: 3, method: 'session/new', params: {} })
  expect(rig.at(0).at(-1)).toMatchObject({ id: 3, method: 'session/new' })
  rig.says(0, { id: 3, result: { sessionId: 'at0' } })
  rig.send(ANNA, { id: 4, method: 'session/prompt', params: { sessionId: 'at1', prompt: [] } })
  expect(rig.at(1).at(-1)).toMatchObject({ id: 4 })
  rig.send(ANNA, { id: 5, method: 'session/list', params: {} })
  rig.says(0, { id: 5, result: { sessions: [{ sessionId: 'at0' }] } })
  expect(rig.heard(ANNA, 5).result).toEqual({
    _meta: { 'stdio-bus/partial': true },
    sessions: [{ sessionId: 'at0' }],
  })
})

it('6.6 a list of sessions of the only worker is whole, without those of others', () => {
  const rig = new Rig([{ protocol: 'acp' }])
  for (const client of [ANNA, BERT]) {
    rig.send(client, INITIALIZE)
    rig.says(0, { ...WELCOME, id: rig.at(0).at(-1).id })
    rig.send(client, { id: 2, method: 'session/new', params: {} })
    rig.says(0, { id: rig.at(0).at(-1).id, result: { sessionId: `of ${client}` } })
  }
  rig.send(ANNA, { id: 3, method: 'session/list', params: {} })
  const sessions = [{ sessionId: 'of 1' }, { sessionId: 'old' }, { sessionId: 'of 2' }]
  rig.says(0, { id: 3, result: { sessions } })
  expect(rig.heard(ANNA, 3).result).toEqual({ sessions: sessions.slice(0, 2) })
})

it('7.2 where no worker will come, another pool serves in its place', () => {
  const rig = new Rig([{ restart: 'never', fallback: 'q' }, { id: 'q' }], { defaultPool: 'p' })
  rig.dies(0)
  rig.send(ANNA, { id: 1, method: 'work' })
  expect(rig.at(1)).toMatchObject([{ id: 1 }])
  rig.says(1, { id: 1, result: {} })
  expect(rig.heard(ANNA, 1).result).toEqual({})
})

it('7.2 where no pool serves in its place, the request is refused with the name of the pool', () => {
  const rig = new Rig([{ restart: 'never' }])
  rig.dies(0)
  rig.send(ANNA, { id: 1, method: 'work' })
  expect(rig.heard(ANNA, 1).error.data).toMatchObject({ reason: 'no_worker', pool: 'p' })
})

it('6.7 a leased server is answered for what its holder has not offered', () => {
  const rig = new Rig([{ sharing: 'lease', protocol: 'mcp', era: 'legacy' }])
  const params = { protocolVersion: '2025-11-25', capabilities: { roots: {} } }
  rig.send(ANNA, { id: 1, method: 'initialize', params })
  const greeting = rig.at(0).at(-1)
  expect(greeting.params.capabilities).toEqual({ roots: {} })
  rig.says(0, { id: greeting.id, result: { protocolVersion: '2025-11-25', capabilities: {} } })
  expect(rig.heard(ANNA, 1).result.protocolVersion).toBe('2025-11-25')
  rig.send(ANNA, { id: 2, method: 'tools/call', params: {} })
  rig.says(0, { id: 7, method: 'sampling/createMessage', params: {} })
  expect(rig.at(0).at(-1)).toMatchObject({ id: 7, error: { data: { reason: 'not_offered' } } })
  rig.says(0, { id: 8, method: 'roots/list' })
  expect(rig.heard(ANNA, 8).method).toBe('roots/list')
})

it('6.6 what an agent says once is told to those who come later', () => {
  const rig = new Rig([{ protocol: 'acp' }])
  const status = { method: '_auth/status_update', params: { status: 'in' } }
  rig.send(ANNA, INITIALIZE)
  rig.says(0, WELCOME)
  rig.says(0, status)
  rig.send(BERT, INITIALIZE)
  rig.says(0, { ...WELCOME, id: rig.at(0).at(-1).id })
  expect(rig.all(BERT)).toEqual([WELCOME, status])
})

/** Servers with a handshake that several clients share: the bus has greeted the worker, and both clients are welcomed. */
function served(): Rig {
  const rig = new Rig([{ protocol: 'mcp', era: 'legacy' }])
  const [greeting] = rig.at(0)
  rig.says(0, { id: greeting.id, result: { protocolVersion: '2025-11-25', capabilities: {} } })
  for (const client of [ANNA, BERT])
    rig.send(client, { id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {} } })
  return rig
}

const saidTo = (rig: Rig, method: string): Message[] => rig.at(0).filter((line) => line.method === method)

it('M15 a shared server is told the most verbose level that anybody wants, and only when it changes', () => {
  const rig = served()
  const setLevel = (client: ClientId, id: number, level: string): void =>
    rig.send(client, { id, method: 'logging/setLevel', params: { level } })
  setLevel(ANNA, 2, 'warning')
  setLevel(BERT, 2, 'error')
  setLevel(BERT, 3, 'debug')
  expect(rig.heard(BERT, 3).result).toEqual({})
  expect(saidTo(rig, 'logging/setLevel').map(({ params }) => params.level)).toEqual(['warning', 'debug'])
  rig.send(BERT, { id: 4, method: 'tools/call', params: {} })
  rig.says(0, { method: 'notifications/message', params: { level: 'info', data: 'x' } })
  expect(rig.all(BERT).at(-1).method).toBe('notifications/message')
  setLevel(BERT, 5, 'error')
  rig.says(0, { method: 'notifications/message', params: { level: 'info', data: 'y' } })
  expect(rig.all(BERT).at(-1).id).toBe(5)
})

it('M16 a shared server hears of a resource once, until the last who wants it has gone', () => {
  const rig = served()
  const ask = (client: ClientId, id: number, method: string): void =>
    rig.send(client, { id, method, params: { uri: 'file:///a' } })
  ask(ANNA, 2, 'resources/subscribe')
  rig.says(0, { id: saidTo(rig, 'resources/subscribe')[0].id, result: {} })
  ask(BERT, 2, 'resources/subscribe')
  expect(rig.heard(BERT, 2).result).toEqual({})
  expect(saidTo(rig, 'resources/subscribe')).toHaveLength(1)
  rig.says(0, { method: 'notifications/resources/updated', params: { uri: 'file:///a' } })
  for (const client of [ANNA, BERT]) expect(rig.all(client).at(-1).method).toBe('notifications/resources/updated')
  ask(ANNA, 3, 'resources/unsubscribe')
  expect(rig.heard(ANNA, 3).result).toEqual({})
  expect(saidTo(rig, 'resources/unsubscribe')).toEqual([])
  rig.says(0, { method: 'notifications/resources/updated', params: { uri: 'file:///a' } })
  expect(rig.all(ANNA).at(-1).id).toBe(3)
  rig.goes(BERT)
  expect(saidTo(rig, 'resources/unsubscribe')).toMatchObject([{ params: { uri: 'file:///a' } }])
})

it('7.3 the turn of a client that goes is cancelled, and its session is closed where the agent can', () => {
  const rig = new Rig([{ protocol: 'acp' }])
  rig.send(ANNA, INITIALIZE)
  rig.says(0, { id: 1, result: { protocolVersion: 1, agentCapabilities: { sessionCapabilities: { close: {} } } } })
  rig.send(ANNA, { id: 2, method: 'session/new', params: {} })
  rig.says(0, { id: 2, result: { sessionId: 'S' } })
  rig.send(ANNA, { id: 3, method: 'session/prompt', params: { sessionId: 'S', prompt: [] } })
  rig.says(0, { id: 9, method: 'session/request_permission', params: { sessionId: 'S' } })
  rig.goes(ANNA)
  expect(saidTo(rig, 'session/cancel')).toMatchObject([{ params: { sessionId: 'S' } }])
  expect(rig.at(0).find(({ id }) => id === 9).result).toEqual({ outcome: { outcome: 'cancelled' } })
  expect(saidTo(rig, 'session/close')).toMatchObject([{ params: { sessionId: 'S' } }])
})

it('7.3 the session of a client that goes is left alone where the agent cannot close it', () => {
  const rig = new Rig([{ protocol: 'acp' }])
  rig.send(ANNA, INITIALIZE)
  rig.says(0, WELCOME)
  rig.send(ANNA, { id: 2, method: 'session/new', params: {} })
  rig.says(0, { id: 2, result: { sessionId: 'S' } })
  rig.goes(ANNA)
  expect(saidTo(rig, 'session/close')).toEqual([])
  expect(saidTo(rig, 'session/cancel')).toEqual([])
})

it('7.5 a worker on demand starts with the first message and ends when it has been idle for long enough', () => {
  const rig = new Rig([{ isLazy: true, idleTimeoutMs: 500 }])
  expect(rig.started).toEqual([])
  rig.send(ANNA, { id: 1, method: 'work' })
  expect(rig.at(0)).toMatchObject([{ id: 1 }])
  const stops = (): Action[] => rig.did('close-worker')
  rig.pass(2_000)
  expect(stops()).toEqual([])
  rig.says(0, { id: 1, result: {} })
  rig.pass(499)
  expect(stops()).toEqual([])
  rig.pass(501)
  expect(stops()).toMatchObject([{ how: 'end' }])
})

it('8.1 a request times out wherever it is, and what comes later is nobody’s', () => {
  const rig = new Rig([{}], { limits: { requestTimeoutMs: 300 } })
  rig.send(ANNA, { id: 1, method: 'work' })
  rig.pass(299)
  expect(rig.all(ANNA)).toEqual([])
  rig.pass(1)
  expect(rig.reason(ANNA, 1)).toBe('request_timeout')
  rig.says(0, { id: 1, result: {} })
  expect(rig.all(ANNA)).toHaveLength(1)
  rig.send(ANNA, { id: 1, method: 'work' })
  expect(rig.at(0).at(-1).id).toBe(1)
})

it('8.1 a request that has waited for a pool without a time has that of the pool which serves it', () => {
  verifies('8.1-arrival')
  const rig = new Rig(
    [
      { restart: 'never', fallback: 'q' },
      { id: 'q', limits: { requestTimeoutMs: 300 } },
    ],
    {
      defaultPool: 'p',
    },
  )
  rig.dies(0)
  rig.send(ANNA, { id: 1, method: 'work' })
  rig.pass(299)
  expect(rig.all(ANNA)).toEqual([])
  rig.pass(1)
  expect(rig.reason(ANNA, 1)).toBe('request_timeout')
})

const DEEP = `${'['.repeat(200_000)}${']'.repeat(200_000)}`

it('5.2 a welcome that is nested beyond reason is told anew to who comes with another revision', () => {
  const rig = new Rig([{ protocol: 'mcp' }])
  const welcome = `{"protocolVersion":"2025-06-18","capabilities":{},"odd":${DEEP}}`
  rig.says(0, `{"id":${JSON.stringify(rig.at(0)[0].id)},"result":${welcome}}`)
  rig.send(ANNA, { id: 1, method: 'initialize', params: { protocolVersion: '2024-11-05', capabilities: {} } })
  expect(rig.heard(ANNA, 1).result.protocolVersion).toBe('2024-11-05')
})

it('5.2 a handshake that is nested beyond reason is sent again after a restart', () => {
  const rig = new Rig([{ protocol: 'acp' }])
  rig.send(ANNA, `{"id":1,"method":"initialize","params":{"protocolVersion":1,"odd":${DEEP}}}`)
  rig.says(0, { id: 1, result: { protocolVersion: 1 } })
  rig.dies(0)
  rig.pass(1_000)
  rig.send(ANNA, { id: 2, method: 'session/new', params: {} })
  const repeated = rig.at(0).at(-1)
  expect([repeated.method, repeated.params.protocolVersion]).toEqual(['initialize', 1])
})

it('4.1.2 a client that sends no more gets what it is owed, for a while', () => {
  const rig = new Rig([{}], { limits: { halfCloseTimeoutMs: 200 } })
  rig.send(ANNA, { id: 1, method: 'work' })
  rig.send(BERT, { id: 2, method: 'work' })
  for (const client of [ANNA, BERT]) rig.apply({ type: 'client-ended', client })
  rig.says(0, { id: 1, result: {} })
  const closed = (): Action[] => rig.did('close-client')
  expect(rig.heard(ANNA, 1).result).toEqual({})
  expect(closed()).toMatchObject([{ client: ANNA, how: 'flush' }])
  rig.pass(199)
  expect(closed()).toHaveLength(1)
  rig.pass(1)
  expect(closed()).toMatchObject([{ client: ANNA }, { client: BERT, how: 'drop' }])
})

it('7.3 a notification that waits is dropped with its client, and counted', () => {
  verifies('promise-not-silent')
  const rig = new Rig([{ sharing: 'lease', maxInstances: 1 }])
  rig.send(ANNA, { id: 1, method: 'work' })
  rig.send(BERT, { id: 1, method: 'work' })
  rig.send(BERT, { method: 'told' })
  rig.apply({ type: 'client-closed', client: BERT })
  expect(rig.snapshot.dropped).toEqual({ client_gone: 1 })
})

it('7.2 what a worker says at the very moment it would count as silent is heard first', () => {
  const rig = new Rig([{ hangTimeoutMs: 400 }])
  rig.send(ANNA, { id: 1, method: 'm' })
  rig.pass(399)
  rig.nowMs += 1
  rig.says(0, { id: 1, result: 'in time' })
  expect(rig.heard(ANNA, 1).result).toBe('in time')
  expect(rig.did('close-worker')).toEqual([])
})

it('6.4 what waits for a lease keeps its order when a notification binds the session meanwhile', () => {
  const rig = new Rig([{ sharing: 'lease', instances: 2 }])
  rig.send(ANNA, { id: 'a', method: 'm' })
  const home = rig.at(0).length > 0 ? 0 : 1
  rig.send(BERT, { id: 'b', method: 'm' })
  rig.send(CARL, { id: 'c', method: 'm' })
  rig.send(ANNA, { id: 1, method: 'm', sessionId: 's' })
  rig.send(ANNA, { method: 'note', sessionId: 's' })
  rig.send(ANNA, { id: 2, method: 'm', sessionId: 's' })
  rig.says(1 - home, { id: 'b', result: {} })
  rig.says(1 - home, { id: 'c', result: {} })
  rig.says(home, { id: 'a', result: {} })
  expect(rig.at(home).map(({ id }) => id)).toEqual(['a', undefined, 1, 2])
})

it('8.3 who was stopped because the line for a lease was full goes on when what filled it was lost with its worker', () => {
  const rig = new Rig([{ sharing: 'lease', limits: { maxOutputQueueBytes: 300 } }])
  rig.send(ANNA, { id: 1, method: 'm', sessionId: 's' })
  rig.says(0, { id: 1, result: {} })
  rig.send(BERT, { id: 'b', method: 'm' })
  rig.send(ANNA, { id: 2, method: 'm', sessionId: 's' })
  expect(rig.done.at(-1)).toMatchObject({ do: 'pause-client', client: ANNA })
  rig.send(ANNA, { id: 3, method: 'm' })
  rig.dies(0)
  expect(rig.reason(ANNA, 2)).toBe('session_lost')
  rig.pass(10_000)
  expect(rig.at(0).at(-1).id).toBe(3)
})

it('8.1 an array that uses an id that is still owed does not keep back the answer to the request that had it first', () => {
  const rig = new Rig([{ protocol: 'mcp' }], { limits: { requestTimeoutMs: 300 } })
  const revision = '2025-03-26'
  const result = { protocolVersion: revision, capabilities: {} }
  rig.says(0, { id: rig.at(0)[0].id, result })
  rig.send(ANNA, { id: 0, method: 'initialize', params: { protocolVersion: revision, capabilities: {} } })
  rig.send(ANNA, { id: 8, method: 'tools/call', params: {} })
  rig.pass(200)
  rig.send(ANNA, [
    { id: 8, method: 'tools/call', params: {} },
    { id: 9, method: 'tools/call', params: {} },
  ])
  rig.pass(100)
  expect(rig.reason(ANNA, 8)).toBe('request_timeout')
  const last = rig
    .at(0)
    .filter(({ method }) => method === 'tools/call')
    .slice(-2)
  for (const { id } of last) rig.says(0, { id, result: {} })
  expect(rig.all(ANNA).slice(2)).toEqual([{ id: 8, result: {} }, [{ id: 9, result: {} }]])
})

it('A3 a client whose pool another serves for is not led to a worker that was welcomed in another version', () => {
  const rig = new Rig(
    [
      { protocol: 'acp', restart: 'never', fallback: 'q' },
      { id: 'q', protocol: 'acp' },
    ],
    {
      defaultPool: 'p',
    },
  )
  rig.send(ANNA, { id: 1, method: 'initialize', params: { protocolVersion: 2 } })
  rig.says(0, { id: 1, result: { protocolVersion: 2 } })
  rig.send(BERT, { ...INITIALIZE, pool: 'q' })
  rig.says(1, WELCOME)
  rig.dies(0)
  const heardBefore = rig.at(1).length
  rig.send(ANNA, { id: 2, method: 'session/new', params: {} })
  expect(rig.reason(ANNA, 2)).toBe('protocol_mismatch')
  expect(rig.at(1)).toHaveLength(heardBefore)
})

it('A3 a worker that welcomes a client in another version than it was welcomed in before gets nothing of it', () => {
  const rig = new Rig([{ protocol: 'acp', sharing: 'isolated' }])
  rig.send(ANNA, { id: 1, method: 'initialize', params: { protocolVersion: 2 } })
  rig.says(0, { id: 1, result: { protocolVersion: 2 } })
  rig.dies(0)
  rig.pass(1_000)
  rig.send(ANNA, { id: 2, method: 'session/new', params: {} })
  const home = rig.at(0).length > 1 ? 0 : 1
  const repeated = rig.at(home).at(-1)
  rig.says(home, { id: repeated.id, result: { protocolVersion: 1 } })
  rig.send(ANNA, { id: 3, method: 'session/new', params: {} })
  expect([2, 3].map((id) => rig.reason(ANNA, id))).toEqual(['protocol_mismatch', 'protocol_mismatch'])
  expect(rig.at(home).at(-1)).toEqual(repeated)
  rig.send(ANNA, { id: 4, method: 'initialize', params: { protocolVersion: 1 } })
  rig.says(home, { id: 4, result: { protocolVersion: 1 } })
  rig.send(ANNA, { id: 5, method: 'session/new', params: {} })
  expect(rig.at(home).at(-1)).toMatchObject({ id: 5 })
})

it('9.19 a pool that serves in the place of another calls no tool there that its caller may not', () => {
  const tools = { allow: ['first::*', 'second::read'] }
  const rig = new Rig([{ id: 'first', restart: 'never', fallback: 'second' }, { id: 'second' }])
  rig.connects(DORA, { door: 'tcp', identity: identityOf('dora', { tools }) })
  rig.dies(0)
  rig.pass(2_000)
  rig.send(DORA, { id: 1, method: 'tools/call', pool: 'first', params: { name: 'read' } })
  rig.send(DORA, { id: 2, method: 'tools/call', pool: 'first', params: { name: 'push' } })
  expect(rig.at(1).map(({ id }) => id)).toEqual([1])
  expect(rig.reason(DORA, 2)).toBe('no_worker')
})

it('9.21 a cancel costs nothing of a rate, in whichever words', () => {
  const rate = { count: 1, perMs: 3_600_000 }
  const rig = new Rig([{}])
  rig.connects(DORA, { door: 'tcp', identity: identityOf('dora', { rate }) })
  rig.send(DORA, { id: 1, method: 'm' })
  for (const method of ['session/cancel', 'notifications/cancelled']) rig.send(DORA, { method, params: {} })
  rig.send(DORA, { id: 2, method: 'm' })
  expect(rig.at(0).map(({ method }) => method)).toEqual(['m', 'session/cancel', 'notifications/cancelled'])
  expect(rig.reason(DORA, 2)).toBe('rate_limited')
})

it('4.2.3 a cancel that has waited means the request that came before it, not a later one with its id', () => {
  const rig = new Rig([{ protocol: 'mcp', sharing: 'lease', instances: 2 }])
  const revision = { protocolVersion: '2025-11-25', capabilities: {} }
  for (const client of [ANNA, BERT, CARL]) rig.send(client, { id: 0, method: 'initialize', params: revision })
  for (const worker of [0, 1])
    rig.says(worker, { id: rig.at(worker)[0].id, result: { ...revision, serverInfo: { name: 's', version: '1' } } })
  rig.send(ANNA, { id: 'a', method: 'tools/call' })
  rig.says(0, { id: 'a', result: { task: { taskId: 't' } } })
  rig.send(BERT, { id: 'b', method: 'tools/call' })
  rig.send(CARL, { id: 'c', method: 'tools/call' })
  // The task is at the one worker, and both are lent: the lease of the other comes first.
  rig.send(ANNA, { id: 1, method: 'tools/call' })
  rig.send(ANNA, { method: 'notifications/cancelled', params: { requestId: 1 } })
  rig.send(ANNA, { id: 1, method: 'tasks/get', params: { taskId: 't' } })
  rig.says(1, { id: 'b', result: {} })
  expect(rig.at(1).slice(-2)).toMatchObject([
    { id: 1 },
    { method: 'notifications/cancelled', params: { requestId: 1 } },
  ])
  rig.says(0, { id: 'c', result: {} })
  rig.says(0, { id: rig.at(0).at(-1).id, result: { status: 'working' } })
  expect(rig.heard(ANNA, 1).result).toEqual({ status: 'working' })
})
