/** The invariants of ARCHITECTURE.md that no clause of the specification states; those of a clause are proved where it is. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import { LIFECYCLE } from '../src/kernel/lifecycle.ts'
import { DEFAULT_LIMITS } from '../src/kernel/limits.ts'
import { call, initializeLine } from './interop/mcp-peers.ts'
import { Stage } from './interop/stage.ts'

const SRC = new URL('../src/', import.meta.url)

describe('a request is answered once, whatever ends it, and nothing of it is left', () => {
  const limits = { ...DEFAULT_LIMITS, maxRestarts: 1_000, requestTimeoutMs: 5_000 }

  test.each<[string, string | undefined, (stage: Stage, id: unknown) => void]>([
    ['its answer', undefined, (stage, id) => stage.say(0, { id, result: 'done' })],
    ['an error of the worker', undefined, (stage, id) => stage.say(0, { id, error: { code: 1, message: 'no' } })],
    ['the end of the worker', 'worker_exited', (stage) => stage.exit(0)],
    ['the time', 'request_timeout', (stage) => stage.advance(5_001)],
    [
      'the end of the bus',
      'shutting_down',
      (stage) => {
        stage.shutDown()
        stage.advance(DEFAULT_LIMITS.drainTimeoutMs)
      },
    ],
  ])('%s', (_what, reason, end) => {
    const stage = new Stage({
      protocol: 'plain',
      limits: { ...limits, ...(reason === 'shutting_down' && { requestTimeoutMs: 0 }) },
    })
    const client = stage.connect()
    stage.send(client, { id: 'one', method: 'x' })
    const { id } = stage.told(0, 'x')
    expect(stage.snapshot.outstanding).toBe(1)
    end(stage, id)
    stage.advance(2_000)
    expect(stage.atClient.get(client)!.map((message) => [message.id, message.error?.data?.reason])).toEqual([
      ['one', reason],
    ])
    expect(stage.snapshot.outstanding).toBe(0)
    if (stage.snapshot.workers.some(({ state }) => state === 'ready')) stage.say(0, { id, result: 'late' })
    expect(stage.atClient.get(client)).toHaveLength(1)
  })
})

test('initialize is the only message that is ever sent twice', () => {
  const stage = new Stage({ protocol: 'acp' })
  const client = stage.connect()
  const ask = (id: number, method: string, params: object = {}) =>
    stage.send(client, { jsonrpc: '2.0', id, method, params })
  ask(0, 'initialize', { protocolVersion: 1 })
  stage.say(0, { id: 0, result: { protocolVersion: 1 } })
  ask(1, 'session/new')
  stage.say(0, { id: 1, result: { sessionId: 's' } })
  ask(2, 'session/prompt', { sessionId: 's' })
  ask(3, 'authenticate')
  stage.exit(0)
  stage.advance(60_000)
  ask(4, 'session/list')
  stage.say(0, { id: stage.told(0, 'initialize').id, result: { protocolVersion: 1 } })
  const told = stage.atWorker.get(0)!.map(({ method }) => method)
  expect(told).toEqual(['initialize', 'session/new', 'session/prompt', 'authenticate', 'initialize', 'session/list'])
})

describe('no message is parsed on its way', () => {
  /** The number of times that wire, kernel or dialects have parsed JSON while `act` ran. */
  function parsedDuring(act: () => void): number {
    const parse = JSON.parse
    let count = 0
    const spy = vi.spyOn(JSON, 'parse').mockImplementation((text, reviver) => {
      const caller = new Error()
        .stack!.split('\n')
        .find((line) => line.includes('/src/') || line.includes('/test/interop/'))
      if (caller?.includes('/src/')) count++
      return parse(text, reviver)
    })
    try {
      act()
    } finally {
      spy.mockRestore()
    }
    return count
  }

  test('plain', () => {
    const stage = new Stage({ protocol: 'plain' })
    const client = stage.connect()
    const parsed = parsedDuring(() => {
      stage.send(client, { id: 1, method: 'x', sessionId: 's', params: { a: [1, { b: 'c' }] } })
      stage.say(0, { method: 'note', sessionId: 's', params: { n: 1 } })
      stage.say(0, { id: 1, result: { big: 'x'.repeat(1_000) } })
    })
    expect([parsed, stage.atClient.get(client)!.length]).toEqual([0, 2])
  })

  test('ACP', () => {
    const stage = new Stage({ protocol: 'acp' })
    const client = stage.connect()
    stage.send(client, { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: 1 } })
    stage.say(0, { id: 0, result: { protocolVersion: 1 } })
    stage.send(client, { jsonrpc: '2.0', id: 1, method: 'session/new', params: { cwd: '/', mcpServers: [] } })
    stage.say(0, { id: 1, result: { sessionId: 's' } })
    const parsed = parsedDuring(() => {
      stage.send(client, { jsonrpc: '2.0', id: 2, method: 'session/prompt', params: { sessionId: 's', prompt: [] } })
      stage.say(0, { method: 'session/update', params: { sessionId: 's', update: { sessionUpdate: 'plan' } } })
      stage.say(0, { id: 7, method: 'fs/read_text_file', params: { sessionId: 's', path: '/a' } })
      stage.send(client, { jsonrpc: '2.0', id: 7, result: { content: 'a' } })
      stage.say(0, { id: 2, result: { stopReason: 'end_turn' } })
    })
    expect([parsed, stage.atClient.get(client)!.length]).toEqual([0, 5])
  })

  test('MCP', () => {
    const stage = new Stage({ protocol: 'mcp' })
    const welcome = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 's', version: '1' } }
    stage.say(0, { id: stage.told(0, 'initialize').id, result: welcome })
    const clients = [stage.connect(), stage.connect()]
    for (const client of clients) stage.send(client, initializeLine(0))
    const parsed = parsedDuring(() => {
      for (const client of clients) {
        stage.send(client, call(5, undefined, { progressToken: 5 }))
        const { id, params } = stage.told(0, 'tools/call')
        const { progressToken } = params._meta
        stage.say(0, { method: 'notifications/progress', params: { progressToken, progress: 1 } })
        stage.say(0, { id, result: { content: [] } })
      }
    })
    expect([parsed, ...clients.map((client) => stage.atClient.get(client)!.length)]).toEqual([0, 3, 3])
  })

  test('a parse would be seen', () => {
    const stage = new Stage({ protocol: 'plain' })
    const client = stage.connect()
    const open = { id: 1, method: 'bus::open', params: { pool: 'p' } }
    expect(parsedDuring(() => stage.send(client, open))).toBeGreaterThan(0)
  })
})

test('a living worker ends in one way: its exit leads to dying, and only from there it comes back', () => {
  for (const state of ['starting', 'ready', 'retiring', 'stopping'] as const) {
    const steps = LIFECYCLE[state]
    expect(steps.exited.next, state).toBe('dying')
    expect(
      Object.values(steps).map(({ next }) => next),
      state,
    ).not.toContain('backing_off')
    expect(
      Object.values(steps).map(({ next }) => next),
      state,
    ).not.toContain('parked')
  }
})

test('no command line is given to a shell', () => {
  const toShell = /\bshell: (?:true|['"`])|import \{[^}]*\bexec(?:Sync)?\b[^}]*\} from 'node:child_process'/
  const offending = readdirSync(SRC, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .filter((name) => toShell.test(readFileSync(new URL(name, SRC), 'utf8')))
  expect(offending).toEqual([])
})
