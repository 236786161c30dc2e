/**
 * `npm run simulate:planted`: plants one bug after the other in a copy of the kernel, the gateway or the cluster and demands that
 * the simulator finds each within a thousand seeds; without a bug it must find none in the seeds it needed.
 */
import { spawn } from 'node:child_process'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readOptions } from '../support/options.mjs'
import { settingOf, whole, writeSection } from '../support/reliability-page.mjs'
import { compile, copySources, makeWorkshop } from './compile.mjs'
import { PLANTS } from './plants.mjs'

const USAGE = `usage: npm run simulate:planted [-- options]: bugs planted in a copy of the kernel, which the simulator must find

  --only TEXT  only bugs whose file or name contains TEXT
  --seeds N    within how many seeds (1500)
  --events N   events of each world (600)

Exit 1 when a bug is missed, or the sound kernel is accused. A whole run writes docs/reliability.md.`

const values = readOptions(USAGE, {
  only: { type: 'string' },
  seeds: { type: 'string', default: '1500' },
  events: { type: 'string', default: '600' },
})
const HUNT = fileURLToPath(new URL('hunt.mjs', import.meta.url))
const TIMEOUT_MS = 300_000
const AT_ONCE = 2
/** Nodes are lost and found over seconds: worlds of several live longer. */
const EVENTS_OF_CLUSTERS = '3000'

const startedMs = performance.now()
const folder = makeWorkshop()
copySources(join(folder, 'sound'))

/** A kernel with the bug in it, compiled. */
function plant({ file, find, replace }, name) {
  const sources = join(folder, name)
  cpSync(join(folder, 'sound'), sources, { recursive: true })
  const path = join(sources, 'src/kernel', file)
  const text = readFileSync(path, 'utf8')
  if (text.split(find).length !== 2) throw new Error(`${file} does not hold exactly once: ${find}`)
  writeFileSync(
    path,
    text.replace(find, () => replace),
  )
  compile(sources, join(sources, 'built'))
  return join(sources, 'built')
}

function hunt(built, seeds, world = 'kernel') {
  return new Promise((resolve) => {
    const events = world === 'cluster' ? EVENTS_OF_CLUSTERS : values.events
    const child = spawn(process.execPath, [HUNT, built, String(seeds), events, world], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS)
    let text = ''
    child.stdout.on('data', (part) => {
      text += part
    })
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      if (signal === 'SIGKILL') return resolve({ what: 'the kernel hangs', seed: 'any' })
      resolve(code === 0 ? JSON.parse(text) : { what: 'the kernel crashes', seed: 'any' })
    })
  })
}

const rows = []
const waiting = PLANTS.map((bug, index) => ({ ...bug, index })).filter(
  ({ name, file }) => !values.only || `${file} ${name}`.includes(values.only),
)
async function work() {
  for (let bug = waiting.shift(); bug !== undefined; bug = waiting.shift()) {
    const found = await hunt(plant(bug, `bug-${bug.index}`), values.seeds, bug.world)
    rows.push({ ...bug, ...found })
    const where = found.seed === undefined ? 'MISSED' : `seed ${found.seed}, ${found.events} events`
    process.stderr.write(`${where}\t${bug.name}\n`)
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, work))

rows.sort((a, b) => a.index - b.index)
const missed = rows.filter(({ seed }) => seed === undefined)
compile(join(folder, 'sound'), join(folder, 'sound/built'))

/** The sound one over as many seeds as the last of these bugs needed. */
async function soundOver(world) {
  const seeds = rows.filter((row) => row.world === world).map(({ seed }) => Number(seed))
  const needed = Math.max(1, ...seeds.filter(Number.isFinite))
  const { seed } = await hunt(join(folder, 'sound/built'), needed, world)
  return { needed, seed }
}
const sound = [await soundOver(undefined), await soundOver('cluster'), await soundOver('kept')]
const alarm = sound.find(({ seed }) => seed !== undefined) ?? {}
const needed = sound.map((each) => each.needed).join(', ')

const verdict = alarm.seed === undefined ? 'no violation' : `a violation in seed ${alarm.seed}`
const lines = [
  '| planted bug | in | found by seed | after events | as |',
  '|---|---|---|---|---|',
  ...rows.map(
    ({ name, file, seed, events, what }) =>
      `| ${name} | \`${file.replace('../', '')}\` | ${seed ?? 'not found'} | ${events === undefined ? '' : whole(events)} | ${(what ?? '').split(':')[0]} |`,
  ),
  '',
  `${rows.length - missed.length} of ${rows.length} planted bugs found; the sound kernel over the same ${needed} seeds: ${verdict}.`,
]
console.log(lines.join('\n'))
const isSound = missed.length === 0 && alarm.seed === undefined
if (isSound && values.only === undefined) {
  writeSection(
    'planted',
    [
      '## Planted bugs',
      '',
      settingOf('npm run simulate:planted', performance.now() - startedMs),
      'Does the simulation see anything? Each of these bugs is planted in a copy of the kernel, and the simulator alone must find it.',
      '',
      ...lines,
    ].join('\n'),
  )
}
process.exitCode = isSound ? 0 : 1
