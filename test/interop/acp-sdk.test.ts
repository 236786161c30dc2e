/** Real ACP clients and a real ACP agent, both on the official SDK, through the daemon: clauses 6.4 to 6.9 and 7.1, 7.3. */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { sharedBus } from '../support/shared-bus.ts'
import { eventually } from '../support/waiting.ts'
import { acpClient, acpPool, agentHears, errorOf, heardByAgents, initialised } from './acp-peers.ts'

const NOT_OWNED = { code: -32002, data: { reason: 'session_not_owned' } }
const never = () => new Promise(() => {})

describe('several clients on one agent', () => {
  const bus = sharedBus({ config: config(acpPool()) })

  test('6.4 each has its own sessions, with the same ids of requests on both sides', async () => {
    verifies('A5-owner')
    const clients = await initialised(bus(), 3)
    const ids = await Promise.all(clients.map((client) => client.newSession()))
    expect(new Set(ids).size).toBe(3)
    const reasons = await Promise.all(clients.map((client, n) => client.prompt(ids[n]!, `echo hello ${n}`)))
    expect(reasons).toEqual(['end_turn', 'end_turn', 'end_turn'])
    for (const [n, client] of clients.entries())
      expect(client.updates).toEqual([{ sessionId: ids[n], text: `hello ${n}` }])
  })

  test('6.4 a session of another client is refused: prompt, load, resume, fork, close', async () => {
    verifies('6.4-load-resume', 'A6-refused')
    const [owner, thief] = await initialised(bus(), 2)
    const sessionId = await owner!.newSession()
    await owner!.load('saved-owned')
    expect(await errorOf(thief!.prompt(sessionId, 'echo x'))).toMatchObject(NOT_OWNED)
    expect(await errorOf(thief!.load('saved-owned'))).toMatchObject(NOT_OWNED)
    expect(await errorOf(thief!.resume(sessionId))).toMatchObject(NOT_OWNED)
    expect(await errorOf(thief!.ctx.request('session/fork', { sessionId, cwd: '/', mcpServers: [] }))).toMatchObject(
      NOT_OWNED,
    )
    await thief!.ctx.request('session/close', { sessionId })
    await thief!.ctx.notify('session/cancel', { sessionId })
    expect(await owner!.prompt(sessionId, 'echo still mine')).toBe('end_turn')
    expect(thief!.updates).toEqual([])
    expect(
      heardByAgents(bus()).filter(
        ({ method, params }) => params?.sessionId === sessionId && /close|cancel/.test(method),
      ),
    ).toEqual([])
  })

  test('6.4 session/list shows a client its own live sessions and what can be loaded, never those of others', async () => {
    verifies('A7-list')
    const [one, other] = await initialised(bus(), 2)
    const [mine, theirs] = [await one!.newSession(), await other!.newSession()]
    await one!.load('saved-1')
    expect(await one!.list()).toEqual(expect.arrayContaining([mine, 'saved-1', 'saved-2']))
    expect(await other!.list()).toEqual(expect.arrayContaining([theirs, 'saved-2']))
    expect(await one!.list()).not.toContain(theirs)
    expect(await other!.list()).not.toContain(mine)
    expect(await other!.list()).not.toContain('saved-1')
  })

  test('6.5 questions go to the owner of the session, all at once, whatever ids the two sides use', async () => {
    verifies('6.5-worker-requests', 'A9-questions', 'A10-complete')
    const clients = await initialised(bus(), 3)
    const ids = await Promise.all(clients.map((client) => client.newSession()))
    for (const [text, shown] of [
      ['permission', 'permission: selected yes'],
      ['read /a/b', 'content of /a/b'],
      ['terminal', 'terminal: 0 out'],
      ['elicit session', 'elicited: accept Ada'],
      ['elicit request', 'elicited: accept Ada'],
      ['elicit url', 'elicited: accept Ada'],
    ] as const) {
      const before = clients.map((client) => client.asked.length)
      await Promise.all(clients.map((client, n) => client.prompt(ids[n]!, text)))
      for (const [n, client] of clients.entries()) {
        expect(client.shown(ids[n]!).endsWith(shown)).toBe(true)
        expect(client.asked.length).toBeGreaterThan(before[n]!)
      }
    }
    for (const [n, client] of clients.entries()) {
      const strangers = client.asked.filter(
        ({ params }) => params.sessionId !== undefined && params.sessionId !== ids[n],
      )
      expect(strangers).toEqual([])
      const completes = client.asked.filter(({ method }) => method === 'elicitation/complete')
      expect(completes.map(({ params }) => params.elicitationId)).toEqual([`e-${ids[n]}`])
    }
  })

  test('6.5 a question of a request names the id its client gave it', async () => {
    verifies('A10-request')
    const [one, other] = await initialised(bus(), 2, (method) => (method === 'elicitation/create' ? never() : {}))
    const [mine, theirs] = [await one!.newSession(), await other!.newSession()]
    void one!.prompt(mine, 'elicit request').catch(() => {})
    await eventually('the first question', () => one!.asked.length > 0)
    void other!.prompt(theirs, 'elicit request').catch(() => {})
    await eventually('the second question', () => other!.asked.length > 0)
    expect(other!.asked[0]!.params.requestId).toBe(one!.asked[0]!.params.requestId)
  })

  test('6.6 every client is initialised with the agent itself, and stays with it', async () => {
    verifies('A2-own-initialize')
    const before = heardByAgents(bus()).filter(({ method }) => method === 'initialize').length
    const [one, other] = await initialised(bus(), 2)
    expect((await one!.initialize()).agentInfo).toMatchObject({ name: 'deterministic' })
    expect((await other!.initialize()).protocolVersion).toBe(1)
    expect(heardByAgents(bus()).filter(({ method }) => method === 'initialize')).toHaveLength(before + 4)
  })

  test('6.6 fork gives a session of the same client; close ends one, and its id is nobody’s', async () => {
    verifies('4.2.2-result-session', 'A5-fork', 'A8-close')
    const [one, other] = await initialised(bus(), 2)
    const sessionId = await one!.newSession()
    const { sessionId: forked } = await one!.ctx.request<{ sessionId: string }>('session/fork', {
      sessionId,
      cwd: '/',
      mcpServers: [],
    })
    expect(await one!.prompt(forked, 'echo from the fork')).toBe('end_turn')
    expect(await errorOf(other!.prompt(forked, 'echo x'))).toMatchObject(NOT_OWNED)
    await one!.ctx.request('session/close', { sessionId })
    for (const client of [one!, other!]) {
      const error = await errorOf(client.prompt(sessionId, 'echo x'))
      expect(error).toMatchObject({ code: -32002 })
      expect(error.data?.reason).toBeUndefined()
    }
  })

  test('6.8 child sessions belong to the client of their parent', async () => {
    verifies('A9-child')
    const [one, other] = await initialised(bus(), 2)
    const sessionId = await one!.newSession()
    await one!.prompt(sessionId, 'child sub-1')
    await eventually('the child to speak', () => one!.shown('sub-1') === 'child sub-1')
    expect(other!.updates).toEqual([])
    expect(await errorOf(other!.prompt('sub-1', 'echo x'))).toMatchObject(NOT_OWNED)
  })

  test('order: updates of a turn come in order and before its answer; the replay of a load before its answer', async () => {
    verifies('A6-replay', 'A9-updates')
    const [client] = await initialised(bus(), 1)
    const sessionId = await client!.newSession()
    await client!.prompt(sessionId, 'burst 50')
    const texts = Array.from({ length: 50 }, (_, n) => `${sessionId}: ${n} `)
    expect(client!.order).toEqual([`new ${sessionId}`, ...texts, `${sessionId} end_turn`])
    await client!.load('saved-order')
    expect(client!.order.slice(-3)).toEqual(['saved-order: one ', 'saved-order: two ', 'loaded saved-order'])
  })

  test('cancel: session/cancel ends the turn of that session alone, $/cancel_request that request alone', async () => {
    verifies('A11-session', 'A11-request')
    const [one, other] = await initialised(bus(), 2)
    const [mine, theirs] = [await one!.newSession(), await other!.newSession()]
    const turns = [one!.prompt(mine, 'wait'), other!.prompt(theirs, 'wait')]
    await agentHears(
      bus(),
      'both prompts',
      ({ method, params }) => method === 'session/prompt' && params.sessionId === theirs,
    )
    await one!.ctx.notify('session/cancel', { sessionId: mine })
    expect(await turns[0]).toBe('cancelled')
    const abort = new AbortController()
    const again = one!.prompt(mine, 'wait', abort.signal)
    const { id } = await agentHears(
      bus(),
      'the third',
      ({ method, params, id }) => method === 'session/prompt' && params.sessionId === mine && id !== 2,
    )
    abort.abort()
    expect(await again).toBe('cancelled')
    expect(heardByAgents(bus()).findLast(({ method }) => method === '$/cancel_request').params.requestId).toBe(id)
    await other!.ctx.notify('session/cancel', { sessionId: theirs })
    expect(await turns[1]).toBe('cancelled')
  })
})

describe('6.9 an agent that speaks of a session before it has announced it', () => {
  test('its updates follow the answer of session/new', async () => {
    verifies('6.9-held', 'A5-early')
    const bus = await startBus({ config: config(acpPool({ args: ['early'] })) })
    const clients = await initialised(bus, 5)
    const ids = await Promise.all(clients.map((client) => client.newSession()))
    for (const [n, client] of clients.entries()) {
      await eventually('the early update', () => client.updates.length > 0)
      expect(client.order).toEqual([`new ${ids[n]}`, `${ids[n]}: early `])
    }
  })
})

describe('6.4 two agents that choose the same session ids', () => {
  test('serve both clients; for one client on both, the second is refused', async () => {
    verifies('6.4-same-id-two-workers', '6.4-conflict')
    const one = acpPool({ protocol: 'acp' })
    const bus = await startBus({ config: { pools: [one, { ...one, id: 'other' }], default_pool: 'agent' } })
    const raw = await bus.connect()
    const make = (id: number, pool: string) => ({
      jsonrpc: '2.0',
      id,
      method: 'session/new',
      pool,
      params: { cwd: '/', mcpServers: [] },
    })
    const theirs = await bus.connect()
    const hello = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1 } }
    await raw.ask({ ...hello, pool: 'agent' })
    await theirs.ask({ ...hello, pool: 'other' })
    expect((await raw.ask(make(1, 'agent'))).result).toEqual({ sessionId: 's1' })
    expect((await theirs.ask(make(1, 'other'))).result).toEqual({ sessionId: 's1' })
    const prompt = (id: number, text: string) => ({
      jsonrpc: '2.0',
      id,
      method: 'session/prompt',
      params: { sessionId: 's1', prompt: [{ type: 'text', text }] },
    })
    for (const [client, text] of [
      [raw, 'one'],
      [theirs, 'two'],
    ] as const) {
      client.send(prompt(2, `echo ${text}`))
      expect((await client.next()).params.update.content.text).toBe(text)
      await client.answerTo(2)
    }
    theirs.close()
    await agentHears(bus, 'the close', ({ method }) => method === 'session/close')
    expect((await raw.ask(make(3, 'agent'))).result).toEqual({ sessionId: 's2' })
    expect((await raw.ask(make(4, 'other'))).error).toMatchObject({
      code: -32603,
      data: { reason: 'session_id_conflict', sessionId: 's2' },
    })
  })
})

describe('7.3 a client that goes', () => {
  test('its turn is cancelled, its questions are answered, its sessions are closed; others notice nothing', async () => {
    verifies('7.3-worker-told', 'A14-told')
    const bus = await startBus({ config: config(acpPool()) })
    const [gone, other] = await initialised(bus, 2, (method) =>
      method === 'session/request_permission' ? never() : {},
    )
    const [waiting, asking, quiet] = [await gone!.newSession(), await gone!.newSession(), await gone!.newSession()]
    const theirs = await other!.newSession()
    void gone!.prompt(waiting, 'wait').catch(() => {})
    void gone!.prompt(asking, 'permission').catch(() => {})
    await eventually('the question', () => gone!.asked.length === 1)
    gone!.leave()
    for (const sessionId of [waiting, asking])
      await agentHears(
        bus,
        'the cancel',
        ({ method, params }) => method === 'session/cancel' && params.sessionId === sessionId,
      )
    await agentHears(bus, 'the answer', ({ result }) => result?.outcome?.outcome === 'cancelled')
    for (const sessionId of [waiting, asking, quiet])
      await agentHears(
        bus,
        'the close',
        ({ method, params }) => method === 'session/close' && params.sessionId === sessionId,
      )
    expect(await other!.prompt(theirs, 'echo here')).toBe('end_turn')
    const heard = heardByAgents(bus).filter(({ params }) => params?.sessionId === theirs)
    expect(heard.map(({ method }) => method)).toEqual(['session/prompt'])
    await bus.statusWhere(
      'only one client is left',
      ({ clients, sessions, outstanding }) => clients === 1 && sessions === 1 && outstanding === 0,
    )
  })

  test('a session that is announced to a client that has gone is closed too; an agent that cannot close is not asked to', async () => {
    verifies('A14-cannot-close')
    const bus = await startBus({ config: config(acpPool({ args: ['plain'] })) })
    const [gone, other] = await initialised(bus, 2)
    await gone!.newSession()
    gone!.leave()
    await bus.statusWhere('it has gone', ({ clients }) => clients === 1)
    await other!.newSession()
    expect(heardByAgents(bus).filter(({ method }) => method === 'session/close')).toEqual([])
  })
})

describe('7.1 an agent that dies', () => {
  test('errors once; initialize repeated once per client; sessions are lost until load brings them back', async () => {
    verifies('6.6-replay', '7.1-brought-back', 'A2-repeated', 'A15-exited', 'A15-lost')
    const bus = await startBus({ config: config(acpPool()) })
    const [one, other] = await initialised(bus, 2)
    const [mine, theirs] = [await one!.newSession(), await other!.newSession()]
    await one!.load('saved-back')
    const waiting = errorOf(other!.prompt(theirs, 'wait'))
    const died = await errorOf(one!.prompt(mine, 'die'))
    expect(died).toMatchObject({ code: -32603, data: { reason: 'worker_exited', exitCode: 3, retryable: true } })
    expect(await waiting).toMatchObject({ code: -32603, data: { reason: 'worker_exited' } })
    for (const client of [one!, other!]) {
      const error = await errorOf(client.prompt(client === one ? mine : theirs, 'echo x'))
      expect(error).toMatchObject({ code: -32002, data: { reason: 'session_lost' } })
    }
    const fresh = await other!.newSession()
    expect(await other!.prompt(fresh, 'echo again')).toBe('end_turn')
    await one!.load('saved-back')
    expect(await one!.prompt('saved-back', 'echo back')).toBe('end_turn')
    expect(one!.shown('saved-back')).toBe('one two one two back')
    const { pid } = heardByAgents(bus).at(-1)
    const second = heardByAgents(bus).filter((message) => message.pid === pid)
    expect(second.filter(({ method }) => method === 'initialize')).toHaveLength(2)
    expect(second[0].method).toBe('initialize')
    expect(second.filter(({ params }) => params?.prompt?.[0]?.text === 'die')).toEqual([])
  })
})

describe('isolated', () => {
  test('each client has an agent of its own, and session ids may be alike', async () => {
    const bus = await startBus({ config: config(acpPool({ sharing: 'isolated', instances: 2 })) })
    const clients = await initialised(bus, 2)
    expect(await Promise.all(clients.map((client) => client.newSession()))).toEqual(['s1', 's1'])
    await Promise.all(clients.map((client, n) => client.prompt('s1', `echo ${n}`)))
    expect(clients.map((client) => client.shown('s1'))).toEqual(['0', '1'])
  })
})

describe('lease', () => {
  test('one turn at a time, each with its questions, for clients that know nothing of it', async () => {
    const bus = await startBus({ config: config(acpPool({ sharing: 'lease' })) })
    const clients = await initialised(bus, 3)
    const ids: string[] = []
    for (const client of clients) ids.push(await client.newSession())
    await Promise.all(clients.map((client, n) => client.prompt(ids[n]!, 'permission')))
    for (const [n, client] of clients.entries()) expect(client.shown(ids[n]!)).toBe('permission: selected yes')
  })
})

test('a first message that is not initialize reaches the agent, whose own answer comes back', async () => {
  verifies('A4-before')
  const bus = await startBus({ config: config(acpPool({ protocol: 'acp' })) })
  const client = await acpClient(bus)
  expect(await errorOf(client.newSession())).toMatchObject({ code: -32600 })
  await client.initialize()
  expect(await client.prompt(await client.newSession(), 'echo hi')).toBe('end_turn')
})
