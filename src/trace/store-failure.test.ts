import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import {
  callEnd,
  callStart,
  compileTrace,
  NOON_MS,
  type TemporaryFolder,
  TRACE,
  temporaryFolder,
} from '../../test/fixtures/trace/calls.ts'
import { openDatabase } from '../host/sqlite.ts'
import type { TraceDocument } from './document.ts'
import { describeFailure } from './engine.ts'
import { type EngineHost, inlineHost, threadHost } from './engine-host.ts'
import { payloadKeeper } from './payload.ts'
import { prepareDatabase } from './schema.ts'
import { openTraceStore, type TraceStore } from './store.ts'
import type { StateChange } from './store-link.ts'
import type { StoreOptions } from './store-settings.ts'
import { TraceWriter } from './writer.ts'

let compiled: TemporaryFolder
let compiledUrl: URL
let folder: TemporaryFolder
let path: string
let stores: TraceStore[]
let changes: StateChange[]

beforeAll(() => {
  compiled = temporaryFolder()
  compiledUrl = compileTrace(compiled.path)
})
afterAll(() => compiled.remove())
beforeEach(() => {
  folder = temporaryFolder()
  path = join(folder.path, 'traces.db')
  stores = []
  changes = []
})
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()))
  folder.remove()
})

async function open(options: StoreOptions = {}): Promise<TraceStore> {
  const store = await openTraceStore({
    path,
    nowMs: () => NOON_MS,
    onState: (change) => changes.push(change),
    ...options,
  })
  stores.push(store)
  return store
}

async function getTrace(store: TraceStore, traceId = TRACE): Promise<TraceDocument> {
  const answer = await store.query('get', { trace_id: traceId })
  if ('fault' in answer) throw new Error(answer.fault.message)
  return JSON.parse(answer.text)
}

function tell(store: TraceStore, callId: number, input: unknown = { n: callId }): void {
  store.begin(callStart({ callId, input }))
  store.end(callEnd({ callId }))
}

/** A host whose writes (or whatever is gated) wait for `gate`, and everything else behind them, as on a thread. */
function gatedHost(gate: () => Promise<void>, gated = 'write'): EngineHost {
  const host = inlineHost()
  let turn: Promise<unknown> = Promise.resolve()
  return {
    ask: (op, params) => {
      const copy = structuredClone(params)
      const asked = turn.then(async () => {
        if (op === gated) await gate()
        return host.ask(op, copy)
      })
      turn = asked
      return asked
    },
    end: () => host.end(),
  }
}

describe('a file that is no database', () => {
  it('leaves the bus working, says so once, and is not touched', async () => {
    writeFileSync(path, 'this is not a database, '.repeat(100))
    const store = await open()
    for (let n = 1; n <= 20; n += 1) tell(store, n)
    expect((await getTrace(store)).calls).toHaveLength(20)
    expect(changes).toHaveLength(1)
    expect(changes[0]).toMatchObject({ state: 'failed', reason: 'corrupt' })
    expect(changes[0]?.message).toMatch(/move it away or name another/)
    expect(store.status()).toMatchObject({ state: 'failed', dropped: 20 })
    expect(store.ids.issue()).toBe('AIO-TR-20260326-43200000')
    expect(readFileSync(path, 'utf8')).toMatch(/^this is not a database/)
  })

  it('is found out in the middle too', async () => {
    const first = await open()
    for (let n = 1; n <= 200; n += 1) tell(first, n, 'x'.repeat(500))
    await first.close()
    const bytes = readFileSync(path)
    bytes.fill(0xa5, 4096 * 4)
    writeFileSync(path, bytes)
    const store = await open()
    for (let n = 201; n <= 210; n += 1) tell(store, n)
    await getTrace(store).catch(() => {})
    expect(store.status()).toMatchObject({ state: 'failed', reason: 'corrupt' })
    tell(store, 300)
    expect((await getTrace(store)).calls.map((call) => call.id)).toContain(300)
  })
})

describe('a place that cannot be written', () => {
  it('is reported with what to do', async () => {
    const closed = join(folder.path, 'closed')
    mkdirSync(closed)
    writeFileSync(join(closed, 'file'), '')
    const store = await open({ path: join(closed, 'file', 'traces.db') })
    tell(store, 1)
    expect(store.status().state).toBe('failed')
    expect((await getTrace(store)).calls).toHaveLength(1)
    chmodSync(closed, 0o700)
  })
})

describe('a path that is not a file of ours', () => {
  const modeOf = (file: string): number => statSync(file).mode & 0o777
  const PLACES: Readonly<Record<string, (at: string) => string>> = {
    'a symbolic link': (at) => {
      writeFileSync(`${at}-target`, '')
      symlinkSync(`${at}-target`, at)
      return `${at}-target`
    },
    'a folder': (at) => {
      mkdirSync(at)
      return at
    },
    'a pipe': (at) => {
      execFileSync('mkfifo', [at])
      return at
    },
    'a file that is no database': (at) => {
      writeFileSync(at, 'root:x:0:0:root')
      return at
    },
  }

  it.each(Object.keys(PLACES))('%s keeps its mode, and the store says what is wrong', async (what) => {
    verifies('T6-own')
    const target = PLACES[what]!(path)
    chmodSync(target, 0o755)
    const store = await open()
    tell(store, 1)
    const reason = what === 'a file that is no database' ? 'corrupt' : 'not_ours'
    expect(store.status()).toMatchObject({ state: 'failed', reason })
    expect(modeOf(target)).toBe(0o755)
    expect((await getTrace(store)).calls).toHaveLength(1)
  })

  it.each(['-wal', '-shm', '.lock'])('a link in the place of %s keeps the mode of its target', async (companion) => {
    writeFileSync(`${path}-target`, 'content', { mode: 0o644 })
    chmodSync(`${path}-target`, 0o644)
    symlinkSync(`${path}-target`, `${path}${companion}`)
    expect((await open()).status()).toMatchObject({ state: 'failed', reason: 'not_ours' })
    expect([modeOf(`${path}-target`), readFileSync(`${path}-target`, 'utf8')]).toEqual([0o644, 'content'])
  })

  it('a store that others may read is its owner’s alone once it is opened', async () => {
    await (await open()).close()
    chmodSync(path, 0o644)
    await open()
    expect(modeOf(path)).toBe(0o600)
  })
})

describe('a full disk', () => {
  it('fails a batch as a whole and is named as what it is', async () => {
    const db = await openDatabase(path)
    prepareDatabase(db, () => 'bus')
    db.exec('PRAGMA max_page_count = 20')
    const writer = new TraceWriter(db, payloadKeeper({ payloadBytes: 100_000, redact: [] }))
    const row = { ...(await rowOf('x'.repeat(50_000))), id: 1 }
    const changesOf = (ids: number[]) =>
      ids.map((id) => ({ kind: 'new' as const, traceId: TRACE, otelTraceId: null, row: { ...row, id } }))
    const batch = { changes: changesOf([1, 2, 3]), missing: [], atMs: NOON_MS }
    let failure: unknown
    try {
      writer.write(batch)
    } catch (error) {
      failure = error
    }
    expect(describeFailure(failure).reason).toBe('disk_full')
    expect(db.prepare('SELECT (SELECT count(*) FROM calls) + (SELECT count(*) FROM traces) AS n').get()).toEqual({
      n: 0,
    })
    db.exec('PRAGMA max_page_count = 10000')
    writer.write(batch)
    expect(db.prepare('SELECT n_calls FROM traces').get()).toEqual({ n_calls: 3 })
    db.close()
  })

  it('does not slow or fail calls, and the operator is told once', () => {
    verifies('3.1-trace-never-awaited', 'T5-never-slows')
    // A limit on the size of files stands for the disk; 512-byte blocks, so 300 KiB.
    const program = `
      import { openTraceStore } from ${JSON.stringify(new URL('store.js', compiledUrl).href)}
      const changes = []
      const store = await openTraceStore({ path: process.argv[2], onState: (change) => changes.push(change) })
      let worstMs = 0
      for (let n = 1; n <= 400; n += 1) {
        const before = performance.now()
        const call = { traceId: 'T', callId: n, parentId: null, requestId: n, protocol: 'aio', type: 'stdio', agent: 'a', worker: null, method: 'm' }
        store.begin({ ...call, input: 'x'.repeat(2000), bytesIn: 1, startedAtMs: Date.now() })
        store.end({ traceId: 'T', callId: n, status: 'ok', output: null, bytesOut: 1, partials: 0, endedAtMs: Date.now() })
        worstMs = Math.max(worstMs, performance.now() - before)
        if (n % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 20))
      }
      const { text } = await store.query('get', { trace_id: 'T' })
      console.log(JSON.stringify({ changes, worstMs, calls: JSON.parse(text).calls.length, status: store.status() }))
      await store.close()
    `
    const file = join(compiled.path, 'full-disk.mjs')
    writeFileSync(file, program)
    const shell = 'ulimit -f 600; exec "$0" "$1" "$2"'
    const run = spawnSync('/bin/sh', ['-c', shell, process.execPath, file, path], { encoding: 'utf8' })
    expect(run.stderr).toBe('')
    const told = JSON.parse(run.stdout)
    expect(told.changes.map((change: StateChange) => change.state)).toEqual(['ok', 'failed'])
    expect(told.changes[1].message).toMatch(/disk/)
    expect(told.calls).toBeGreaterThan(0)
    expect(told.status.state).toBe('failed')
    expect(told.status.dropped).toBeGreaterThan(0)
    expect(told.worstMs).toBeLessThan(400)
  })
})

async function rowOf(input: unknown) {
  const store = await openTraceStore({})
  return new Promise<import('./row.ts').CallRow>((resolve) => {
    store.follow(({ row }) => resolve(row))
    store.begin(callStart({ input }))
  })
}

describe('a slow disk', () => {
  it('makes the store failed while it hangs, and well again when it answers', async () => {
    let release = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const store = await open({ makeHost: () => gatedHost(() => gate), times: { stallMs: 150, queryMs: 50 } })
    tell(store, 1)
    expect((await getTrace(store)).calls).toHaveLength(1)
    await expect.poll(() => store.status()).toMatchObject({ state: 'failed', reason: 'slow' })
    tell(store, 2)
    expect((await getTrace(store)).calls).toHaveLength(2)
    release()
    await expect.poll(() => store.status().state).toBe('ok')
    tell(store, 3)
    expect((await getTrace(store)).calls.map((call) => call.id)).toEqual([1, 3])
    expect(changes.map((change) => change.reason)).toEqual([undefined, 'slow', undefined])
  })

  it('is not suspected while a long question is being answered', async () => {
    let release = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const makeHost = () => gatedHost(() => gate, 'query')
    const store = await open({ makeHost, times: { stallMs: 50, queryMs: 10 } })
    const asked = store.query('stats', {})
    tell(store, 1)
    await asked
    await new Promise((resolve) => setTimeout(resolve, 250))
    expect(store.status().state).toBe('ok')
    release()
    expect((await getTrace(store)).calls).toHaveLength(1)
    expect(changes).toHaveLength(1)
  })

  it('on its own thread holds nobody up', async () => {
    verifies('3.1-trace-never-awaited')
    const entry = join(compiled.path, 'trace', 'slow-thread.mjs')
    const waits = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400)'
    writeFileSync(
      entry,
      `import { parentPort } from 'node:worker_threads'
       import './store-thread.js'
       parentPort.on('message', ({ op }) => { if (op === 'write') ${waits} })`,
    )
    const store = await open({ makeHost: () => threadHost(new URL(`file://${entry}`)) })
    let worstMs = 0
    for (let n = 1; n <= 40; n += 1) {
      const before = performance.now()
      tell(store, n)
      await new Promise((resolve) => setTimeout(resolve, 10))
      worstMs = Math.max(worstMs, performance.now() - before)
    }
    expect(worstMs).toBeLessThan(300)
    expect((await getTrace(store)).calls).toHaveLength(40)
    expect(store.status()).toMatchObject({ state: 'ok', dropped: 0 })
  })
})

describe('the thread', () => {
  const inThread = () => threadHost(new URL('store-thread.js', compiledUrl))

  it('keeps and answers like the engine in place', async () => {
    const store = await open({ makeHost: inThread })
    for (let n = 1; n <= 900; n += 1) tell(store, n)
    const trace = await getTrace(store)
    expect(trace.calls).toHaveLength(900)
    expect([trace.status, trace.missing]).toEqual(['completed', 0])
    await store.close()
    expect((await getTrace(await open({ makeHost: inThread }))).calls).toHaveLength(900)
  })

  it('that cannot start is a failed store, not a failed bus', async () => {
    const store = await open({ makeHost: () => threadHost(new URL('nowhere.js', compiledUrl)) })
    tell(store, 1)
    expect((await getTrace(store)).calls).toHaveLength(1)
    expect(store.status().state).toBe('failed')
  })

  it('that cannot even be made is a failed store, now and when it is tried again', async () => {
    let tries = 0
    const makeHost = (): never => {
      tries += 1
      throw new Error('no thread can be had')
    }
    const store = await open({ makeHost, times: { retryMs: 5 } })
    while (tries < 3) await new Promise((resolve) => setTimeout(resolve, 5))
    tell(store, 1)
    expect((await getTrace(store)).calls).toHaveLength(1)
    expect(store.status().state).toBe('failed')
    await store.close()
  })

  it('of a killed bus lets go of the file, and what was open is an error afterwards', () => {
    const program = `
      import { openTraceStore } from ${JSON.stringify(new URL('store.js', compiledUrl).href)}
      const store = await openTraceStore({ path: process.argv[2] })
      store.begin({ traceId: ${JSON.stringify(TRACE)}, callId: 1, parentId: null, requestId: 1, protocol: 'aio', type: 'stdio',
        agent: 'a', worker: null, method: 'm', input: {}, bytesIn: 1, startedAtMs: Date.now() })
      await store.query('list', {})
      process.kill(process.pid, 'SIGKILL')
    `
    const file = join(compiled.path, 'killed.mjs')
    writeFileSync(file, program)
    expect(spawnSync(process.execPath, [file, path]).signal).toBe('SIGKILL')
    return open().then(async (store) => {
      const trace = await getTrace(store)
      expect(trace.calls[0]?.error?.data).toEqual({ reason: 'bus_restarted' })
      expect([trace.status, store.status().state]).toEqual(['error', 'ok'])
    })
  })
})

describe('more calls than the disk takes', () => {
  /** Nothing is written until the gate opens; ten rows fit. */
  async function overloaded(maxPayloadBytes = 1_000_000) {
    let release = () => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    const store = await open({
      makeHost: () => gatedHost(() => gate),
      bounds: { queue: { maxRows: 10, maxPayloadBytes } },
      times: { stallMs: 5_000 },
    })
    return { store, release }
  }

  it('costs payloads first, then calls, and the trace says how many', async () => {
    verifies('T5-order')
    const { store, release } = await overloaded()
    for (let n = 1; n <= 30; n += 1) tell(store, n)
    const { droppedBy } = store.status()
    expect(droppedBy).toEqual({ payloads: 11, partials: 0, rows: 20 })
    release()
    const trace = await getTrace(store)
    expect(trace.calls.map((call) => call.id)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(trace.calls.filter((call) => call.lost === undefined)).toHaveLength(4)
    expect(trace.missing).toBe(26)
  })

  it('costs partials before calls', async () => {
    verifies('T5-order')
    const { store, release } = await overloaded()
    store.begin(callStart({ callId: 1 }))
    const asked = getTrace(store)
    for (let n = 2; n <= 9; n += 1) store.begin(callStart({ callId: n }))
    store.partial({ traceId: TRACE, callId: 1, atMs: NOON_MS + 1 })
    expect(store.status().droppedBy).toMatchObject({ partials: 1, rows: 0 })
    release()
    await asked
    expect((await getTrace(store)).calls).toHaveLength(9)
  })

  it('costs payloads when they are large although calls are few', async () => {
    const { store, release } = await overloaded(1_000)
    tell(store, 1, 'x'.repeat(900))
    tell(store, 2, 'x'.repeat(900))
    release()
    const trace = await getTrace(store)
    expect(trace.calls.map((call) => call.lost)).toEqual([undefined, ['input']])
    expect(trace.missing).toBe(1)
  })

  it('never costs the end of a call that is stored as open', async () => {
    const { store, release } = await overloaded()
    for (let n = 1; n <= 10; n += 1) store.begin(callStart({ callId: n }))
    release()
    await getTrace(store)
    for (let n = 11; n <= 20; n += 1) store.begin(callStart({ callId: n }))
    for (let n = 1; n <= 10; n += 1) store.end(callEnd({ callId: n }))
    const trace = await getTrace(store)
    expect(trace.calls.slice(0, 10).every((call) => call.status === 'ok')).toBe(true)
  })

  it('follows no more open calls than its bound', async () => {
    const store = await open({ bounds: { maxOpen: 2 } })
    for (let n = 1; n <= 3; n += 1) store.begin(callStart({ callId: n }))
    const trace = await getTrace(store)
    expect([trace.calls.length, trace.missing]).toEqual([2, 1])
  })
})

describe('the memory of recent traces', () => {
  it('forgets the oldest traces first, and the older half of the only one', async () => {
    const bounds = { recent: { maxCalls: 10, maxPayloadBytes: 1_000_000 } }
    const store = await open({ path: undefined, bounds })
    store.begin(callStart({ traceId: 'old' }))
    for (let n = 1; n <= 10; n += 1) tell(store, n)
    await expect(getTrace(store, 'old')).rejects.toThrow(/no trace/)
    tell(store, 11)
    const trace = await getTrace(store)
    expect([trace.calls.length, trace.missing]).toEqual([5, 6])
  })

  it('is bounded in bytes', async () => {
    const bounds = { recent: { maxCalls: 1_000, maxPayloadBytes: 10_000 } }
    const store = await open({ path: undefined, bounds })
    for (let n = 1; n <= 50; n += 1) {
      store.begin(callStart({ traceId: `T${n}`, input: 'x'.repeat(1_000) }))
      store.end(callEnd({ traceId: `T${n}`, output: 'x'.repeat(1_000) }))
    }
    const answer = await store.query('list', {})
    expect('text' in answer && JSON.parse(answer.text).traces.length).toBeLessThanOrEqual(5)
  })
})
