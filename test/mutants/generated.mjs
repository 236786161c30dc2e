/**
 * `npm run mutants -- --generated`: breaks the kernel by operators and tells which share is noticed.
 *
 * A seeded sample of all mutants (`operators.mjs`); each runs against a short simulation, then against the kernel's unit
 * tests, then against a longer simulation, until one notices. Whoever survives is compiled with types: what does not
 * compile, or is known to change nothing (`equivalent.mjs`), does not count. Nothing of the original tree is touched.
 */
import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'rolldown/utils'
import { compile, copySources, makeWorkshop } from '../simulation/compile.mjs'
import { settingOf, tableOf, whole, writeSection } from '../support/reliability-page.mjs'
import { EQUIVALENT } from './equivalent.mjs'
import { mutationsIn } from './operators.mjs'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const KERNEL = 'src/kernel'
const HUNT = fileURLToPath(new URL('../simulation/hunt.mjs', import.meta.url))
/** The tests that drive the kernel in their own process. */
const UNIT_TESTS = [
  'src/kernel',
  'test/conformance/long-clocks.test.ts',
  ...['bounds', 'coming-back', 'keeping', 'several', 'seam.property'].map((name) => `test/sessions/${name}.test.ts`),
]
/** The kinds of worlds that are looked through (`hunt.mjs`). */
const WORLDS = ['kernel', 'kept']
const SHORT = { seeds: 20, timeoutMs: 60_000 }
const LONG = { seeds: 150, timeoutMs: 240_000 }
const EVENTS = 600
const TESTS_TIMEOUT_MS = 120_000
const BAR = 0.9
const HANGS = 'it does not end'

/** Runs the sample; gives the exit code. */
export async function runGenerated({ sample, seed, only, jobs }) {
  const startedMs = performance.now()
  const folder = realpathSync(makeWorkshop())
  copySources(join(folder, 'sound'))
  compile(join(folder, 'sound'), join(folder, 'sound/built'))
  const all = everyMutation(join(folder, 'sound', KERNEL))
  const waiting = chooseFrom(all, sample, seed, only)
  console.log(`${waiting.length} of ${all.length} mutants, seed ${seed}`)
  const rows = []
  const benches = Array.from({ length: jobs }, (_, index) => makeBench(folder, index))
  await requireSoundness(benches[0], folder)
  const total = waiting.length
  await Promise.all(
    benches.map(async (bench) => {
      for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
        const verdict = await judge(mutant, bench)
        rows.push({ ...mutant, ...verdict })
        console.log(
          `${rows.length}/${total}  ${(verdict.isLate ? 'does not end' : verdict.verdict).padEnd(17)}  ${describe(mutant)}`,
        )
      }
    }),
  )
  const command = `npm run mutants -- --generated --sample ${sample} --seed ${seed}`
  return report(rows, all.length, settingOf(command, performance.now() - startedMs), only === undefined)
}

function everyMutation(kernel) {
  return readdirSync(kernel, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .sort()
    .flatMap((name) => {
      const text = readFileSync(join(kernel, name), 'utf8')
      return mutationsIn(text, name).map((mutation) => ({
        ...mutation,
        was: text.slice(mutation.start, mutation.end),
        source: text.split('\n')[mutation.line - 1].trim(),
      }))
    })
}

function chooseFrom(all, sample, seed, only) {
  const mutants =
    only === undefined ? [...all] : all.filter((mutant) => `${mutant.file}:${mutant.line}`.startsWith(only))
  const chance = mulberry(seed)
  for (let i = mutants.length - 1; i > 0; i--) {
    const j = Math.floor(chance() * (i + 1))
    const mutant = mutants[i]
    mutants[i] = mutants[j]
    mutants[j] = mutant
  }
  return mutants.slice(0, sample)
}

function mulberry(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A compiled tree for the simulation and a tree of sources for the tests, in which one file at a time is broken. */
function makeBench(folder, index) {
  const built = join(folder, `built-${index}`)
  const tree = join(folder, `tree-${index}`)
  cpSync(join(folder, 'sound/built'), built, { recursive: true })
  mkdirSync(tree)
  for (const name of ['src', 'test', 'package.json', 'tsconfig.json', 'vitest.config.ts'])
    cpSync(join(ROOT, name), join(tree, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  return { built, tree, sound: join(folder, 'sound') }
}

async function requireSoundness(bench, folder) {
  const hunted = await hunt(join(folder, 'sound/built'), LONG)
  if (hunted !== undefined) throw new Error(`the sound kernel is accused: ${hunted}`)
  const failed = await runTests(bench)
  if (failed !== undefined) throw new Error(`the tests fail on the sound kernel: ${failed}`)
}

async function judge(mutant, bench) {
  const path = join(bench.tree, KERNEL, mutant.file)
  const compiled = join(bench.built, KERNEL, mutant.file.replace(/\.ts$/, '.js'))
  const text = readFileSync(join(bench.sound, KERNEL, mutant.file), 'utf8')
  const before = readFileSync(compiled, 'utf8')
  const broken = text.slice(0, mutant.start) + mutant.replacement + text.slice(mutant.end)
  try {
    const code = strip(mutant.file, broken)
    if (code === undefined) return { verdict: 'does not compile' }
    writeFileSync(compiled, code)
    writeFileSync(path, broken)
    const short = await hunt(bench.built, SHORT)
    if (short !== undefined) return noticed('simulation', short)
    const failed = await runTests(bench)
    if (failed !== undefined) return noticed('tests', failed)
    if (isKnownEquivalent(mutant)) return { verdict: 'equivalent' }
    const long = await hunt(bench.built, LONG)
    if (long !== undefined) return noticed('simulation', long)
    return { verdict: (await hasSoundTypes(bench)) ? 'SURVIVED' : 'does not compile' }
  } finally {
    writeFileSync(compiled, before)
    writeFileSync(path, text)
  }
}

/** What does not end may hang, or the machine may be busy: that is counted apart. */
function noticed(by, what) {
  return { verdict: 'noticed', by, isLate: what === HANGS }
}

function strip(file, text) {
  const { code, errors } = transformSync(file, text, { lang: 'ts', typescript: { onlyRemoveTypeImports: true } })
  return errors.length > 0 ? undefined : code.replace(/(from\s+["']\.[^"']*)\.ts(["'])/g, '$1.js$2')
}

/** What the simulator found; undefined: nothing. */
async function hunt(built, extent) {
  for (const world of WORLDS) {
    const found = await huntIn(world, built, extent)
    if (found !== undefined) return found
  }
  return undefined
}

async function huntIn(world, built, { seeds, timeoutMs }) {
  const { code, output, isLate } = await run([HUNT, built, String(seeds), String(EVENTS), world], ROOT, timeoutMs)
  if (isLate) return HANGS
  return code === 0 ? JSON.parse(output).what : 'the kernel crashes'
}

async function runTests({ tree }) {
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    ...UNIT_TESTS,
    '--bail=1',
    '--pool=threads',
    '--no-isolate',
    '--no-file-parallelism',
  ]
  const { code, output, isLate } = await run(args, tree, TESTS_TIMEOUT_MS)
  if (isLate) return HANGS
  return code === 0 ? undefined : output.slice(-400)
}

async function hasSoundTypes({ tree }) {
  return (await run(['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json'], tree, TESTS_TIMEOUT_MS)).code === 0
}

function run(args, cwd, timeoutMs) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { cwd, stdio: ['ignore', 'pipe', 'ignore'] })
    let output = ''
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      child.kill('SIGKILL')
    }, timeoutMs)
    child.stdout.on('data', (part) => {
      output += part
    })
    child.on('close', (code) => {
      clearTimeout(timer)
      resolve({ code, output, isLate })
    })
  })
}

function isKnownEquivalent({ file, source, replacement }) {
  return EQUIVALENT.some((each) => each.file === file && each.line === source && each.becomes === replacement.trim())
}

const describe = ({ file, line, operator, source, was, replacement }) =>
  `${file}:${line}  ${operator}: ${JSON.stringify(was.trim().slice(0, 60))} -> ${JSON.stringify(replacement.trim().slice(0, 60))}  in ${source.slice(0, 110)}`

function report(rows, allCount, setting, isWhole) {
  const of = (verdict) => rows.filter((row) => row.verdict === verdict)
  const survivors = of('SURVIVED').sort((a, b) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1))
  const noticed = of('noticed')
  const counted = noticed.length + survivors.length
  const share = counted === 0 ? 1 : noticed.length / counted
  const operators = [...new Set(rows.map(({ operator }) => operator))].sort().map((operator) => ({
    operator,
    rows: rows.filter((row) => row.operator === operator),
  }))
  const count = (of, verdict) => String(of.filter((row) => row.verdict === verdict).length)
  const lines = [
    '## Generated mutants',
    '',
    setting,
    `${whole(allCount)} small breakages of the kernel are possible; of a sample, this many are noticed by its unit tests and a simulation of at most ${LONG.seeds} seeds.`,
    '',
    tableOf(
      [
        ['operator', ({ operator }) => operator],
        ['noticed', ({ rows: of }) => count(of, 'noticed')],
        ['survived', ({ rows: of }) => count(of, 'SURVIVED')],
        ['changes nothing', ({ rows: of }) => count(of, 'equivalent')],
        ['does not compile', ({ rows: of }) => count(of, 'does not compile')],
      ],
      operators,
    ),
    '',
    `${noticed.length} of ${counted} are noticed: ${(100 * share).toFixed(1)} % (${noticed.filter(({ by }) => by === 'simulation').length} by the simulation first, ${noticed.filter(({ isLate }) => isLate).length} because it did not end in time).`,
    ...(survivors.length === 0 ? [] : ['', 'Survivors:', '']),
    ...survivors.map(({ file, line, operator, source }) => `- \`${file}:${line}\` ${operator}: \`${source}\``),
  ]
  console.log(`\n${lines.join('\n')}`)
  if (isWhole && share >= BAR) writeSection('mutants', lines.join('\n'))
  return share >= BAR ? 0 : 1
}
