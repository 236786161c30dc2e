import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { methods } from '@agentclientprotocol/sdk'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { says } from '../../src/agents/demo-endpoint/reply.ts'
import { verifies } from '../conformance/verifies.ts'
import { type Harness, startHarness } from './openai-agent-harness.ts'

const { session: names } = methods.agent
const running: Harness[] = []
let dir: string

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'openai-agent-store-'))
})
afterEach(async () => {
  await Promise.all(running.splice(0).map((harness) => harness.stop()))
  rmSync(dir, { recursive: true })
})

async function start(): Promise<Harness> {
  const script = () => says('an answer')
  const harness = await startHarness({
    script,
    env: { OPENAI_SESSION_DIR: dir },
    models: [{ id: 'gpt-4o' }, { id: 'other' }],
  })
  running.push(harness)
  return harness
}

describe('a stored session', () => {
  it('is loaded by another process, its history shown before the answer', async () => {
    verifies('O14-load')
    const first = await start()
    const sessionId = await first.newSession('/work')
    await first.prompt(sessionId, 'a question')
    await first.ctx.request(names.setConfigOption, { sessionId, configId: 'model', value: 'other' })
    const second = await start()
    const loaded = await second.ctx.request(names.load, { sessionId, cwd: '/work', mcpServers: [] })
    expect(loaded.configOptions).toMatchObject([{ currentValue: 'other' }])
    expect(second.shown(sessionId, 'user_message_chunk')).toBe('a question')
    expect(second.shown(sessionId)).toBe('an answer')
    await second.prompt(sessionId, 'another')
    expect(second.endpoint.chats()[0]!.body).toMatchObject({ model: 'other', messages: { length: 3 } })
  })

  it('is resumed without showing anything', async () => {
    verifies('O14-load')
    const first = await start()
    const sessionId = await first.newSession('/work')
    await first.prompt(sessionId, 'a question')
    const second = await start()
    await second.ctx.request(names.resume, { sessionId, cwd: '/work' })
    expect(second.updates).toEqual([])
    await second.prompt(sessionId, 'another')
    expect(second.endpoint.chats()[0]!.body.messages).toHaveLength(3)
  })

  it('is unknown after close until it is loaded again', async () => {
    verifies('O14-close')
    const harness = await start()
    const sessionId = await harness.newSession('/work')
    await harness.ctx.request(names.close, { sessionId })
    await expect(harness.prompt(sessionId, 'hi')).rejects.toMatchObject({ code: -32002, data: { sessionId } })
    await harness.ctx.request(names.load, { sessionId, cwd: '/work', mcpServers: [] })
    expect(await harness.prompt(sessionId, 'hi')).toBe('end_turn')
  })

  it('is listed by folder, and gone after delete', async () => {
    verifies('O14-list')
    const harness = await start()
    const sessionId = await harness.newSession('/work')
    await harness.newSession('/elsewhere')
    await harness.prompt(sessionId, 'a question')
    const listed = await harness.ctx.request(names.list, { cwd: '/work' })
    expect(listed.sessions).toMatchObject([{ sessionId, cwd: '/work', title: 'a question' }])
    await harness.ctx.request(names.delete, { sessionId })
    expect((await harness.ctx.request(names.list, { cwd: '/work' })).sessions).toEqual([])
    for (const method of [names.load, names.resume]) {
      const params = { sessionId, cwd: '/work', mcpServers: [] }
      await expect(harness.ctx.request(method, params)).rejects.toMatchObject({ code: -32002, data: { sessionId } })
    }
    await expect(harness.prompt(sessionId, 'hi')).rejects.toMatchObject({ code: -32002 })
  })

  it.each(['../../etc/passwd', 'x', ''])('is never looked for under the id %j', async (sessionId) => {
    const harness = await start()
    const params = { sessionId, cwd: '/', mcpServers: [] }
    await expect(harness.ctx.request(names.load, params)).rejects.toMatchObject({ code: -32002 })
  })

  it('goes on when it cannot be kept', async () => {
    const harness = await start()
    const sessionId = await harness.newSession('/work')
    rmSync(join(dir, `${sessionId}.jsonl`))
    expect(await harness.prompt(sessionId, 'hi')).toBe('end_turn')
    expect(harness.logs.join()).toContain('cannot keep the session')
    expect(harness.logs.join()).not.toContain('hi"')
  })
})
