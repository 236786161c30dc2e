import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type McpServer, methods } from '@agentclientprotocol/sdk'
import { afterEach, describe, expect, it } from 'vitest'
import { calls, fails, type Reply, says } from '../../src/agents/demo-endpoint/reply.ts'
import type { Script } from '../../src/agents/demo-endpoint/server.ts'
import { verifies } from '../conformance/verifies.ts'
import { allow, type Harness, type HarnessOptions, startHarness } from './openai-agent-harness.ts'

let harness: Harness
afterEach(() => harness.stop())

const contextChars = 100
const words = "This model's maximum context length is 100 tokens. However, your messages resulted in more."
const refusal: Reply = { status: 400, body: { error: { message: words, code: 'context_length_exceeded' } } }

type Said = { role: string; content: string | null }
const charsOf = (messages: readonly Said[]) => messages.reduce((sum, { content }) => sum + (content?.length ?? 0), 0)

/** An endpoint that takes so many characters and no more, and answers with the number of messages it was given. */
function narrow(refused: Reply = refusal): Script {
  return ({ body: { messages } }) => (charsOf(messages) > contextChars ? refused : says(`${messages.length}`))
}

async function start(script: Script, options: Partial<HarnessOptions> = {}): Promise<Harness> {
  harness = await startHarness({ ...options, script, env: { OPENAI_SYSTEM_PROMPT: 'Be brief.', ...options.env } })
  return harness
}

/** What the endpoint was given with the request that it took last. */
const lastTaken = (): Said[] => harness.endpoint.chats().at(-1)!.body.messages

describe('a conversation that has outgrown the context of the model', () => {
  it.each<[string, Reply]>([
    ['the code of OpenAI', refusal],
    ['words alone', fails(400, words)],
    ['the status of a proxy', { status: 413, body: '<html>Request Entity Too Large</html>' }],
    [
      'an error in the stream',
      { steps: [{ event: { error: { message: `litellm.ContextWindowExceededError: ${words}` } } }] },
    ],
  ])('goes on without its oldest turns: %s', async (_title, refused) => {
    verifies('O4-overflow')
    await start(narrow(refused))
    const session = await harness.newSession()
    for (let count = 0; count < 12; count++) {
      expect(await harness.prompt(session, `question ${count} of them`)).toBe('end_turn')
      expect(lastTaken()[0]).toEqual({ role: 'system', content: 'Be brief.' })
      expect(lastTaken().at(-1)).toEqual({ role: 'user', content: `question ${count} of them` })
    }
    expect(harness.shown(session)).toMatch(/^\d+$/)
    expect(harness.logs.join('\n')).toMatch(/too long for the model: its \d+ oldest messages are left out/)
  })

  it('comes back from its file whole, and goes on', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'openai-agent-overflow-'))
    await start(narrow(), { env: { OPENAI_SESSION_DIR: dir } })
    const session = await harness.newSession()
    for (let count = 0; count < 12; count++) await harness.prompt(session, `question ${count} of them`)
    await harness.stop()
    await start(narrow(), { env: { OPENAI_SESSION_DIR: dir } })
    await harness.ctx.request(methods.agent.session.load, { sessionId: session, cwd: '/', mcpServers: [] })
    expect(harness.shown(session, 'user_message_chunk')).toContain('question 0 of them')
    expect(await harness.prompt(session, 'and now?')).toBe('end_turn')
    expect(lastTaken().at(-1)).toEqual({ role: 'user', content: 'and now?' })
    rmSync(dir, { recursive: true })
  })

  it('that is one question says how to go on, and remembers the rest', async () => {
    await start(narrow())
    const session = await harness.newSession()
    await harness.prompt(session, 'a short one')
    expect(await harness.prompt(session, 'long '.repeat(100))).toBe('end_turn')
    expect(harness.shown(session)).toMatch(/HTTP error \(400\) from .*maximum context length.*ask a shorter one/)
    await harness.prompt(session, 'another')
    expect(lastTaken().map(({ content }) => content)).toEqual(['Be brief.', 'a short one', '2', 'another'])
  })

  it('for which no request is short enough is asked a bounded number of times', async () => {
    let isNarrow = false
    await start(() => (isNarrow ? refusal : says('yes')))
    const session = await harness.newSession()
    for (let count = 0; count < 40; count++) await harness.prompt(session, 'a question')
    isNarrow = true
    await harness.prompt(session, 'the last one')
    expect(harness.endpoint.chats().length).toBeLessThan(40 + 10)
    isNarrow = false
    await harness.prompt(session, 'again')
    expect(lastTaken()).toHaveLength(1 + 80 + 1)
  })

  it('because of what a tool gave tells the model so, and keeps the call with its result', async () => {
    const program = fileURLToPath(new URL('openai-agent-mcp-server.mjs', import.meta.url))
    const weather: McpServer = { name: 'weather', command: process.execPath, args: [program], env: [] }
    const args = JSON.stringify({ city: 'x'.repeat(200) })
    const script: Script = ({ body: { messages } }) => {
      if (charsOf(messages) > contextChars + 30) return refusal
      const last = messages.at(-1)
      return last.role === 'tool' ? says(last.content) : calls({ name: 'get_weather', arguments: args })
    }
    await start(script, { permission: allow! })
    const session = await harness.newSession('/', [weather])
    expect(await harness.prompt(session, 'weather?')).toBe('end_turn')
    expect(harness.shown(session)).toMatch(/^The result was too long/)
    expect(lastTaken().map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool'])
  })

  it('is not what every refusal means', async () => {
    await start(() => fails(400, 'temperature is too large: at most 2 is supported'))
    const session = await harness.newSession()
    await harness.prompt(session, 'one')
    expect(harness.endpoint.chats()).toHaveLength(1)
    expect(harness.shown(session)).not.toContain('shorter')
  })
})
