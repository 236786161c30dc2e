/**
 * Measures the page of traces (contract 15, "to reach"): 10,000 traces in a list, 1,000 calls as a waterfall and as a graph.
 *
 * A part of `bench/console.mjs`, which has the bus and the browser. Times are taken in the page, from its navigation on.
 */
import { openTraceStore } from '../../dist/trace/store.js'

const TRACES = 10_000
const CALLS = 1_000
const AGENTS = 17
const LARGE_TRACE = 'bench-large'

/** Writes 10,000 traces of one call and one of 1,000 into a file that a bus can be given as `aio.store.path`. */
export async function fillTraces(path) {
  const store = await openTraceStore({ path })
  const startedAtMs = Date.now() - TRACES
  for (let number = 0; number < TRACES; number++) {
    tell(store, `bench-${String(number).padStart(5, '0')}`, {
      callId: 1,
      parentId: null,
      startedAtMs: startedAtMs + number,
    })
    if (number % 500 === 499) await store.query('list', { limit: 1 })
  }
  for (let callId = 1; callId <= CALLS; callId++) {
    const parentId = callId === 1 ? null : Math.ceil((callId - 1) / 6)
    tell(store, LARGE_TRACE, { callId, parentId, startedAtMs: Date.now() + callId })
  }
  await store.close()
}

function tell(store, traceId, { callId, parentId, startedAtMs }) {
  const agent = `agent-${callId % AGENTS}`
  const what = { traceId, callId, parentId, requestId: callId, protocol: 'aio', type: 'mcp', agent, worker: '1.1' }
  store.begin({ ...what, method: 'tools.call', target: 'search', input: { x: callId }, bytesIn: 9, startedAtMs })
  const status = callId % 91 === 5 ? 'error' : 'ok'
  const error = status === 'error' ? { code: -32602, message: 'not so' } : undefined
  const end = { traceId, callId, status, error, output: { y: callId }, bytesOut: 9, partials: 0 }
  store.end({ ...end, endedAtMs: startedAtMs + 20 + (callId % 30) })
}

/** `page`: of playwright, logged in at the console of `url`, whose store `fillTraces` has written. Rows of name, value, unit, target. */
export async function measureTraces(page, url) {
  await page.addInitScript(WATCH)
  const list = await visit(page, `${url}/console/traces`, '.trace-row')
  const elements = await page.evaluate('document.querySelectorAll("*").length')
  const scrolled = await scrollToEnd(page)
  const waterfall = await visit(page, `${url}/console/traces/${LARGE_TRACE}`, '.call-row')
  await page.setViewportSize({ width: 900, height: 800 })
  const graph = await visit(page, `${url}/console/traces/${LARGE_TRACE}?view=graph`, '.graph .node')
  return [
    { name: '10,000 traces: rows', value: list.ms, unit: 'ms', target: 1_000 },
    { name: '... elements', value: elements, unit: '', target: 3_000 },
    { name: '... longest task while it loads', value: list.longestMs, unit: 'ms', target: 200 },
    { name: '... elements after all were scrolled through', value: scrolled.elements, unit: '', target: 3_000 },
    { name: '... longest task while scrolling', value: scrolled.longestMs, unit: 'ms', target: 200 },
    { name: '1,000 calls: waterfall', value: waterfall.ms, unit: 'ms', target: 1_000 },
    { name: '... longest task', value: waterfall.longestMs, unit: 'ms', target: 200 },
    { name: '1,000 calls: graph', value: graph.ms, unit: 'ms', target: 2_000 },
    { name: '... longest task', value: graph.longestMs, unit: 'ms', target: 200 },
  ]
}

/** Runs before the page: keeps what long tasks there were, and when what was waited for was first seen. */
const WATCH = `
  globalThis.bench = { tasks: [], seenMs: undefined }
  new PerformanceObserver((list) => bench.tasks.push(...list.getEntries().map(({ duration }) => duration)))
    .observe({ type: 'longtask', buffered: true })
  bench.await = (selector) => {
    const look = () => {
      if (document.querySelector(selector) === null) return requestAnimationFrame(look)
      requestAnimationFrame(() => { bench.seenMs = performance.now() })
    }
    look()
  }
`

/** From the navigation to the first frame that shows it. */
async function visit(page, address, selector) {
  await page.goto(address, { waitUntil: 'commit' })
  await page.evaluate(`bench.await(${JSON.stringify(selector)})`)
  await until(page, 'bench.seenMs !== undefined')
  const ms = await page.evaluate('bench.seenMs')
  await page.waitForTimeout(1_500)
  return { ms, longestMs: await longestTask(page) }
}

async function scrollToEnd(page) {
  await page.evaluate('bench.tasks.length = 0')
  const isAtEnd = `(() => {
    const rows = document.querySelector('.rows')
    rows.scrollTop = rows.scrollHeight
    return /^[0-9,]+ traces$/.test(document.querySelector('.list-foot').textContent.trim())
  })()`
  await until(page, isAtEnd)
  return {
    longestMs: await longestTask(page),
    elements: await page.evaluate('document.querySelectorAll("*").length'),
  }
}

/** The policy of the page refuses playwright's own way of waiting, which makes code of text. */
async function until(page, condition) {
  const endMs = Date.now() + 120_000
  while (!(await page.evaluate(condition))) {
    if (Date.now() > endMs) throw new Error(`not in two minutes: ${condition}`)
    await page.waitForTimeout(50)
  }
}

/** Zero: none above 50 ms, which is what a browser calls long. */
function longestTask(page) {
  return page.evaluate('Math.max(0, ...bench.tasks)')
}
