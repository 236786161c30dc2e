/** `stdio-bus trace` against a running bus and against its file, and a collector that gets spans live. */
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, busCommand, busEnv, launch, startBus } from '../support/bus.ts'
import { connectUnix } from '../support/line-client.ts'
import { eventually } from '../support/waiting.ts'
import { Workspace } from '../support/workspace.ts'
import { agent } from './aio-harness.ts'

const TRACE = 'AIO-TR-20250326-0042'

describe('a trace of three levels', () => {
  const workspace = new Workspace()
  let bus: Bus

  beforeAll(async () => {
    const pools = [agent('chief'), agent('clerk'), agent('reader')]
    bus = await launch({ config: { pools, aio: { store: { path: 'traces.db' } } } }, workspace)
    const client = await bus.connect()
    const inner = { to: 'reader::nothing', with: { password: 'hush' } }
    await client.ask({ id: 1, method: 'chief::ask', params: { to: 'clerk::ask', with: inner }, trace_id: TRACE })
    await client.ask({ id: 2, method: 'reader::pid', trace_id: TRACE })
  })

  afterAll(() => workspace.remove())

  const run = async (...args: string[]) => {
    const done = await bus.run(['trace', ...args])
    expect(done.stderr).toBe('')
    expect(done.code).toBe(0)
    return done.stdout
  }

  test('ls lists it, by control socket, by door and from the file', async () => {
    verifies('8.6-trace')
    const sources = [
      ['--control', bus.control],
      ['--unix', workspace.path('bus.sock')],
      ['--store', workspace.path('traces.db')],
    ]
    for (const source of sources) {
      const { traces } = JSON.parse(await run('ls', '--json', ...source))
      expect(traces).toMatchObject([{ trace_id: TRACE, n_calls: 4, n_errors: 1, agents: ['chief', 'clerk', 'reader'] }])
    }
    expect(await run('ls', '--agent', 'nobody', '--control', bus.control)).toBe('no traces\n')
    expect(await run('ls', '--status', 'error', '--since', '1h', '--control', bus.control)).toContain(TRACE)
  })

  test('show draws the tree, or one call, or the document', async () => {
    const tree = await run('show', TRACE, '--control', bus.control)
    expect(tree.match(/\b(chief|clerk|reader)::\w+ .* ms /g)).toHaveLength(4)
    expect(tree).toMatch(/chief::ask[\s\S]*└─.*clerk::ask[\s\S]*└─.*reader::nothing/)
    expect(await run('show', `${TRACE}#4`, '--control', bus.control)).toContain('reader::pid')
    const { calls } = JSON.parse(await run('show', TRACE, '--json', '--control', bus.control))
    expect(calls.map(({ parent_id }: { parent_id: unknown }) => parent_id)).toEqual([null, 1, 2, null])
  })

  test('graph has a node for each call and an edge for each parent', async () => {
    verifies('T10-svg')
    const svg = await run('graph', TRACE, '--control', bus.control)
    expect(svg.match(/class="[^"]*\bnode\b/g)).toHaveLength(4)
    expect(svg.match(/class="[^"]*\bedge\b/g)).toHaveLength(2)
    const mermaid = await run('graph', TRACE, '--format', 'mermaid', '--control', bus.control)
    expect(mermaid.match(/-->/g)).toHaveLength(2)
  })

  test('export writes both formats', async () => {
    const aio = JSON.parse(await run('export', TRACE, '--format', 'aio', '--control', bus.control))
    expect(aio.trace_id).toBe(TRACE)
    const otlp = JSON.parse(await run('export', TRACE, '--format', 'otlp-json', '--control', bus.control))
    expect(otlp.resourceSpans[0].scopeSpans[0].spans).toHaveLength(5)
  })

  test('an unknown trace: exit 1, naming it', async () => {
    verifies('T4-unknown')
    const { code, stderr } = await bus.run(['trace', 'show', 'nowhere', '--control', bus.control])
    expect([code, stderr]).toEqual([1, expect.stringContaining('"nowhere"')])
  })

  test('tail follows live', async () => {
    const [command, first] = busCommand()
    const args = [...first, 'trace', 'tail', '--json', '--control', bus.control]
    const tail = spawn(command, args, {
      env: busEnv(workspace),
      cwd: workspace.folder,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    workspace.owns(tail.pid)
    let said = ''
    tail.stdout.on('data', (chunk) => (said += chunk))
    const client = await bus.connect()
    let id = 100
    await eventually('a call that is followed', async () => {
      await client.ask({ id: ++id, method: 'reader::pid', trace_id: 'followed' })
      return said.includes('"started"') && said.endsWith('\n')
    })
    // It may have begun to follow in the middle of a call.
    const items = said
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const started = items.find(({ event }) => event === 'started')
    expect(started).toMatchObject({ trace_id: 'followed', agent: 'reader', method: 'pid' })
    expect(started).not.toHaveProperty('input')
    tail.kill()
  })

  test('status has the state of the store', async () => {
    expect(await bus.status()).toMatchObject({ traces: { state: 'ok', dropped: 0 } })
  })
})

test('a configured collector gets every call as a span', async () => {
  verifies('T8-spans')
  const bodies: string[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      bodies.push(`${request.headers['x-key']} ${body}`)
      response.end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`
  const aio = { store: { path: 'traces.db' }, otlp: { endpoint, headers: { 'x-key': `\${KEY}` } } }
  const bus = await startBus({ config: { pools: [agent('reader')], aio }, env: { KEY: 'sesame' } })
  const client = await bus.connect()
  await client.ask({ id: 1, method: 'reader::show', params: { secret: 'hush' }, trace_id: 'sent' })
  await bus.stop()
  server.close()
  const text = bodies.join('\n')
  expect(text.startsWith('sesame ')).toBe(true)
  expect(text).toContain('"sent#1"')
  expect(text).not.toContain('hush')
  expect(bus.log.text).not.toContain('sesame')
})

describe('a trace that is long', () => {
  const CALLS = 1_500

  test('comes in pages over a door and the control socket; commands put them together', async () => {
    verifies('T4-long')
    const bus = await startBus({ config: { pools: [agent('reader')], aio: { store: { path: 'traces.db' } } } })
    const client = await bus.connect()
    const value = 'x'.repeat(2_000)
    for (let id = 1; id <= CALLS; id++)
      client.send({ id, method: 'reader::input', params: { inputs: [{ type: 'text', value }] }, trace_id: TRACE })
    await client.take(CALLS, 30_000)

    const control = await connectUnix(bus.control)
    for (const [peer, method] of [
      [client, 'bus::traces.get'],
      [control, 'traces.get'],
    ] as const) {
      const ids: number[] = []
      let cursor: string | undefined
      do {
        const { result } = await peer.ask({ id: 'page', method, params: { trace_id: TRACE, cursor } })
        ids.push(...result.calls.map(({ id }: { id: number }) => id))
        cursor = result.next_cursor
      } while (cursor !== undefined)
      expect(ids).toHaveLength(CALLS)
      expect(new Set(ids).size).toBe(CALLS)
      expect(Math.max(...peer.lines.map(({ length }) => length))).toBeLessThan(1024 * 1024)
    }

    for (const source of [
      ['--control', bus.control],
      ['--store', bus.workspace.path('traces.db')],
    ]) {
      const shown = await bus.run(['trace', 'show', TRACE, '--json', ...source])
      expect(JSON.parse(shown.stdout).calls).toHaveLength(CALLS)
      expect(JSON.parse(shown.stdout)).not.toHaveProperty('next_cursor')
      const exported = await bus.run(['trace', 'export', TRACE, '--format', 'otlp-json', ...source])
      expect(JSON.parse(exported.stdout).resourceSpans[0].scopeSpans[0].spans).toHaveLength(CALLS + 1)
    }
  }, 60_000)
})
