/** Kept sessions over the API: whose one sees, what was said, taking part, questions (contract 15.4, 15.5, 15.8, 15.18). */
import { expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { acpPool, heardByAgents, initialised, rawPool } from '../interop/acp-peers.ts'
import { type Bus, startBus } from '../support/bus.ts'
import { config } from '../support/pools.ts'
import { eventually } from '../support/waiting.ts'
import { logIn, Visitor } from './console-harness.ts'

const KEEP = { sessions: { keep_sec: 600 } }

function startKept(pool: object = {}): Promise<Bus> {
  const file = { ...config(acpPool({ ...KEEP, ...pool })), store: { path: 'store.db' } }
  return startBus({ config: file, doors: ['unix', 'http'] })
}

/** A session in which something was said, and nobody is left. */
async function leftSession(bus: Bus, prompt = 'echo hello'): Promise<string> {
  const [client] = await initialised(bus, 1)
  const session = await client!.newSession()
  await client!.prompt(session, prompt)
  client!.leave()
  return session
}

const textOf = (lines: readonly { params: { update?: { content?: { text?: string } } } }[]): string =>
  lines.map(({ params }) => params.update?.content?.text ?? '').join('')

test('15.8 a list of sessions, one of them, and all that was said in it; to look changes nothing', async () => {
  verifies('15.8-list', '15.8-lines')
  const bus = await startKept()
  const session = await leftSession(bus, 'burst 30')
  const visitor = await logIn(bus)
  const { items, not_kept } = (await visitor.get('sessions')).json
  expect(items).toMatchObject([{ session, pool: 'agent', state: 'detached', turn: 'idle', waiting: [] }])
  expect(not_kept).toEqual([])
  const before = (await visitor.get(`sessions/${session}`)).json
  expect(before).toMatchObject({ session, title: 'burst 30', driving: false })
  const all = (await visitor.get(`sessions/${session}/lines?limit=500`)).json
  expect(all.items.map(({ seq }: { seq: number }) => seq)).toEqual(
    Array.from({ length: before.seq }, (_, index) => index + 1),
  )
  expect(textOf(all.items)).toContain(Array.from({ length: 30 }, (_, n) => `${n} `).join(''))
  const first = (await visitor.get(`sessions/${session}/lines?limit=5`)).json
  expect(first).toMatchObject({ next_cursor: '6' })
  const second = (await visitor.get(`sessions/${session}/lines?limit=5&cursor=${first.next_cursor}`)).json
  expect(second.items[0].seq).toBe(6)
  expect((await visitor.get(`sessions/${session}`)).json.seq).toBe(before.seq)
})

test.each(['shared', 'isolated'])('15.8 the transcript is live, and goes on from a position: %s', async (sharing) => {
  verifies('15.8-live')
  const bus = await startKept({ sharing })
  const session = await leftSession(bus)
  const visitor = await logIn(bus)
  const topic = `session:${session}`
  const following = await visitor.follow(`${topic},sessions`)
  const head = await following.first(topic, () => true)
  expect(head).toMatchObject({ state: 'detached', turn: 'idle' })
  expect((await visitor.post(`sessions/${session}/prompt`, { text: 'drip 5' })).status).toBe(200)
  await following.first(topic, ({ params }) => params?.kind === 'turn_ended')
  expect(textOf(following.of(topic).slice(1))).toBe('drip 50 1 2 3 4 ')
  await following.first('sessions', ({ items }) => items[0]?.state === 'attached')
  const lines = following.of(topic).slice(1)
  expect(lines.map(({ seq }) => seq)).toEqual(lines.map((_, index) => head.seq + 1 + index))
  const id = following.events.findLast((event) => event.id !== undefined)!.id!
  following.close()
  await visitor.post(`sessions/${session}/prompt`, { text: 'echo again' })
  const back = await visitor.follow(topic, { 'last-event-id': id })
  await back.first(topic, ({ params }) => params?.update?.content?.text === 'again')
  expect(back.of(topic)[1].seq).toBe(lines.at(-1)!.seq + 1)
})

test('15.8 a waiting question is answered once, by whoever comes first', async () => {
  verifies('15.8-answer')
  const bus = await startKept()
  const [client] = await initialised(bus, 1)
  const session = await client!.newSession()
  void client!.prompt(session, 'wait').catch(() => {})
  await eventually('a turn', () => heardByAgents(bus).some(({ method }) => method === 'session/prompt') || undefined)
  client!.leave()
  const visitor = await logIn(bus)
  await visitor.post(`sessions/${session}/cancel`)
  await eventually('the end of the turn', async () =>
    (await visitor.get(`sessions/${session}`)).json.turn === 'idle' ? true : undefined,
  )
  await visitor.post(`sessions/${session}/prompt`, { text: 'permission' })
  await visitor.post(`sessions/${session}/detach`)
  const waiting = await eventually('a question', async () => (await visitor.get('sessions')).json.items[0].waiting[0])
  expect(waiting).toMatchObject({ method: 'session/request_permission', title: 'do it' })
  const other = await logIn(bus)
  const answers = await Promise.all(
    [visitor, other].map((each) => each.post(`sessions/${session}/answers/${waiting.question}`, { option: 'yes' })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  const lines = await eventually('the end', async () => {
    const { items } = (await visitor.get(`sessions/${session}/lines?limit=500`)).json
    return textOf(items).includes('permission: selected yes') ? items : undefined
  })
  const answered = lines.find(({ params }: { params: { kind?: string } }) => params.kind === 'answered')
  expect(answered.params).toMatchObject({ question: waiting.question, by: 'local (console)' })
  const late = await visitor.post(`sessions/${session}/answers/${waiting.question}`, { option: 'yes' })
  expect([late.status, late.json.error.reason]).toEqual([409, 'already_answered'])
})

test('15.8 what an agent nests beyond reason is shown as far as it can be, and answered, and costs nobody the bus', async () => {
  verifies('15.8-live', '15.8-lines', '15.8-answer')
  const bus = await startBus({
    config: { ...config(rawPool(KEEP)), store: { path: 'store.db' } },
    doors: ['unix', 'http'],
  })
  const session = await leftSession(bus)
  const visitor = await logIn(bus)
  const topic = `session:${session}`
  const following = await visitor.follow(topic)
  await visitor.post(`sessions/${session}/prompt`, { text: 'deep' })
  const line = await following.first(topic, ({ params }) => params?.update?.title === 'deep')
  expect(JSON.stringify(line)).toContain('[nested too deep]')
  const { question } = await eventually(
    'a question',
    async () => (await visitor.get(`sessions/${session}`)).json.waiting[0],
  )
  const read = await visitor.get(`sessions/${session}/lines?from=${line.seq}&limit=1`)
  expect(read.json.items).toEqual([line])
  expect((await visitor.post(`sessions/${session}/answers/${question}`, { option: 'yes' })).json).toEqual({})
  await following.first(topic, ({ params }) => params?.kind === 'turn_ended')
})

test('15.8 End ends it; what is not kept is a row that says which key would keep it', async () => {
  verifies('15.8-end')
  const bus = await startKept()
  const session = await leftSession(bus)
  const visitor = await logIn(bus)
  expect((await visitor.delete(`sessions/${session}`)).status).toBe(200)
  expect((await visitor.get(`sessions/${session}`)).json).toMatchObject({ state: 'stored' })
  expect((await visitor.post(`sessions/${session}/prompt`, { text: 'echo x' })).status).toBe(409)
  expect((await visitor.delete(`sessions/${session}?delete=true`)).status).toBe(200)
  expect((await visitor.get(`sessions/${session}`)).status).toBe(404)
  const bare = await startBus({ config: config(acpPool()), doors: ['unix', 'http'] })
  const [client] = await initialised(bare, 1)
  const passing = await client!.newSession()
  const guest = await logIn(bare)
  expect((await guest.get('sessions')).json).toMatchObject({
    items: [],
    not_kept: [{ session: passing, pool: 'agent', state: 'not_kept', key: 'sessions.keep_sec' }],
  })
})

test('15.5 an observer reads sessions and does nothing in them; writes need the token of the page', async () => {
  verifies('15.5-sessions')
  const bus = await startKept()
  const session = await leftSession(bus)
  const observer = await logIn(bus, '--role', 'observer')
  expect((await observer.get(`sessions/${session}/lines`)).status).toBe(200)
  for (const path of ['prompt', 'cancel', 'attach', 'detach', 'answers/1'])
    expect((await observer.post(`sessions/${session}/${path}`, { text: 'x' })).json.error.reason).toBe('not_allowed')
  expect((await observer.delete(`sessions/${session}`)).status).toBe(403)
  const { cookie } = (await logIn(bus)).headers
  const forged = new Visitor(bus, { cookie: cookie! })
  expect((await forged.post(`sessions/${session}/prompt`, { text: 'x' })).json.error.reason).toBe('bad_csrf')
  expect((await forged.delete(`sessions/${session}`)).json.error.reason).toBe('bad_csrf')
})

test('15.18 what is bad is refused, and said', async () => {
  verifies('15.18-sessions')
  const bus = await startKept()
  const session = await leftSession(bus)
  const visitor = await logIn(bus)
  const get = async (path: string) => (await visitor.get(path)).status
  expect(await get('sessions/none')).toBe(404)
  expect(await get(`sessions/${session}?pool=other`)).toBe(404)
  expect(await get('sessions?limit=0')).toBe(400)
  expect(await get('sessions?limit=501')).toBe(400)
  expect(await get('sessions?state=odd')).toBe(400)
  expect(await get('sessions?cursor=odd')).toBe(400)
  expect(await get(`sessions/${session}/lines?from=x`)).toBe(400)
  expect(await get(`sessions/${session}/lines?from=9999`)).toBe(400)
  const post = async (path: string, body: object) => (await visitor.post(`sessions/${session}/${path}`, body)).status
  expect(await post('prompt', {})).toBe(400)
  expect(await post('prompt', { text: ' ' })).toBe(400)
  expect(await post('prompt', { text: 'x', prompt: [] })).toBe(400)
  expect(await post('prompt', { prompt: [null] })).toBe(400)
  expect(await post('answers/1', {})).toBe(400)
  expect(await post('answers/1', { option: 'yes' })).toBe(409)
  expect(await post('answers/x', { option: 'yes' })).toBe(404)
  expect(await post('prompt', { text: 'x'.repeat(2 ** 20) })).toBe(413)
  expect(await get(`sessions/${session}/lines?from=0`)).toBe(400)
  const depth = 100_000
  const deep = `{"prompt":[{"type":"text","text":${'['.repeat(depth)}${']'.repeat(depth)}}]}`
  const answer = await fetch(bus.url(`/api/sessions/${session}/prompt`), {
    method: 'POST',
    headers: { ...visitor.headers, 'content-type': 'application/json' },
    body: deep,
  })
  const { error } = (await answer.json()) as { error: { reason: string } }
  expect([answer.status, error.reason]).toEqual([400, 'bad_parameter'])
})
