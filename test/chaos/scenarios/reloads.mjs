/** Reloads under load: pools grow, change, come and go, two files at once, while clients come and go too. The last file wins. */
import { anyUse, FAIR_REASONS, firstVariant, variantOf } from '../stage/changing-pools.mjs'
import { Ledger } from '../stage/ledger.mjs'
import { pool } from '../stage/stage.mjs'
import { Recurring, Visitors } from '../stage/visitors.mjs'
import { eventually, sleep } from '../stage/waiting.mjs'

const VISITORS = 16
/** Every so many reloads two come at once. */
const TWO_AT_ONCE = 4

export const reloads = {
  name: 'reloads',
  title: 'reloads under load: pools grow, change, come and go; two at once; clients come and go too',
  async run(stage) {
    const bus = await stage.start(steadied(firstVariant()))
    const before = await bus.descriptorsAtRest()
    const untouched = new Ledger()
    const residents = await stage.steady(bus, 4, 'steady', { waitMs: 2 }, { ledger: untouched })
    const visitors = new Visitors(stage, bus, { count: VISITORS, use: anyUse })
    const changes = new Recurring(stage, 600, (round) => change(stage, bus, round))
    await sleep(stage.isQuick ? 8_000 : 30_000)
    for (const each of [changes, visitors]) await each.end()
    await stage.settle(residents)
    await takeLast(stage, bus)
    stage.check(untouched.errorCount === 0, `a pool that no file touched: ${JSON.stringify(untouched.errors)}`)
    stage.ledger.add(untouched)
    stage.fact(
      `${changes.count} reloads, every fourth with another at the same time; ${visitors.count} clients came and went`,
    )
    stage.check(changes.count > 5, 'there were hardly any reloads')
    for (const [reason, count] of Object.entries(stage.ledger.errors))
      stage.check(FAIR_REASONS.includes(reason), `${count} answers with the error ${reason}`)
    await stage.checkDescriptors(bus, before)
    await stage.finish(bus)
  },
}

/** With a pool that no reload touches. */
const steadied = (config) => ({ ...config, pools: [...config.pools, pool('steady')] })

async function change(stage, bus, round) {
  const answers = [bus.reload(steadied(variantOf(round)))]
  if (round % TWO_AT_ONCE === 0) answers.push(bus.reload(steadied(variantOf(round + 1))))
  for (const answer of await Promise.all(answers))
    stage.check(answer?.result !== undefined, `a reload was answered with ${JSON.stringify(answer)}`)
  return true
}

/** Two at once, and nobody left: the workers are those of the file that was written last. */
async function takeLast(stage, bus) {
  const last = steadied(firstVariant())
  await Promise.all([bus.reload(steadied(variantOf(1))), bus.reload(last)])
  const wanted = workersOf(last)
  let found
  await eventually(
    async () => {
      const { workers } = await bus.status()
      found = workers
        .map(({ pool: id }) => id)
        .sort()
        .join()
      return found === wanted && workers.every(({ state }) => state === 'ready')
    },
    30_000,
    200,
  )
  stage.check(found === wanted, `the workers are ${found} instead of ${wanted}`)
}

/** One-shot agents have no worker at rest. */
const workersOf = ({ pools }) =>
  pools
    .filter(({ aio }) => aio?.mode === undefined)
    .flatMap(({ id, instances = 1 }) => Array(instances).fill(id))
    .sort()
    .join()
