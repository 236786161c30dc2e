import { methods } from '@agentclientprotocol/sdk'
import { afterEach, describe, expect, it } from 'vitest'
import {
  delta,
  done,
  fails,
  finish,
  type Reply,
  says,
  text,
  thought,
  usage,
} from '../../src/agents/demo-endpoint/reply.ts'
import { verifies } from '../conformance/verifies.ts'
import { type Harness, type HarnessOptions, startHarness, until } from './openai-agent-harness.ts'

let harness: Harness
const start = async (options: Partial<HarnessOptions> = {}) =>
  (harness = await startHarness({ script: () => says('Hello', ', ', 'world'), ...options }))

afterEach(() => harness.stop())

const promptOf = (sessionId: string, words = 'hi') => ({ sessionId, prompt: [{ type: 'text' as const, text: words }] })
const lastMessages = () => harness.endpoint.chats().at(-1)!.body.messages

describe('a turn', () => {
  it('streams the answer and ends', async () => {
    await start()
    const session = await harness.newSession()
    expect(await harness.prompt(session, 'hi')).toBe('end_turn')
    expect(harness.shown(session)).toBe('Hello, world')
    expect(harness.logs).toEqual([])
  })

  it('obeys the wishes of a prompt', async () => {
    verifies('13.16-wishes')
    await start()
    const session = await harness.newSession()
    const _meta = { 'stdio-bus/sampling': { maxTokens: 5, stopSequences: ['X'] } }
    await harness.ctx.request(methods.agent.session.prompt, { ...promptOf(session), _meta })
    expect(harness.endpoint.chats().at(-1)!.body).toMatchObject({ max_tokens: 5, stop: ['X'] })
  })

  it('sends system prompt, history and settings', async () => {
    await start({ env: { OPENAI_SYSTEM_PROMPT: 'Be brief.', OPENAI_TEMPERATURE: '0.1', OPENAI_API_KEY: 'sk-1' } })
    const session = await harness.newSession()
    await harness.prompt(session, 'one')
    await harness.prompt(session, 'two')
    const seen = harness.endpoint.chats().at(-1)!
    expect(seen.headers.authorization).toBe('Bearer sk-1')
    expect(seen.body).toMatchObject({ model: 'gpt-4o', stream: true, temperature: 0.1 })
    expect(seen.body.messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'Hello, world' },
      { role: 'user', content: 'two' },
    ])
  })

  it('shows thoughts apart and reports usage with the size of the context', async () => {
    verifies('O3-thoughts')
    const steps = [thought('Let me '), thought('see', 'reasoning'), text('Yes'), finish(), usage(17), done]
    await start({ script: () => ({ steps }), models: [{ id: 'gpt-4o', context_length: 128_000 }] })
    const session = await harness.newSession()
    await harness.prompt(session, 'hi')
    expect(harness.shown(session, 'agent_thought_chunk')).toBe('Let me see')
    expect(harness.shown(session)).toBe('Yes')
    expect(harness.updates.at(-1)!.update).toEqual({ sessionUpdate: 'usage_update', used: 17, size: 128_000 })
  })

  it.each<[string, string, boolean]>([
    ['length', 'max_tokens', true],
    ['content_filter', 'refusal', false],
    ['stop', 'end_turn', true],
  ])('that ends for %s is %s', async (reason, stopReason, kept) => {
    verifies('O3-reasons', 'O4-kept')
    await start({ script: (_, count) => (count ? says('ok') : { steps: [text('partial'), finish(reason), done] }) })
    const session = await harness.newSession()
    expect(await harness.prompt(session, 'one')).toBe(stopReason)
    await harness.prompt(session, 'two')
    expect(JSON.stringify(lastMessages()).includes('partial')).toBe(kept)
    expect(JSON.stringify(lastMessages())).toContain('one')
  })

  it('takes a stream without its mark of the end, a whole completion, and a cut last line', async () => {
    verifies('O7-endings')
    const whole = { object: 'chat.completion', choices: [{ message: { content: 'whole' }, finish_reason: 'stop' }] }
    const replies: Reply[] = [
      { steps: [text('unmarked')] },
      { body: whole },
      { steps: [{ raw: 'data:{"choices":[{"delta":{"content":"cut"}}]}' }] },
    ]
    await start({ script: (_, count) => replies[count]! })
    for (const expected of ['unmarked', 'whole', 'cut']) {
      const session = await harness.newSession()
      expect(await harness.prompt(session, 'hi')).toBe('end_turn')
      expect(harness.shown(session)).toBe(expected)
    }
  })

  it('ends at the mark of the end although the connection stays open', async () => {
    await start({ script: () => ({ steps: [text('a'), finish(), done, { hang: true }] }) })
    const session = await harness.newSession()
    expect(await harness.prompt(session, 'hi')).toBe('end_turn')
    await until(() => harness.endpoint.chats()[0]!.ended === 'aborted')
  })

  it('sends images as parts when vision is on', async () => {
    verifies('O6-vision')
    await start({ env: { OPENAI_VISION: '1' } })
    const sessionId = await harness.newSession()
    const prompt = [
      { type: 'text' as const, text: 'What is this?' },
      { type: 'image' as const, mimeType: 'image/png', data: 'AAAA' },
    ]
    await harness.ctx.request(methods.agent.session.prompt, { sessionId, prompt })
    expect(lastMessages()[0].content[1]).toEqual({
      type: 'image_url',
      image_url: { url: 'data:image/png;base64,AAAA' },
    })
  })

  it('sends all updates before its answer, in order', async () => {
    verifies('O3-order')
    const words = Array.from({ length: 500 }, (_, index) => `${index} `)
    await start({ script: () => says(...words) })
    const session = await harness.newSession()
    await harness.prompt(session, 'hi')
    expect(harness.shown(session)).toBe(words.join(''))
  })
})

describe('a cancel', () => {
  const slow: Reply = { steps: [text('partial'), { hang: true }] }

  it('ends the turn and the request upstream, and the session goes on', async () => {
    verifies('O5-upstream')
    await start({ script: (_, count) => (count ? says('fine') : slow) })
    const session = await harness.newSession()
    const turn = harness.prompt(session, 'one')
    await until(() => harness.shown(session) === 'partial')
    await harness.ctx.notify(methods.agent.session.cancel, { sessionId: session })
    expect(await turn).toBe('cancelled')
    await until(() => harness.endpoint.chats()[0]!.ended === 'aborted')
    expect(await harness.prompt(session, 'two')).toBe('end_turn')
    expect(JSON.stringify(lastMessages())).not.toContain('partial')
    expect(JSON.stringify(lastMessages())).toContain('one')
  })

  it('of the request itself is answered with cancelled, not with an error', async () => {
    verifies('O5-forms')
    await start({ script: () => slow })
    const session = await harness.newSession()
    const cancel = new AbortController()
    const turn = harness.ctx.request(methods.agent.session.prompt, promptOf(session), {
      cancellationSignal: cancel.signal,
    })
    await until(() => harness.shown(session) === 'partial')
    cancel.abort()
    expect(await turn).toEqual({ stopReason: 'cancelled' })
  })

  it('in the form of the seed is understood', async () => {
    verifies('O5-forms')
    await start({ script: () => slow })
    const session = await harness.newSession()
    const turn = harness.prompt(session, 'one')
    await until(() => harness.shown(session) === 'partial')
    await harness.ctx.notify('cancel', { sessionId: session })
    expect(await turn).toBe('cancelled')
  })

  it('right behind its prompt counts', async () => {
    await start({ script: () => slow })
    const session = await harness.newSession()
    const turn = harness.prompt(session, 'one')
    void harness.ctx.notify(methods.agent.session.cancel, { sessionId: session })
    expect(await turn).toBe('cancelled')
  })

  it('while nothing runs has no effect on the next turn', async () => {
    verifies('O5-nothing')
    await start()
    const session = await harness.newSession()
    await harness.ctx.notify(methods.agent.session.cancel, { sessionId: session })
    expect(await harness.prompt(session, 'hi')).toBe('end_turn')
  })

  it('ends the waiting before a retry at once', async () => {
    verifies('O5-retry')
    await start({ script: () => fails(503, 'later', { 'retry-after': '30' }) })
    const session = await harness.newSession()
    const turn = harness.prompt(session, 'hi')
    await until(() => harness.endpoint.chats().length === 1)
    await new Promise((resolve) => setTimeout(resolve, 30))
    const before = Date.now()
    await harness.ctx.notify(methods.agent.session.cancel, { sessionId: session })
    expect(await turn).toBe('cancelled')
    expect(Date.now() - before).toBeLessThan(1000)
    expect(harness.shown(session)).toBe('')
  })

  it('before the endpoint has answered ends the turn', async () => {
    await start({ script: () => ({ ...says('late'), delayMs: 10_000 }) })
    const session = await harness.newSession()
    const turn = harness.prompt(session, 'hi')
    await until(() => harness.endpoint.chats().length === 1)
    await harness.ctx.notify(methods.agent.session.cancel, { sessionId: session })
    expect(await turn).toBe('cancelled')
  })
})

describe('sessions', () => {
  it('run side by side', async () => {
    verifies('O2-side-by-side')
    await start({ script: (request) => says(`to ${request.body.messages.at(-1).content}`) })
    const ids = await Promise.all(Array.from({ length: 20 }, () => harness.newSession()))
    await Promise.all(ids.map((id, index) => harness.prompt(id, `q${index}`)))
    expect(ids.map((id) => harness.shown(id))).toEqual(ids.map((_, index) => `to q${index}`))
  })

  it('refuse a second prompt while one runs, and the first goes on', async () => {
    verifies('O2-busy')
    await start({ script: () => ({ steps: [text('a'), { waitMs: 100 }, text('b'), finish(), done] }) })
    const session = await harness.newSession()
    const first = harness.prompt(session, 'one')
    await expect(harness.prompt(session, 'two')).rejects.toMatchObject({ code: -32600, data: { reason: 'busy' } })
    expect(await first).toBe('end_turn')
    expect(harness.endpoint.chats()).toHaveLength(1)
    await harness.prompt(session, 'three')
    expect(JSON.stringify(lastMessages())).not.toContain('two')
  })

  it('that nobody knows are -32002 with the id', async () => {
    verifies('O2-unknown')
    await start()
    const error = { code: -32002, data: { sessionId: 'nobody' } }
    await expect(harness.prompt('nobody', 'hi')).rejects.toMatchObject(error)
    const configOption = { sessionId: 'nobody', configId: 'model', value: 'x' }
    await expect(harness.ctx.request(methods.agent.session.setConfigOption, configOption)).rejects.toMatchObject(error)
  })

  it('cannot be loaded without a store', async () => {
    verifies('O2-no-load')
    await start()
    const params = { sessionId: 'x', cwd: '/', mcpServers: [] }
    await expect(harness.ctx.request(methods.agent.session.load, params)).rejects.toMatchObject({ code: -32601 })
    await expect(harness.ctx.request(methods.agent.session.list, {})).rejects.toMatchObject({ code: -32601 })
  })

  it('end with close, and their turn with them', async () => {
    await start({ script: () => ({ steps: [text('a'), { hang: true }] }) })
    const sessionId = await harness.newSession()
    const turn = harness.prompt(sessionId, 'one')
    await until(() => harness.shown(sessionId) === 'a')
    await harness.ctx.request(methods.agent.session.close, { sessionId })
    expect(await turn).toBe('cancelled')
    await expect(harness.prompt(sessionId, 'two')).rejects.toMatchObject({ code: -32002 })
  })
})

describe('the choice of a model', () => {
  const models = [{ id: 'small' }, { id: 'large' }]
  const choose = (sessionId: string, value: string, configId = 'model') =>
    harness.ctx.request(methods.agent.session.setConfigOption, { sessionId, configId, value })

  it('is offered from the list of the endpoint, with the same credentials', async () => {
    verifies('O12-offered')
    await start({ models, env: { OPENAI_MODEL: 'small', OPENAI_API_KEY: 'sk-1' } })
    const created = await harness.ctx.request(methods.agent.session.new, { cwd: '/', mcpServers: [] })
    expect(created.configOptions).toMatchObject([{ id: 'model', category: 'model', currentValue: 'small' }])
    expect(harness.endpoint.requests[0]).toMatchObject({
      path: '/v1/models',
      headers: { authorization: 'Bearer sk-1' },
    })
  })

  it('changes the model of its session only', async () => {
    verifies('O12-own')
    await start({ models, env: { OPENAI_MODEL: 'unlisted' } })
    const [one, other] = [await harness.newSession(), await harness.newSession()]
    expect(await choose(one, 'large')).toMatchObject({ configOptions: [{ currentValue: 'large' }] })
    await harness.prompt(one, 'hi')
    await harness.prompt(other, 'hi')
    expect(harness.endpoint.chats().map((seen) => seen.body.model)).toEqual(['large', 'unlisted'])
  })

  it('refuses what is not offered', async () => {
    await start({ models })
    const session = await harness.newSession()
    await expect(choose(session, 'huge')).rejects.toMatchObject({ code: -32602 })
    await expect(choose(session, 'large', 'colour')).rejects.toMatchObject({ code: -32602 })
  })

  it('is not offered by an endpoint without a list, nor waited for longer than two seconds', async () => {
    verifies('O12-wait')
    await start({ models: () => ({ delayMs: 10_000, body: {} }) })
    const before = Date.now()
    const created = await harness.ctx.request(methods.agent.session.new, { cwd: '/', mcpServers: [] })
    expect(created).not.toHaveProperty('configOptions')
    expect(Date.now() - before).toBeLessThan(2600)
  })
})

describe('authenticate and initialize', () => {
  it('may come at any time', async () => {
    verifies('O1-again')
    await start()
    expect(await harness.ctx.request(methods.agent.authenticate, { methodId: 'any' })).toEqual({})
    expect(await harness.ctx.request(methods.agent.initialize, { protocolVersion: 7 })).toMatchObject({
      protocolVersion: 1,
    })
    const seed = await harness.ctx.request('initialize', { protocolVersion: '2025-03-26' })
    expect(seed).toMatchObject({ protocolVersion: '2025-03-26', agentInfo: { name: 'openai-agent' } })
  })

  it('refuse an unknown method', async () => {
    await start()
    await expect(harness.ctx.request('_unknown/method', {})).rejects.toMatchObject({ code: -32601 })
  })
})

it('keeps an empty answer out of the history', async () => {
  await start({ script: () => ({ steps: [delta({ role: 'assistant', content: '' }), finish(), done] }) })
  const session = await harness.newSession()
  await harness.prompt(session, 'one')
  await harness.prompt(session, 'two')
  expect(lastMessages()).toEqual([{ role: 'user', content: 'one\n\ntwo' }])
})
