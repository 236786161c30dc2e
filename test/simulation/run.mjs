/** Compiles the simulation and runs it; see main.ts for what the options mean. */
import { pathToFileURL } from 'node:url'
import { readOptions } from '../support/options.mjs'
import { compile, copySources, makeWorkshop } from './compile.mjs'

const USAGE = `usage: npm run simulate [-- options]: the kernel in simulated worlds, and every promise checked after every event

  --seed N      the first seed; left out: a fresh one, which is printed
  --seeds N     how many seeds (1 with --seed, else 100)
  --events N    events of each world (1000)
  --minutes N   go on for so long, whatever --seeds says
  --steps LIST  only these steps of the world, as a shrunk violation prints them
  --aio         only worlds with agents
  --kept        worlds of sessions that outlive their clients, instead of all others

Exit 1 on a violation; it is shrunk and printed as the command that repeats it.`

const values = readOptions(USAGE, {
  seed: { type: 'string' },
  seeds: { type: 'string' },
  events: { type: 'string', default: '1000' },
  steps: { type: 'string' },
  minutes: { type: 'string', default: '0' },
  aio: { type: 'boolean', default: false },
  kept: { type: 'boolean', default: false },
})

const folder = makeWorkshop()
copySources(`${folder}/sources`)
compile(`${folder}/sources`, `${folder}/built`)
const imported = (name) => import(pathToFileURL(`${folder}/built/test/simulation/${name}.js`).href)
const { formatTally, parseSteps, reportFailure, runSeeds } = await imported('main')

const seed = values.seed === undefined ? Date.now() % 1_000_000_000 : Number(values.seed)
const steps = values.steps === undefined ? undefined : parseSteps(values.steps)
const seeds = Number(values.seeds ?? (values.seed === undefined ? 100 : 1))
if (values.seed === undefined) console.log(`fresh seeds from ${seed} on`)

async function runAll() {
  const order = {
    seed,
    seeds,
    events: Number(values.events),
    minutes: Number(values.minutes),
    steps,
    isAio: values.aio,
  }
  const tally = await runSeeds(order, (so) => process.stderr.write(`\r${formatTally(so)}`))
  process.stderr.write('\n')
  console.log(formatTally(tally))
  return tally.failed && (await reportFailure(tally.failed.plan, tally.failed.outcome))
}

async function runKept() {
  const { formatKept, runKeptSeeds, storyOf } = await imported('kept-main')
  const tally = runKeptSeeds(seed, seeds, Number(values.events), Number(values.minutes))
  console.log(formatKept(tally))
  return tally.failed && storyOf(tally.failed.seed, Number(values.events))
}

const failure = await (values.kept ? runKept() : runAll())
if (failure !== undefined) {
  console.log(failure)
  process.exitCode = 1
}
