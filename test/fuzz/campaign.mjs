/**
 * `npm run fuzz`: throws made and broken inputs at the framing, the envelope, the configuration and every door, that of the web with
 * heads, bodies and frames.
 *
 * `--seed N` repeats a run, `--count M` is the number of inputs in all (a million unless said), `--only envelope,framing,
 * config,doors,stdio,unix,tcp,web` chooses, `--root FOLDER` fuzzes what was built there, `--corpus FOLDER` keeps the corpus
 * elsewhere. The corpus is replayed first. Exit 1 when something was found; the input is printed, and kept in the corpus.
 * A whole run that found nothing writes its figures to docs/reliability.md when `--write` is given.
 */
import { fileURLToPath } from 'node:url'
import { Random } from '../chaos/stage/random.mjs'
import { readOptions } from '../support/options.mjs'
import { Corpus } from './corpus.mjs'
import { knock } from './doors/knock.mjs'
import { plunge } from './plunge.mjs'
import { Program } from './program.mjs'
import { formatTable, writeFuzzing } from './table.mjs'
import { configTarget } from './targets/config.mjs'
import { envelopeTarget } from './targets/envelope.mjs'
import { framingTarget } from './targets/framing.mjs'
import { knockAtWeb } from './web/knock.mjs'

/** How many inputs of a full run each target gets: a million together. */
const SHARES = {
  envelope: 500_000,
  framing: 400_000,
  config: 50_000,
  stdio: 10_000,
  unix: 10_000,
  tcp: 10_000,
  web: 20_000,
}
const PURE = { envelope: envelopeTarget, framing: framingTarget, config: configTarget }
const DOORS = ['stdio', 'unix', 'tcp']

const USAGE = `usage: npm run fuzz [-- options]: made and broken inputs for the framing, the envelope, the configuration and every door

  --seed N         repeats a run
  --count N        how many inputs in all (a million)
  --only LIST      of ${Object.keys(SHARES).join(', ')}; doors for stdio, unix and tcp
  --root FOLDER    fuzz what was built there
  --corpus FOLDER  where the corpus is kept; it is replayed first
  --write          a whole run that found nothing writes its figures to docs/reliability.md

Exit 1 when something was found; the input is printed, and kept in the corpus.`

const values = readOptions(USAGE, {
  seed: { type: 'string' },
  count: { type: 'string' },
  only: { type: 'string', default: Object.keys(SHARES).join(',') },
  root: { type: 'string', default: fileURLToPath(new URL('../../', import.meta.url)) },
  write: { type: 'boolean', default: false },
  corpus: { type: 'string', default: fileURLToPath(new URL('corpus', import.meta.url)) },
})

function chosen() {
  const names = values.only.split(',').flatMap((name) => (name === 'doors' ? DOORS : [name]))
  const unknown = names.find((name) => !Object.hasOwn(SHARES, name))
  if (unknown === undefined) return names
  console.error(`--only ${unknown}: there is no such target; choose of doors, ${Object.keys(SHARES).join(', ')}`)
  process.exit(2)
}

function wholeNumber(name, otherwise) {
  const number = values[name] === undefined ? otherwise : Number(values[name])
  if (Number.isSafeInteger(number) && number >= 0) return number
  console.error(`--${name} ${values[name]}: give a whole number`)
  process.exit(2)
}

const names = chosen()
const total = names.reduce((sum, name) => sum + SHARES[name], 0)
const seed = wholeNumber('seed', Date.now() % 1_000_000_000)
const scale = wholeNumber('count', total) / total
console.log(`seed ${seed}`)

const tell = (text) => console.log(`${process.stderr.isTTY ? '\r\x1b[K' : ''}${text}`)
const progress = (text) => process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : `${text}\n`)
const program = await Program.copyOf(values.root)
const given = { corpus: new Corpus(values.corpus), tell, progress, program }
const tallies = []
const startMs = performance.now()
try {
  for (const name of names) {
    const random = new Random(seed * 31 + Object.keys(SHARES).indexOf(name))
    const count = Math.ceil(SHARES[name] * scale)
    if (name === 'web') tallies.push(await knockAtWeb(random, count, given))
    else if (DOORS.includes(name)) tallies.push(await knock(name, random, count, given))
    else tallies.push(await plunge(await PURE[name](program), random, count, given))
  }
} finally {
  program.remove()
}
tell(formatTable(tallies))
const findings = tallies.reduce((sum, tally) => sum + tally.findings, 0)
if (findings > 0)
  console.log(
    `${findings} findings; repeat with --seed ${seed}${values.count ? ` --count ${values.count}` : ''} --only ${names}`,
  )
if (findings === 0 && values.write) writeFuzzing(tallies, seed, performance.now() - startMs)
process.exitCode = findings > 0 ? 1 : 0
