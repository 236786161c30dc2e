/** `npm run simulate:cluster`: several kernels and a broker that misbehaves (contract 14.14), seed after seed. */
import { pathToFileURL } from 'node:url'
import { readOptions } from '../support/options.mjs'
import { compile, copySources, makeWorkshop } from './compile.mjs'

const USAGE = `usage: npm run simulate:cluster [-- options]: clusters in simulated worlds, whose broker delays, drops, repeats, cuts and freezes

  --seed N      the first seed; left out: a fresh one, which is printed
  --seeds N     how many seeds (1 with --seed, else 100)
  --events N    events of each world (3000)
  --minutes N   go on for so long, whatever --seeds says

Exit 1 on a broken promise, with the command that repeats it.`

const values = readOptions(USAGE, {
  seed: { type: 'string' },
  seeds: { type: 'string' },
  events: { type: 'string', default: '3000' },
  minutes: { type: 'string', default: '0' },
})
const TELL_EVERY_MS = 10_000

const folder = makeWorkshop()
copySources(`${folder}/sources`)
compile(`${folder}/sources`, `${folder}/built`)
const { simulateCluster } = await import(pathToFileURL(`${folder}/built/test/simulation/cluster-world.js`).href)

const first = values.seed === undefined ? Date.now() % 1_000_000_000 : Number(values.seed)
const count = Number(values.seeds ?? (values.seed === undefined ? 100 : 1))
const untilMs = performance.now() + Number(values.minutes) * 60_000
const events = Number(values.events)
if (values.seed === undefined) console.log(`fresh seeds from ${first} on`)

const startedMs = performance.now()
const sum = { seeds: 0, events: 0, answered: 0, lost: 0 }
const reasons = new Map()
let broken
let toldMs = startedMs
const isOver = () => (Number(values.minutes) > 0 ? performance.now() > untilMs : sum.seeds >= count)
const line = () => {
  const seconds = (performance.now() - startedMs) / 1_000
  const rate = Math.round(sum.events / Math.max(seconds, 0.001))
  return `${sum.seeds} seeds, ${sum.events} events, ${sum.answered} answers, ${sum.lost} nodes lost in ${seconds.toFixed(1)} s (${rate} events/s): ${broken === undefined ? 'none broken' : 'BROKEN'}`
}

for (let seed = first; broken === undefined && !isOver(); seed++) {
  const outcome = simulateCluster({ seed, events })
  sum.seeds++
  for (const key of ['events', 'answered', 'lost']) sum[key] += outcome[key]
  for (const [reason, number] of outcome.reasons) reasons.set(reason, (reasons.get(reason) ?? 0) + number)
  if (outcome.violation !== undefined) broken = { seed, violation: outcome.violation }
  if (performance.now() - toldMs < TELL_EVERY_MS) continue
  toldMs = performance.now()
  process.stderr.write(`${line()}\n`)
}
console.log(line())
console.log([...reasons].map(([reason, number]) => `${reason} ${number}`).join(', '))
if (broken !== undefined) {
  console.log(`seed ${broken.seed}: ${broken.violation.message}`)
  if (broken.violation.cause instanceof Error) console.log(broken.violation.cause.stack)
  console.log(`to repeat it: npm run simulate:cluster -- --seed ${broken.seed} --events ${events}`)
  process.exitCode = 1
}
