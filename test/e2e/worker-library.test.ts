/** `stdio-bus/worker` as a process: what it answers, what it survives, and how soon it ends. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { LineClient } from '../support/line-client.ts'
import { residentBytes } from '../support/processes.ts'
import { sleep, within } from '../support/waiting.ts'

const PROGRAM = fileURLToPath(new URL('../fixtures/workers/sdk-worker.mjs', import.meta.url))

interface Started {
  readonly child: ChildProcess
  readonly host: LineClient
  readonly exit: Promise<{ code: number | null; signal: NodeJS.Signals | null; ms: number }>
  stderr: string
}

async function start(): Promise<Started> {
  const child = spawn(process.execPath, [PROGRAM], { stdio: 'pipe' })
  onTestFinished(() => void child.kill('SIGKILL'))
  let beganMs = 0
  const started: Started = {
    child,
    host: new LineClient(child.stdout, child.stdin),
    exit: once(child, 'exit').then(([code, signal]) => ({ code, signal, ms: performance.now() - beganMs })),
    stderr: '',
  }
  child.stderr.on('data', (chunk) => (started.stderr += chunk))
  await once(child.stderr, 'data')
  beganMs = performance.now()
  return started
}

describe('requests', () => {
  test.each<[string, object | undefined, object]>([
    ['add', { a: 2, b: 3 }, { result: 5 }],
    ['nothing', undefined, { result: null }],
    ['function', undefined, { result: null }],
    ['refuse', undefined, { error: { code: -32001, message: 'not today', data: { why: 'rain' } } }],
    ['odd', undefined, { error: { code: -32001, message: 'a circle' } }],
    ['fail', undefined, { error: { code: -32603, message: 'something broke' } }],
    ['toString', undefined, { error: { code: -32601, message: 'Method not found: toString' } }],
  ])('%s', async (method, params, answer) => {
    const { host } = await start()
    expect(await host.ask({ jsonrpc: '2.0', id: 'one', method, params })).toEqual({
      jsonrpc: '2.0',
      id: 'one',
      ...answer,
    })
  })

  test('an id comes back as it was spelled, and each request gets its own answer', async () => {
    const { host } = await start()
    host.sendRaw('{"id":12345678901234567890123,"method":"nothing"}\n{"id":"\\u0041","method":"nothing"}\n')
    expect((await host.nextLine()).toString()).toContain('"id":12345678901234567890123,')
    expect((await host.nextLine()).toString()).toContain('"id":"\\u0041",')
  })

  test('what cannot be written as JSON is an error, told to stderr with its place and to the caller without', async () => {
    const started = await start()
    const { error } = await started.host.ask({ id: 1, method: 'circle' })
    expect(error.code).toBe(-32603)
    expect(started.stderr).toContain('TypeError')
    expect((await started.host.ask({ id: 2, method: 'fail' })).error.message).not.toContain('sdk-worker')
  })

  test('a notification is owed nothing, not even an error', async () => {
    const { host } = await start()
    for (const method of ['fail', 'refuse', 'add', 'unknown']) host.send({ method, params: { a: 1, b: 2 } })
    expect(await host.ask({ id: 1, method: 'nothing' })).toMatchObject({ id: 1, result: null })
  })

  test('what a method says on the way goes to its session, wherever that was named', async () => {
    const { host } = await start()
    host.send({ id: 1, method: 'say', sessionId: 's', params: { a: 1 } })
    host.send({ id: 2, method: 'say', params: { sessionId: 't', a: 2 } })
    host.send({ id: 3, method: 'say', params: { a: 3 } })
    const said = (await host.take(6)).filter(({ method }) => method === 'said')
    expect(said).toEqual([
      { jsonrpc: '2.0', method: 'said', sessionId: 's', params: { a: 1 } },
      { jsonrpc: '2.0', method: 'said', params: { sessionId: 't', a: 2 } },
      { jsonrpc: '2.0', method: 'said', params: { a: 3 } },
    ])
  })

  test.each([
    ['$/cancel_request', { requestId: 7 }],
    ['notifications/cancelled', { requestId: 7 }],
    ['session/cancel', { sessionId: 's' }],
  ])('%s ends the one that is meant', async (method, params) => {
    const { host } = await start()
    host.send({ id: 7, method: 'wait', params: { sessionId: 's' } })
    host.send({ id: '7', method: 'wait', params: { sessionId: 'other' } })
    host.send({ method, params })
    expect(await host.next()).toEqual({
      jsonrpc: '2.0',
      id: 7,
      error: { code: -32800, message: 'Request cancelled' },
    })
    expect(await host.ask({ id: 1, method: 'nothing' })).toMatchObject({ id: 1 })
  })

  test('a worker asks its host, and its host may refuse', async () => {
    const { host } = await start()
    host.send({ id: 1, method: 'ask', params: { method: 'fs/read', params: { path: '/a' } } })
    const question = await host.next()
    expect(question).toMatchObject({ method: 'fs/read', params: { path: '/a' } })
    host.send({ id: question.id, result: 'content' })
    expect(await host.next()).toMatchObject({ id: 1, result: 'content' })
    host.send({ id: question.id, result: 'twice' })
    host.send({ id: 2, method: 'ask', params: { method: 'fs/read' } })
    host.send({ id: (await host.next()).id, error: { code: -32000, message: 'no', data: 1 } })
    expect(await host.next()).toMatchObject({ id: 2, error: { code: -32000, message: 'no', data: 1 } })
  })
})

describe('hostile input', () => {
  test.each([
    ['not JSON', '{"id":1,', -32700],
    ['no object', '[1]', -32600],
    ['an id that is none', '{"id":{},"method":"nothing"}', -32600],
    ['a key twice', '{"id":1,"id":2,"method":"nothing"}', -32600],
  ])('%s is refused, and the worker goes on', async (_what, line, code) => {
    const { host } = await start()
    host.sendRaw(`${line}\n\n  \r\n`)
    expect((await host.next()).error.code).toBe(code)
    expect(await host.ask({ id: 1, method: 'add', params: { a: 1, b: 1 } })).toMatchObject({ result: 2 })
  })

  test('a line that is too long ends it', async () => {
    const started = await start()
    started.host.sendRaw('x'.repeat(1024 * 1024 + 1))
    expect(await within(5_000, 'the worker to end', started.exit)).toMatchObject({ code: 1 })
    expect(started.stderr).toContain('1048576 bytes')
  })

  test('a full stdout holds the input: nothing piles up', async () => {
    const { child, host } = await start()
    child.stdout!.pause()
    for (let id = 1; id <= 1_000; id++) host.send({ id, method: 'big', params: { bytes: 1_000_000 } })
    await sleep(1_000)
    expect(residentBytes(child.pid!)).toBeLessThan(300_000_000)
    child.stdout!.resume()
    const answers = await host.take(1_000)
    expect(answers.map(({ id }) => id)).toEqual(answers.map((_answer, index) => index + 1))
  }, 60_000)
})

describe('the end', () => {
  test('stdin ends: what is under way is answered, then it goes', async () => {
    const { host, exit } = await start()
    host.send({ id: 1, method: 'soon' })
    host.endWriting()
    expect(await host.next()).toMatchObject({ id: 1, result: 'in time' })
    expect(await within(2_000, 'the worker to end', exit)).toMatchObject({ code: 0, signal: null })
  })

  test.each(['wait', 'stubborn', 'nothing'])('stdin ends while %s runs: gone within a second', async (method) => {
    const { host, exit } = await start()
    host.send({ id: 1, method })
    host.endWriting()
    const { code, ms } = await within(3_000, 'the worker to end', exit)
    expect(code).toBe(0)
    expect(ms).toBeLessThan(1_500)
  })

  test.each(['wait', 'stubborn'])('SIGTERM while %s runs: gone within a second', async (method) => {
    const { child, host, exit } = await start()
    host.send({ id: 1, method })
    host.send({ id: 2, method: 'nothing' })
    await host.next()
    child.kill('SIGTERM')
    const { code, ms } = await within(3_000, 'the worker to end', exit)
    expect(code).toBe(0)
    expect(ms).toBeLessThan(1_500)
  })

  test('the reader goes: the worker does too', async () => {
    const { child, host, exit } = await start()
    child.stdout!.destroy()
    host.send({ id: 1, method: 'add', params: { a: 1, b: 1 } })
    host.send({ id: 2, method: 'add', params: { a: 1, b: 1 } })
    expect(await within(3_000, 'the worker to end', exit)).toMatchObject({ signal: null })
  })
})
