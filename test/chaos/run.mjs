/**
 * `npm run chaos [-- --quick] [--only NAME | hostile/ATTACK] [--seed N]`: faults and floods on the real program, and what came of them.
 *
 * Exit 1 on any violation. Only a whole run, neither quick nor of one scenario, writes docs/reliability.md.
 */
import { readOptions } from '../support/options.mjs'
import { chaosTable, hostileTable, writePage } from './report.mjs'
import { crowd } from './scenarios/crowd.mjs'
import { descriptors } from './scenarios/descriptors.mjs'
import { sigkill, sigterm } from './scenarios/end-of-bus.mjs'
import { fullDisk } from './scenarios/full-disk.mjs'
import { hostile } from './scenarios/hostile.mjs'
import { kills } from './scenarios/kills.mjs'
import { reloads } from './scenarios/reloads.mjs'
import { restartStorm } from './scenarios/restart-storm.mjs'
import { slowReader } from './scenarios/slow-reader.mjs'
import { startKills } from './scenarios/start-kills.mjs'
import { stoppedWorker } from './scenarios/stopped-worker.mjs'
import { webClients } from './scenarios/web-clients.mjs'
import { Program } from './stage/program.mjs'
import { Stage } from './stage/stage.mjs'

const SCENARIOS = [
  kills,
  stoppedWorker,
  slowReader,
  webClients,
  descriptors,
  crowd,
  reloads,
  restartStorm,
  sigterm,
  sigkill,
  startKills,
  fullDisk,
  hostile,
]

const SCENARIO_MS = 300_000

const NAMES = SCENARIOS.map(({ name }) => name)
const USAGE = `usage: npm run chaos [-- options]: faults and floods on the real program, and what came of them

  --quick      shorter scenarios
  --only NAME  one of ${NAMES.join(', ')}; hostile/ATTACK for one attack
  --seed N     repeats the choices of an earlier run

Exit 1 on any violation. A whole run that is not quick writes docs/reliability.md.`

const values = readOptions(USAGE, {
  quick: { type: 'boolean', default: false },
  only: { type: 'string' },
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
})
const seed = Number(values.seed)
const [only, part] = values.only?.split('/') ?? []
const chosen = SCENARIOS.filter(({ name }) => only === undefined || name === only)
if (chosen.length === 0 || !Number.isSafeInteger(seed)) {
  console.error(USAGE)
  process.exit(2)
}

const timeOut = () => new Promise((_, reject) => setTimeout(reject, SCENARIO_MS, new Error('not over in time')).unref())

/** Whoever breaks off the run leaves no bus behind. */
let onStage
for (const name of ['SIGINT', 'SIGTERM'])
  process.once(name, async () => {
    await onStage?.clear()
    process.exit(1)
  })

async function play(program, scenario) {
  const stage = new Stage(program, { name: scenario.name, seed, isQuick: values.quick, part })
  onStage = stage
  const startMs = performance.now()
  process.stdout.write(`${scenario.name} ... `)
  try {
    await Promise.race([scenario.run(stage), timeOut()])
  } catch (error) {
    console.error(error)
    stage.check(false, `the scenario broke off: ${error.message}`)
  }
  await stage.clear()
  const sheet = { ...stage.sheet(), title: scenario.title, extra: stage.extra }
  const verdict = sheet.violations.length === 0 ? 'held' : `VIOLATED\n  ${sheet.violations.join('\n  ')}`
  console.log(`${((performance.now() - startMs) / 1000).toFixed(1)} s, ${verdict}`)
  return sheet
}

console.log(`seed ${seed}; again: npm run chaos -- --seed ${seed}${values.quick ? ' --quick' : ''}`)
const startMs = performance.now()
const program = new Program()
const sheets = []
for (const scenario of chosen) sheets.push(await play(program, scenario))
const isSound = sheets.every(({ violations }) => violations.length === 0)
if (isSound) program.remove()
else console.log(`logs of the buses are kept below ${program.folder}`)

const attacks = sheets.find(({ name }) => name === 'hostile')?.extra
console.log(`\n${chaosTable(sheets)}\n`)
for (const { name, facts } of sheets) for (const fact of facts) console.log(`${name}: ${fact}`)
if (attacks !== undefined) console.log(`\n${hostileTable(attacks.attacks)}`)
if (values.only === undefined && !values.quick && attacks !== undefined)
  writePage(sheets, attacks, { seed, durationMs: performance.now() - startMs })
process.exit(isSound ? 0 : 1)
