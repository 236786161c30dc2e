/**
 * Runs the benchmarks and keeps their last result in bench/results. Not a test: a missed target is reported, not punished; only a row
 * that could not be measured makes the exit code 1.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Bench } from './bench.mjs'
import { hasNative } from './native.mjs'
import { choosePlacement, PLACEMENT_NAMES } from './placement.mjs'
import { topFunctions } from './profile.mjs'
import { judge, machine, markdownOf, tableOf } from './report.mjs'
import { accessRows } from './rows/access.mjs'
import { barRows } from './rows/bars.mjs'
import { memoryRows, soakRows } from './rows/memory.mjs'
import { remoteRows } from './rows/remote.mjs'
import { scaleRows } from './rows/scale.mjs'
import { noiseRows, trafficRows } from './rows/traffic.mjs'
import { wireRows } from './rows/wire.mjs'

const USAGE = `Usage: npm run bench -- [--quick] [--soak] [--only NAME] [--profile] [--program FILE] [--placement NAME] [--list]

  --quick           short rounds, about two minutes in all
  --soak            only ten minutes of full load, and how the memory develops
  --only NAME       only rows whose name contains NAME; the kept result stays as it is
  --profile         run the bus with --cpu-prof and print where its time went (its figures are then worth less)
  --program FILE    measure another build of the bus than dist/cli/main.js; the kept result stays as it is
  --placement NAME  ${PLACEMENT_NAMES.join(', ')}: the bus on a core of its own (default), all on one core, or as the scheduler likes;
                    rows named bar-... choose their own: they are what the bus is held to
  --list            print the names of all rows

Load generator and worker are compiled from bench/native where there is a gcc; else those in JavaScript are used.
`

const PACES = {
  full: {
    warmMs: 400,
    roundMs: 1500,
    rounds: 2,
    pairs: 7,
    latencyMs: 400,
    latencyPairs: 20,
    wireMs: 800,
    settleMs: 3000,
    soakMs: 600_000,
    soakMarkMs: 60_000,
  },
  quick: {
    warmMs: 150,
    roundMs: 300,
    rounds: 1,
    pairs: 5,
    latencyMs: 120,
    latencyPairs: 20,
    wireMs: 200,
    settleMs: 1000,
    soakMs: 60_000,
    soakMarkMs: 20_000,
  },
}

const results = fileURLToPath(new URL('results', import.meta.url))

const options = {
  quick: { type: 'boolean', default: false },
  soak: { type: 'boolean', default: false },
  profile: { type: 'boolean', default: false },
  list: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
  only: { type: 'string', default: '' },
  program: { type: 'string' },
  placement: { type: 'string', default: 'apart' },
}

/** Rows with many connections need as many descriptors, here and in the bus. */
function descriptorLimit() {
  const text = execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim()
  return text === 'unlimited' ? Number.POSITIVE_INFINITY : Number(text)
}

async function measureRow(bench, row, descriptors) {
  if (row.descriptors > descriptors) {
    return {
      name: row.name,
      error: `needs ${row.descriptors} open files, \`ulimit -n\` allows ${descriptors}: raise it and run again`,
    }
  }
  try {
    const figures = await row.measure(bench)
    return { name: row.name, ...figures, judgements: judge(figures, row.targets) }
  } catch (error) {
    return { name: row.name, error: error.message }
  }
}

async function measureAll(rows, bench) {
  const descriptors = descriptorLimit()
  const measured = []
  for (const [index, row] of rows.entries()) {
    process.stderr.write(`[${index + 1}/${rows.length}] ${row.name}\n`)
    measured.push(await measureRow(bench, row, descriptors))
  }
  return measured
}

function keep(name, report) {
  mkdirSync(results, { recursive: true })
  writeFileSync(join(results, `${name}.json`), `${JSON.stringify(report, null, 2)}\n`)
  writeFileSync(join(results, `${name}.md`), markdownOf(report))
}

async function main({ quick, soak, profile, list, help, only, program, placement }) {
  if (help) return console.log(USAGE)
  const all = soak
    ? soakRows
    : [...barRows, ...wireRows, ...noiseRows, ...trafficRows, ...scaleRows, ...accessRows, ...remoteRows, ...memoryRows]
  const rows = all.filter((row) => row.name.includes(only))
  if (rows.length === 0) throw new Error(`no row is named like ${only}; see --list`)
  if (list) return console.log(rows.map((row) => row.name).join('\n'))
  if (process.platform !== 'linux')
    throw new Error('CPU time and memory of the bus are read from /proc: run this on Linux')
  if (!PLACEMENT_NAMES.includes(placement)) throw new Error(`there is no placement ${placement}`)
  const placed = choosePlacement(placement)
  const profileFolder = profile ? mkdtempSync(join(tmpdir(), 'stdio-bus-profile-')) : undefined
  const mode = quick ? 'quick' : 'full'
  const before = machine()
  const bench = new Bench(PACES[mode], placed, { program, profileFolder })
  const measured = await measureAll(rows, bench).finally(() => bench.close())
  console.log(
    `placement: ${placed.name}; peers in ${hasNative() ? 'C' : 'JavaScript'}; load average before: ${before.loadAverage.toFixed(1)}\n\n${tableOf(measured)}`,
  )
  if (profile) console.log(`\nOwn time of the bus:\n${topFunctions(profileFolder)}`)
  if (profile) rmSync(profileFolder, { recursive: true })
  if (only === '' && !profile && !program)
    keep(soak ? 'soak' : 'latest', { mode, placement: placed.name, machine: before, rows: measured })
  if (measured.some((row) => row.error)) process.exitCode = 1
}

try {
  await main(parseArgs({ options }).values)
} catch (error) {
  console.error(`${error.message}\n\n${USAGE}`)
  process.exitCode = 2
}
