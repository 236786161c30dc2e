/**
 * `npm run soak [-- --minutes N]`: the real program under a bounded load in which everything comes and goes, and what its
 * heap holds after each minute.
 *
 * Every look is taken at rest: no client, the first configuration, garbage collected. So what has grown since the first
 * minute is kept by nobody's wish. Exit 1 when it is more than the bar allows, or when a request got lost, a second answer
 * or one that was not its own.
 */
import { join } from 'node:path'
import { anyUse, FAIR_REASONS, firstVariant, variantOf } from '../chaos/stage/changing-pools.mjs'
import { Ledger } from '../chaos/stage/ledger.mjs'
import { signal } from '../chaos/stage/processes.mjs'
import { Program } from '../chaos/stage/program.mjs'
import { Stage } from '../chaos/stage/stage.mjs'
import { Recurring, Visitors } from '../chaos/stage/visitors.mjs'
import { eventually } from '../chaos/stage/waiting.mjs'
import { readOptions } from '../support/options.mjs'
import { INSPECTED, readHeap, writeSnapshot } from './heap.mjs'
import { soakTable, writePage } from './report.mjs'

/** Shorter runs are for looking, and leave the page alone. */
const WHOLE_MINUTES = 10
const MOST_GROWTH = 1.1
const MINUTE_MS = 60_000
const VISITORS = 16
const REST_MS = 60_000
/** So many traces fill the largest of the bounded memories, the numbers of calls by trace. */
const TRACES = 45_000

const USAGE = `usage: npm run soak [-- options]: isolated pools, leases, reloads, kills, agents and traces for minutes, and the heap

  --minutes N       how long, at least 2 (${WHOLE_MINUTES})
  --seed N          repeats the choices of an earlier run
  --snapshots PATH  a folder for a heap snapshot at the first and the last look

Exit 1 when the heap at the end is more than ${MOST_GROWTH} times that after the first minute, or a request was lost, answered twice
or misdelivered. A run of ${WHOLE_MINUTES} minutes or more writes docs/reliability.md.`

const values = readOptions(USAGE, {
  minutes: { type: 'string', default: String(WHOLE_MINUTES) },
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  snapshots: { type: 'string' },
})
const minutes = Number(values.minutes)
const seed = Number(values.seed)
if (!Number.isSafeInteger(minutes) || minutes < 2 || !Number.isSafeInteger(seed)) {
  console.error(USAGE)
  process.exit(2)
}

const program = new Program()
const stage = new Stage(program, { name: 'soak', seed })
for (const name of ['SIGINT', 'SIGTERM'])
  process.once(name, async () => {
    await stage.clear()
    process.exit(1)
  })

/** What has a bound of its own is filled in the first minute: it would grow for a while, and be no leak. */
async function fill(bus) {
  const ledger = new Ledger()
  const ask = () => ({ method: 'leaf::work', params: {} })
  const players = await stage.players(bus, 4, () => ask, { ledger, window: 16 })
  const isFull = await eventually(() => ledger.answered >= TRACES, 3 * MINUTE_MS, 200)
  stage.check(isFull, `only ${ledger.answered} traces were made to begin with`)
  await stage.settle(players)
  stage.ledger.add(ledger)
}

/** A minute of coming and going, then rest, then a look. */
async function minute(bus, number) {
  const startMs = performance.now()
  const visitors = new Visitors(stage, bus, { count: VISITORS, use: anyUse })
  const reloads = new Recurring(stage, 6_000, (round) => reload(bus, variantOf(round + 1)))
  const kills = new Recurring(stage, 3_000, () => killOne(bus))
  const looks = new Recurring(stage, 2_000, () => lookAtTraces(bus))
  if (number === 1) await fill(bus)
  await eventually(() => performance.now() - startMs > MINUTE_MS, MINUTE_MS + 1_000, 500)
  const all = [visitors, reloads, kills, looks]
  for (const each of all) await each.end()
  await reload(bus, firstVariant())
  await rest(bus)
  const { requests, answered, abandoned, errorCount } = stage.ledger
  const counts = all.map(({ count }) => count)
  return { number, requests, answered, abandoned, errors: errorCount, counts, ...(await readHeap(bus)) }
}

async function reload(bus, config) {
  const answer = await bus.reload(config)
  stage.check(answer?.result !== undefined, `a reload was answered with ${JSON.stringify(answer)}`)
  return true
}

async function killOne(bus) {
  const { workers } = await bus.status()
  const alive = workers.filter(({ pid, state }) => pid !== null && state === 'ready')
  return alive.length > 0 && signal(stage.random.pick(alive).pid, 'SIGKILL')
}

async function lookAtTraces(bus) {
  const answer = await bus.ask('traces.list', { limit: 20 })
  stage.check(answer?.result !== undefined, `a look at the traces was answered with ${JSON.stringify(answer)}`)
  return true
}

/** Nobody there, nothing owed, and only the workers that the first configuration names. */
async function rest(bus) {
  const expected = firstVariant().pools.reduce(
    (count, { instances = 1, aio }) => count + (aio?.mode ? 0 : instances),
    0,
  )
  let status
  const isAtRest = await eventually(
    async () => {
      status = await bus.status()
      const ready = status.workers.filter(({ state }) => state === 'ready').length
      return status.clients === 0 && status.outstanding === 0 && ready === expected && status.workers.length === ready
    },
    REST_MS,
    250,
  )
  const { clients, outstanding, workers } = status
  const found = `${clients} clients, ${outstanding} outstanding, workers ${workers.map(({ pool, state }) => `${pool} ${state}`)}`
  stage.check(isAtRest, `not at rest after ${REST_MS / 1_000} s: ${found}`)
}

async function soak() {
  const bus = await stage.start(firstVariant(), { runtime: INSPECTED })
  const before = await bus.descriptorsAtRest()
  const rows = []
  for (let number = 1; number <= minutes; number++) {
    rows.push(await minute(bus, number))
    console.log(soakTable(rows).split('\n').at(-1))
    if (values.snapshots !== undefined && (number === 1 || number === minutes))
      await writeSnapshot(bus, join(values.snapshots, `minute-${number}.heapsnapshot`))
  }
  const growth = rows.at(-1).heapMib / rows[0].heapMib
  stage.check(growth <= MOST_GROWTH, `the heap is ${growth.toFixed(3)} times what it was after the first minute`)
  for (const reason of Object.keys(stage.ledger.errors))
    stage.check(FAIR_REASONS.includes(reason), `${stage.ledger.errors[reason]} answers with the error ${reason}`)
  await stage.checkDescriptors(bus, before)
  await stage.finish(bus)
  return { rows, growth, bar: MOST_GROWTH }
}

console.log(`seed ${seed}; again: npm run soak -- --minutes ${minutes} --seed ${seed}`)
const startMs = performance.now()
let outcome
try {
  outcome = await soak()
} catch (error) {
  console.error(error)
  stage.check(false, `broke off: ${error.message}`)
}
await stage.clear()
const sheet = stage.sheet()
if (sheet.violations.length === 0) program.remove()
else console.log(`logs of the bus are kept below ${program.folder}`)
if (outcome !== undefined) {
  const run = {
    command: `npm run soak -- --minutes ${minutes} --seed ${seed}`,
    durationMs: performance.now() - startMs,
  }
  const page = writePage({ ...outcome, sheet }, run, minutes >= WHOLE_MINUTES)
  console.log(`\n${page}`)
}
console.log(sheet.violations.length === 0 ? 'held' : `VIOLATED\n  ${sheet.violations.join('\n  ')}`)
process.exit(sheet.violations.length === 0 ? 0 : 1)
