import { createServer } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { done, fails, finish, type Reply, says, text } from '../../src/agents/demo-endpoint/reply.ts'
import { verifies } from '../conformance/verifies.ts'
import { type Harness, type HarnessOptions, startHarness, until } from './openai-agent-harness.ts'

let harness: Harness
const key = 'sk-do-not-show-this'

async function ask(reply: Reply | HarnessOptions['script'], options: Partial<HarnessOptions> = {}): Promise<string> {
  const script = typeof reply === 'function' ? reply : () => reply
  const env = { OPENAI_API_KEY: key, OPENAI_MAX_RETRIES: '0', ...options.env }
  harness = await startHarness({ ...options, script, env })
  const session = await harness.newSession()
  expect(await harness.prompt(session, 'a private question')).toBe('end_turn')
  const shown = harness.shown(session)
  expect(shown + harness.logs.join()).not.toContain(key)
  expect(harness.logs.join()).not.toContain('private')
  return shown
}

afterEach(async () => {
  const session = await harness.newSession()
  expect(session).toMatch(/^[0-9a-f-]{36}$/)
  await harness.stop()
})

describe('a refusal', () => {
  it.each<[number, (url: string) => string]>([
    [401, (url) => `Authentication error (HTTP 401) calling ${url}. Check your OPENAI_API_KEY.`],
    [403, (url) => `Authentication error (HTTP 403) calling ${url}. Check your OPENAI_API_KEY.`],
    [429, (url) => `Rate limit exceeded (HTTP 429) calling ${url}. Please retry later.`],
    [500, (url) => `Server error (HTTP 500) from ${url}.`],
    [503, (url) => `Server error (HTTP 503) from ${url}.`],
    [404, (url) => `HTTP error (404) from ${url}. no such model`],
    [302, (url) => `HTTP error (302) from ${url}. no such model`],
  ])('with %i is worded as the seed words it', async (status, message) => {
    verifies('O8-worded', 'O10-redirect')
    expect(await ask(fails(status, 'no such model', { location: '/elsewhere' }))).toBe(message(harness.url))
  })

  it('has the key cut out of the endpoint’s own message', async () => {
    verifies('O10-redacted')
    expect(await ask(fails(400, `the key ${key} is bad`))).toBe(
      `HTTP error (400) from ${harness.url}. the key [secret] is bad`,
    )
  })

  it('shows a short plain text, and no page of HTML', async () => {
    expect(await ask({ status: 418, body: 'short and stout' })).toBe(
      `HTTP error (418) from ${harness.url}. short and stout`,
    )
    await harness.stop()
    expect(await ask({ status: 418, body: '<html>long</html>' })).toBe(`HTTP error (418) from ${harness.url}.`)
  })
})

describe('a retry', () => {
  const now = { 'retry-after': '0' }

  it('is made for 429 and 5xx, as often as configured', async () => {
    verifies('O9-count')
    const replies = [fails(429, 'x', now), fails(500, 'x', now), says('third time')]
    expect(await ask((_, count) => replies[count]!, { env: { OPENAI_MAX_RETRIES: '2' } })).toBe('third time')
    await harness.stop()
    await ask(() => fails(500, 'x', now), { env: { OPENAI_MAX_RETRIES: '3' } })
    expect(harness.endpoint.chats()).toHaveLength(4)
  })

  it('waits for what Retry-After says', async () => {
    verifies('O9-after')
    const before = Date.now()
    const replies = [fails(429, 'x', { 'retry-after': '1' }), says('ok')]
    expect(await ask((_, count) => replies[count]!, { env: { OPENAI_MAX_RETRIES: '1' } })).toBe('ok')
    expect(Date.now() - before).toBeGreaterThanOrEqual(990)
  })

  it('is not made when it would take more than a minute, nor for other statuses', async () => {
    verifies('O9-after')
    await ask(() => fails(429, 'x', { 'retry-after': '61' }), { env: { OPENAI_MAX_RETRIES: '2' } })
    expect(harness.endpoint.chats()).toHaveLength(1)
    await harness.stop()
    await ask(() => fails(400, 'x', now), { env: { OPENAI_MAX_RETRIES: '2' } })
    expect(harness.endpoint.chats()).toHaveLength(1)
  })

  it('is not made once something was streamed', async () => {
    verifies('O9-streamed')
    await ask({ steps: [text('some'), { cut: true }] }, { env: { OPENAI_MAX_RETRIES: '2' } })
    expect(harness.endpoint.chats()).toHaveLength(1)
  })
})

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

describe('the network', () => {
  const network = () => `Network error connecting to ${harness.url}: `

  it('being down is said', async () => {
    verifies('O8-network')
    const port = await freePort()
    const shown = await ask(says('never'), { baseUrl: `http://127.0.0.1:${port}/v1` })
    expect(shown).toBe(`${network()}connect ECONNREFUSED 127.0.0.1:${port}`)
  })

  it('being silent is said: before the status line', async () => {
    verifies('O8-network')
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await new Promise((resolve) => silent.once('listening', resolve))
    const { port } = silent.address() as { port: number }
    const env = { OPENAI_TIMEOUT_SEC: '0.2' }
    expect(await ask(says('never'), { baseUrl: `http://127.0.0.1:${port}`, env })).toBe(`${network()}no data for 0.2 s`)
    silent.close()
  })

  it('being silent is said: between two bytes', async () => {
    const shown = await ask({ steps: [text('some'), { hang: true }] }, { env: { OPENAI_TIMEOUT_SEC: '0.2' } })
    expect(shown).toBe(`some\n\n${network()}no data for 0.2 s`)
    await until(() => harness.endpoint.chats()[0]!.ended === 'aborted')
  })

  it('being slow but alive is not an error', async () => {
    const beat = [{ raw: ': alive\n\n' }, { waitMs: 250 }]
    const steps = [...beat, ...beat, ...beat, text('slow'), finish(), done]
    expect(await ask({ steps }, { env: { OPENAI_TIMEOUT_SEC: '0.6' } })).toBe('slow')
  })

  it('being cut in the middle is said after the partial answer', async () => {
    verifies('O8-network')
    const shown = await ask({ steps: [text('some'), { waitMs: 20 }, { cut: true }] })
    expect(shown.startsWith(`some\n\n${network()}`)).toBe(true)
  })
})

describe('a stream', () => {
  it('that is none is an HTTP error with the type it gave', async () => {
    verifies('O8-no-stream')
    expect(await ask({ headers: { 'content-type': 'text/html' }, body: '<p>hi</p>' })).toBe(
      `HTTP error (200) from ${harness.url}. It answered with text/html instead of an event stream.`,
    )
    await harness.stop()
    expect(await ask({ body: { error: { message: 'quota used up' } } })).toBe(
      `HTTP error (200) from ${harness.url}. quota used up`,
    )
    await harness.stop()
    expect(await ask({ body: { hello: 1 } })).toContain('It answered with application/json')
  })

  it('with broken events goes on without them, and says so without their content', async () => {
    verifies('O7-broken')
    const broken = ['{"choices":[{"delta":{"content":"private', '5', 'null', '[]', '"private"']
    const steps = [text('a'), ...broken.map((data) => ({ raw: `data: ${data}\n\n` })), text('b'), finish(), done]
    expect(await ask({ steps })).toBe('ab')
    expect(harness.logs[0]).toBe('skipped an event of 40 characters that is no JSON object')
    expect(harness.logs.length).toBeLessThan(broken.length)
  })

  it('with an error in it ends with its message', async () => {
    verifies('O7-error')
    const steps = [text('some'), { event: { error: { message: `overloaded, ${key}` } } }, text('never'), done]
    expect(await ask({ steps })).toBe('some\n\noverloaded, [secret]')
  })

  it('with an event of a megabyte is taken, in updates of bounded length', async () => {
    const long = 'é😀'.repeat(350_000)
    expect((await ask({ steps: [text(long), finish(), done] })) === long).toBe(true)
    const longest = Math.max(...harness.updates.map(({ update }) => JSON.stringify(update).length))
    expect(longest).toBeLessThan(100_000)
  })

  it('with an event without an end is a network error, and memory stays bounded', async () => {
    verifies('O7-bounded')
    const piece = { raw: 'x'.repeat(256 * 1024) }
    const steps = [{ raw: 'data: ' }, ...Array.from({ length: 160 }, () => piece)]
    const shown = await ask({ steps })
    expect(shown).toBe(`Network error connecting to ${harness.url}: an event of more than 16777216 characters`)
    await until(() => harness.endpoint.chats()[0]!.ended === 'aborted')
  })
})
