/**
 * `npm run simulate:long`: fresh seeds on all cores for an hour, or as long as `--minutes` says; the figures go to
 * docs/reliability.md.
 */
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { readOptions } from '../support/options.mjs'
import { settingOf, whole, writeSection } from '../support/reliability-page.mjs'
import { compile, copySources, makeWorkshop } from './compile.mjs'

const USAGE = `usage: npm run simulate:long [-- options]: fresh seeds on all cores, and the figures into docs/reliability.md

  --minutes N  how long (60)
  --seed N     the first seed; left out: a fresh one
  --events N   events of each world (2000)
  --runners N  processes side by side (one for each core)

Exit 1 on a violation.`

const values = readOptions(USAGE, {
  minutes: { type: 'string', default: '60' },
  seed: { type: 'string' },
  events: { type: 'string', default: '2000' },
  runners: { type: 'string' },
})
const RUNNER = fileURLToPath(new URL('long-runner.mjs', import.meta.url))
/** Seeds of one runner never meet those of the next. */
const STRIDE = 10_000_000

const folder = makeWorkshop()
copySources(`${folder}/sources`)
compile(`${folder}/sources`, `${folder}/built`)

const first = values.seed === undefined ? Date.now() % 1_000_000_000 : Number(values.seed)
const runners = Number(values.runners ?? availableParallelism())

function run(seed) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [RUNNER, `${folder}/built`, String(seed), values.events, values.minutes], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let text = ''
    child.stdout.on('data', (part) => {
      text += part
    })
    child.on('close', () => resolve(JSON.parse(text)))
  })
}

const startMs = performance.now()
const tallies = await Promise.all(Array.from({ length: runners }, (_, index) => run(first + index * STRIDE)))
const sum = (key) => tallies.reduce((total, tally) => total + tally[key], 0)
const failures = tallies.flatMap(({ failure }) => (failure === undefined ? [] : [failure]))
const reasons = new Map()
for (const tally of tallies)
  for (const [reason, count] of tally.reasons) reasons.set(reason, (reasons.get(reason) ?? 0) + count)

const command = `npm run simulate:long -- --seed ${first} --minutes ${values.minutes}`
const lines = [
  '## Simulation',
  '',
  settingOf(command, performance.now() - startMs),
  'The real kernel, dialects, queues and gateway in worlds of chance; after every event all promises of the contract are checked.',
  '`npm run simulate:long` takes fresh seeds, `npm run simulate -- --seed N` repeats one.',
  '',
  `| seeds | events | requests | violations |`,
  '|---|---|---|---|',
  `| ${whole(sum('seeds'))} | ${whole(sum('events'))} | ${whole(sum('requests'))} | ${failures.length} |`,
  '',
  'What the bus answered in its own name meanwhile, by reason; everything else was answered by workers.',
  '',
  '| reason | answers |',
  '|---|---|',
  ...[...reasons].sort((a, b) => b[1] - a[1]).map(([reason, count]) => `| \`${reason}\` | ${whole(count)} |`),
]
for (const failure of failures) console.log(failure)
console.log(lines.join('\n'))
if (failures.length === 0) writeSection('simulation', lines.join('\n'))
process.exitCode = failures.length === 0 ? 0 : 1
