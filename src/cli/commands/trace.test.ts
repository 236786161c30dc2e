import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { Command } from 'commander'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import {
  callEnd,
  callStart,
  NOON_MS,
  type TemporaryFolder,
  TRACE,
  temporaryFolder,
} from '../../../test/fixtures/trace/calls.ts'
import { ControlError, serveControl } from '../../console/control-server.ts'
import { traceControlMethods } from '../../trace/control-methods.ts'
import { openTraceStore, type TraceStore } from '../../trace/store.ts'
import { addTrace } from './trace.ts'

let folder: TemporaryFolder
let store: TraceStore
let server: Server
let sockets: Socket[]
let control: string
let file: string

beforeEach(async () => {
  folder = temporaryFolder()
  control = join(folder.path, 'control.sock')
  file = join(folder.path, 'traces.db')
  store = await openTraceStore({ path: file, nowMs: () => NOON_MS })
  store.begin(callStart({ agent: 'queen' }))
  const caller = { kind: 'agent', principal: 'alice', client: 7, agent: 'queen' } as const
  store.begin(callStart({ callId: 2, parentId: 1, startedAtMs: NOON_MS + 2, caller }))
  store.end(callEnd({ callId: 2, status: 'error', error: { code: -32603, message: 'it broke' } }))
  store.end(callEnd())
  store.begin(callStart({ traceId: 'second', startedAtMs: NOON_MS + 5_000 }))
  store.end(callEnd({ traceId: 'second', endedAtMs: NOON_MS + 5_001 }))
  await store.query('list', {})
  const methods = traceControlMethods(store, (message, data) => new ControlError(message, data))
  sockets = []
  server = createServer((socket) => {
    sockets.push(socket)
    serveControl(socket, methods)
  })
  await new Promise<void>((resolve) => server.listen(control, resolve))
})
afterEach(async () => {
  server.close()
  await store.close()
  folder.remove()
})

async function run(...args: string[]): Promise<string> {
  const written: string[] = []
  const program = new Command('stdio-bus').exitOverride().configureOutput({ writeErr: () => {} })
  addTrace(program, {
    columns: 100,
    color: false,
    nowMs: () => NOON_MS + 6_000,
    write: (text) => void written.push(text),
  })
  for (const command of program.commands.flatMap((command) => [command, ...command.commands])) command.exitOverride()
  await program.parseAsync(['trace', ...args], { from: 'user' })
  return written.join('')
}

describe.each(['--store', '--control'])('with %s', (way) => {
  const from = () => [way, way === '--store' ? file : control]

  it('ls lists the newest first', async () => {
    const lines = (await run('ls', ...from())).split('\n')
    expect(lines[0]).toMatch(/^TRACE +STATUS/)
    expect(lines[1]).toMatch(/^second +completed/)
    expect(lines[2]).toBe('  hello')
    expect(lines[3]).toMatch(/^AIO-TR-20260326-0001 +error .* 2 +1 +queen reader$/)
  })

  it.each([
    [['--agent', 'queen'], [TRACE]],
    [['--caller', 'alice'], [TRACE]],
    [['--caller', 'bob'], []],
    [['--status', 'completed'], ['second']],
    [['--since', '2s'], ['second']],
    [
      ['--since', '2026-03-26T12:00:00Z'],
      ['second', TRACE],
    ],
    [['--limit', '1'], ['second']],
  ])('ls %j finds %j', async (options, ids) => {
    const answer = JSON.parse(await run('ls', '--json', ...options, ...from()))
    expect(answer.traces.map((trace: { trace_id: string }) => trace.trace_id)).toEqual(ids)
  })

  it('a trace is named by its id, by a beginning of it, or as the last', async () => {
    verifies('T4-names')
    const idOf = async (name: string): Promise<string> =>
      JSON.parse(await run('show', name, '--json', ...from())).trace_id
    expect(await Promise.all([TRACE, 'AIO-TR', 'sec', 'last'].map(idOf))).toEqual([TRACE, TRACE, 'second', 'second'])
    expect(JSON.parse(await run('show', 'AIO#2', '--json', ...from())).id).toBe(2)
    expect(await run('show', 'AIO#2', ...from())).toContain(`${TRACE}#2`)
    expect(JSON.parse(await run('export', 'sec', ...from())).trace_id).toBe('second')
    expect(await run('export', '--html', 'last', ...from())).toContain('<title>second</title>')
    store.begin(callStart({ traceId: 'second-one', startedAtMs: NOON_MS + 5_000 }))
    await store.query('list', {})
    expect(await idOf('second')).toBe('second')
    await expect(idOf('sec')).rejects.toThrow('"sec" begins several traces: "second-one", "second"; type more of one')
    await expect(idOf('nobody')).rejects.toThrow('there is no trace "nobody"')
  })

  it('ls says when there is nothing', async () => {
    expect(await run('ls', '--agent', 'nobody', ...from())).toBe('no traces\n')
  })

  it('show draws the tree, or gives the document', async () => {
    expect(await run('show', TRACE, ...from())).toMatch(/● queen::input[\s\S]*└─✗ reader::input[\s\S]*-32603: it broke/)
    expect(JSON.parse(await run('show', TRACE, '--json', ...from())).calls).toHaveLength(2)
  })

  it('show with a call shows that call', async () => {
    expect(await run('show', `${TRACE}#2`, ...from())).toMatch(
      /error +-32603: it broke[\s\S]*parent +AIO-TR-20260326-0001#1/,
    )
    expect(JSON.parse(await run('show', `${TRACE}#2`, '--json', ...from())).id).toBe(2)
    expect(await run('show', `${TRACE}#2`, ...from())).toMatch(/caller +alice, agent queen, client 7\n/)
    expect(await run('show', TRACE, ...from())).toMatch(/^AIO-TR-20260326-0001 .* by alice /)
  })

  it('graph writes SVG, or Mermaid, to a file of the owner', async () => {
    expect(await run('graph', TRACE, ...from())).toMatch(/^<svg [\s\S]*data-call="AIO-TR-20260326-0001#2"/)
    const output = join(folder.path, 'graph.mmd')
    expect(await run('graph', TRACE, '--format', 'mermaid', '-o', output, ...from())).toBe('')
    expect(readFileSync(output, 'utf8')).toContain('c1 --> c2')
    expect(statSync(output).mode & 0o777).toBe(0o600)
  })

  it.each([
    ['a folder that is not there', 'none/x.html', 'its folder is not there'],
    ['a folder', '.', 'it is a folder'],
  ])('to %s: a mistake in one sentence', async (_, name, why) => {
    const output = join(folder.path, name)
    const told = {
      name: 'UserMistake',
      message: expect.stringContaining(`--output ${output} cannot be written: ${why}`),
    }
    await expect(run('export', TRACE, '--html', '-o', output, ...from())).rejects.toMatchObject(told)
    await expect(run('graph', TRACE, '-o', output, ...from())).rejects.toMatchObject(told)
  })

  it('export writes both formats', async () => {
    expect(JSON.parse(await run('export', TRACE, ...from())).trace_id).toBe(TRACE)
    const otlp = JSON.parse(await run('export', TRACE, '--format', 'otlp-json', ...from()))
    expect(otlp.resourceSpans[0].scopeSpans[0].spans).toHaveLength(3)
  })

  it.each(['show', 'graph', 'export'])('%s of an unknown trace fails and names it', async (command) => {
    await expect(run(command, 'nobody', ...from())).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringContaining('"nobody"'),
    })
  })

  it('tail follows starts and ends', async () => {
    const seen: Record<string, unknown>[] = []
    const program = new Command('stdio-bus')
    const write = (text: string) => void seen.push(JSON.parse(text))
    const leave = new AbortController()
    addTrace(program, { columns: 100, color: false, signal: leave.signal, nowMs: Date.now, write })
    const following = program.parseAsync(['trace', 'tail', '--json', ...from()], { from: 'user' })
    await new Promise((resolve) => setTimeout(resolve, 100))
    store.begin(callStart({ callId: 7 }))
    await store.query('list', {})
    await new Promise((resolve) => setTimeout(resolve, 300))
    store.end(callEnd({ callId: 7, status: 'error', error: { message: 'no', data: { secret: 1 } } }))
    await expect.poll(() => seen.map(({ event, id }) => `${event} ${id}`)).toEqual(['started 7', 'ended 7'])
    expect(seen[1]).toMatchObject({ trace_id: TRACE, status: 'error', error: { message: 'no' } })
    expect(JSON.stringify(seen)).not.toContain('secret')
    leave.abort()
    for (const socket of sockets) socket.destroy()
    await following.catch((error) => expect(error.message).toMatch(/the bus went away/))
  })
})

describe('mistakes', () => {
  it.each([[['ls', '--since', 'yesterday']], [['ls', '--control', 'a', '--store', 'b']]])(
    '%j is the mistake of the user',
    async (args) => {
      await expect(run(...args, ...(args.includes('--store') ? [] : ['--store', file]))).rejects.toMatchObject({
        exitCode: 2,
      })
    },
  )

  it.each([['ls', '--limit', '0'], ['ls', '--status', 'odd'], ['export', TRACE, '--format', 'xml'], ['show']])(
    '%s %s %s is refused',
    async (...args) => {
      await expect(run(...args.filter((arg) => arg !== undefined))).rejects.toMatchObject({ name: 'CommanderError' })
    },
  )

  it('a store that is not there, or is none, is named', async () => {
    await expect(run('ls', '--store', join(folder.path, 'none.db'))).rejects.toThrow(/no trace store at .*none.db/)
    const other = join(folder.path, 'notes.txt')
    writeFileSync(other, 'no store at all')
    await expect(run('ls', '--store', other)).rejects.toThrow(/cannot be read as a trace store/)
  })
})
