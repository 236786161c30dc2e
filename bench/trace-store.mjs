/**
 * Measures the trace store by itself: what a call costs, what a large trace costs, what a store with many calls costs.
 *
 * `npm run build && node bench/trace-store.mjs [--calls 1000000]`. Not a test: a missed target is printed as such and fails
 * nothing. CPU of the telling thread comes from /proc (Linux), because wall time on a shared machine means little.
 */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { askWholeExport, askWholeTrace } from '../dist/trace/queries.js'
import { renderSvg } from '../dist/trace/render-svg.js'
import { renderTree } from '../dist/trace/render-tree.js'
import { openTraceStore } from '../dist/trace/store.js'
import { readOptions } from '../test/support/options.mjs'

const USAGE = `usage: node bench/trace-store.mjs [--calls N]: what the trace store costs by itself

  --calls N  how many are stored (1000000)`

const options = readOptions(USAGE, { calls: { type: 'string', default: '1000000' } })
const CALLS = Number(options.calls)
const CALLS_PER_TRACE = 10
const folder = mkdtempSync(join(tmpdir(), 'stdio-bus-bench-'))

const mainCpuUs = () =>
  Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ', 1)[0]) / 1000
const allCpuUs = () => {
  const { user, system } = process.cpuUsage()
  return user + system
}
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

function tell(store, traceId, requestId, parentId = null) {
  const callId = store.ids.allocate(traceId, requestId)
  const startedAtMs = Date.now()
  store.begin({
    ...{
      traceId,
      callId,
      parentId,
      requestId,
      protocol: 'aio',
      type: 'mcp',
      agent: `agent-${requestId % 7}`,
      worker: '1.1',
    },
    ...{ method: 'tools.call', nativeMethod: 'tools/call', target: 'calculate_area', startedAtMs },
    input: { tool: 'calculate_area', args: { x: 3, y: 4, note: 'lorem ipsum '.repeat(30) } },
    bytesIn: 480,
  })
  const output = { content: [{ type: 'text', text: 'dolor sit amet '.repeat(25) }] }
  store.end({ traceId, callId, status: 'ok', output, bytesOut: 420, partials: 0, endedAtMs: startedAtMs + 3 })
  return callId
}

function report(name, value, unit, target) {
  const verdict =
    target === undefined ? '' : value <= target ? `  (target ${target}: reached)` : `  (target ${target}: MISSED)`
  console.log(`${name.padEnd(44)} ${value.toFixed(2).padStart(10)} ${unit}${verdict}`)
}

async function timed(act) {
  const before = performance.now()
  const value = await act()
  return { value, ms: performance.now() - before }
}

/** A steady 5,000 calls a second, for a while, with the bare loop taken off. */
async function measureCall() {
  const store = await openTraceStore({ path: join(folder, 'rate.db'), redact: ['password'] })
  const run = async (act) => {
    const before = { main: mainCpuUs(), all: allCpuUs() }
    let count = 0
    for (let tick = 0; tick < 1_000; tick += 1) {
      for (let n = 0; n < 50; n += 1) act(count++)
      await pause(10)
    }
    return { main: (mainCpuUs() - before.main) / count, all: (allCpuUs() - before.all) / count }
  }
  let traceId = store.ids.issue()
  const idle = await run(() => {})
  const rssBefore = process.memoryUsage().rss
  const told = await run((n) => {
    if (n % CALLS_PER_TRACE === 0) traceId = store.ids.issue()
    tell(store, traceId, n + 1)
  })
  report('a call, on the telling thread', told.main - idle.main, 'us CPU', 25)
  report('a call, in all', told.all - idle.all, 'us CPU', 60)
  report('memory after 50,000 calls', (process.memoryUsage().rss - rssBefore) / 2 ** 20, 'MiB more')
  report('given up under 5,000 calls/s', store.status().dropped, 'things', 0)
  await store.close()
}

async function measureLargeTrace() {
  const store = await openTraceStore({ path: join(folder, 'large.db') })
  const traceId = store.ids.issue()
  for (let n = 1; n <= 10_000; n += 1) {
    tell(store, traceId, n, n === 1 ? null : Math.ceil(n / 8))
    if (n % 500 === 0) await pause(5)
  }
  await store.query('list', {})
  const ask = async (method, params) => JSON.parse((await store.query(method, params)).text)
  const listed = await timed(() => store.query('list', {}))
  const shown = await timed(async () => renderTree(await askWholeTrace(ask, traceId)))
  const drawn = await timed(async () => renderSvg(await askWholeTrace(ask, traceId)))
  report('a trace of 10,000 calls listed', listed.ms, 'ms', 1_000)
  report('... shown as a tree', shown.ms, 'ms', 1_000)
  report('... drawn as SVG', drawn.ms, 'ms', 1_000)
  for (const format of ['aio', 'otlp-json']) {
    const exported = await timed(() => askWholeExport(ask, traceId, format))
    report(`... exported as ${format}`, exported.ms, 'ms', 1_000)
  }
  await store.close()
}

async function measureManyCalls() {
  const path = join(folder, 'many.db')
  const store = await openTraceStore({ path, bounds: { queue: { maxRows: 100_000, maxPayloadBytes: 2 ** 28 } } })
  const traceIds = []
  const filled = await timed(async () => {
    for (let n = 0; n < CALLS; n += 1) {
      if (n % CALLS_PER_TRACE === 0) traceIds.push(store.ids.issue())
      tell(store, traceIds.at(-1), n + 1)
      if (n % 2_000 === 1_999) await store.query('list', { limit: 1 })
    }
  })
  report(`${CALLS} calls stored`, CALLS / (filled.ms / 1000), 'calls/s')
  report('... a call on disk', statSync(path).size / CALLS, 'bytes')
  const times = []
  for (let n = 0; n < 200; n += 1) {
    const traceId = traceIds[Math.floor((n / 200) * traceIds.length)]
    times.push((await timed(() => store.query('get', { trace_id: traceId }))).ms)
  }
  times.sort((a, b) => a - b)
  report('... any trace opened, median', times[100], 'ms')
  report('... any trace opened, worst of 200', times.at(-1), 'ms', 50)
  report('... newest listed', (await timed(() => store.query('list', {}))).ms, 'ms')
  report('... newest of one agent listed', (await timed(() => store.query('list', { agent: 'agent-3' }))).ms, 'ms')
  report('... counted per agent', (await timed(() => store.query('stats', {}))).ms, 'ms')
  await store.close()
}

try {
  await measureCall()
  await measureLargeTrace()
  await measureManyCalls()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
