/**
 * The figures of the trace room at a size that fits a test; the measurements themselves are in bench/trace-store.mjs.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  callEnd,
  callStart,
  compileTrace,
  NOON_MS,
  type TemporaryFolder,
  temporaryFolder,
} from '../../test/fixtures/trace/calls.ts'
import { threadHost } from './engine-host.ts'
import { type Ask, askWholeExport, askWholeTrace } from './queries.ts'
import { renderSvg } from './render-svg.ts'
import { renderTree } from './render-tree.ts'
import { openTraceStore, type TraceStore } from './store.ts'

const LARGE = 10_000
const MANY = 40_000
const PER_TRACE = 10

let folder: TemporaryFolder
let store: TraceStore

beforeAll(async () => {
  folder = temporaryFolder()
  const entry = new URL('store-thread.js', compileTrace(folder.path))
  const bounds = { queue: { maxRows: 100_000, maxPayloadBytes: 2 ** 28 } }
  store = await openTraceStore({
    path: join(folder.path, 'traces.db'),
    nowMs: () => NOON_MS,
    makeHost: () => threadHost(entry),
    bounds,
  })
  for (let n = 1; n <= LARGE; n += 1) tell('large', n, n === 1 ? null : Math.ceil(n / 8))
  for (let n = 0; n < MANY; n += 1) {
    tell(`T${Math.floor(n / PER_TRACE)}`, (n % PER_TRACE) + 1, null)
    if (n % 5_000 === 0) await store.query('list', { limit: 1 })
  }
  await store.query('list', { limit: 1 })
}, 60_000)
afterAll(async () => {
  await store.close()
  folder.remove()
})

function tell(traceId: string, callId: number, parentId: number | null): void {
  const startedAtMs = NOON_MS + callId
  const input = { tool: 'calculate_area', args: { x: 3, y: 4, note: 'lorem ipsum '.repeat(30) } }
  store.begin(callStart({ traceId, callId, parentId, startedAtMs, input }))
  store.end(callEnd({ traceId, callId, endedAtMs: startedAtMs + 3 }))
}

/** CPU time of all threads: on a machine that others use, the clock on the wall says nothing. */
async function timed<T>(act: () => Promise<T>): Promise<{ value: T; ms: number }> {
  const before = process.cpuUsage()
  const value = await act()
  const { user, system } = process.cpuUsage(before)
  return { value, ms: (user + system) / 1_000 }
}

async function ask(method: 'list' | 'get' | 'export', params: object): Promise<string> {
  const answer = await store.query(method, params)
  if ('fault' in answer) throw new Error(answer.fault.message)
  return answer.text
}

describe('a trace of ten thousand calls', () => {
  it('is listed, shown and exported in under a second', async () => {
    const listed = await timed(() => ask('list', { agent: 'reader' }))
    const read: Ask = async (method, params) => JSON.parse(await ask(method, params))
    const shown = await timed(async () => renderTree(await askWholeTrace(read, 'large')))
    const drawn = await timed(async () => renderSvg(await askWholeTrace(read, 'large')))
    const exported = await timed(() => askWholeExport(read, 'large', 'otlp-json'))
    expect(shown.value.split('\n').length).toBeGreaterThan(LARGE)
    expect(drawn.value.match(/class="node /g)).toHaveLength(LARGE)
    expect(drawn.value.match(/class="edge /g)).toHaveLength(LARGE - 1)
    for (const { ms } of [listed, shown, drawn, exported]) expect(ms).toBeLessThan(1_000)
  })
})

describe('among very many calls', () => {
  it('any trace opens quickly, wherever it lies', async () => {
    const times: number[] = []
    for (let n = 0; n < 40; n += 1) {
      const { value, ms } = await timed(() => ask('get', { trace_id: `T${n * 100}` }))
      expect(JSON.parse(value).calls).toHaveLength(PER_TRACE)
      times.push(ms)
    }
    expect(times.sort((a, b) => a - b)[20]).toBeLessThan(50)
  })

  it('nothing was given up', () => {
    expect(store.status()).toMatchObject({ state: 'ok', dropped: 0 })
  })
})
