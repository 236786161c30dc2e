/**
 * `npm run fuzz`: more than a million inputs to the envelope reader, the line splitter, the configuration and every door of
 * the real program. A failure is shortened, kept in the corpus and printed; the figures go to docs/reliability.md.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { writeSection } from '../simulation/report.mjs'
import { fuzzDoor } from './doors.mjs'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const CORPUS = fileURLToPath(new URL('corpus/', import.meta.url))

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    /** A part of the usual number of inputs. */
    share: { type: 'string', default: '1' },
    only: { type: 'string' },
  },
})
const COUNTS = { envelope: 500_000, framing: 400_000, config: 70_000, unix: 12_000, tcp: 12_000, stdio: 12_000 }
const seed = values.seed === undefined ? Date.now() % 1_000_000_000 : Number(values.seed)
const countOf = (name) => Math.ceil(COUNTS[name] * Number(values.share))
const isWanted = (name) => values.only === undefined || values.only === name

/** Where packages can be found from; Node runs no TypeScript here. */
const built = `${ROOT}.tmp/fuzz-${process.pid}`
process.on('exit', () => rmSync(built, { recursive: true, force: true }))

function compile() {
  mkdirSync(built, { recursive: true })
  const options = {
    ...{ target: 'ES2022', lib: ['ES2023'], module: 'NodeNext', moduleResolution: 'NodeNext', types: ['node'] },
    ...{ noCheck: true, isolatedModules: true, verbatimModuleSyntax: true, skipLibCheck: true },
    ...{ allowImportingTsExtensions: true, rewriteRelativeImportExtensions: true, rootDir: ROOT, outDir: built },
  }
  const files = ['targets', 'corpus'].map((name) => `${ROOT}test/fuzz/${name}.ts`)
  writeFileSync(`${built}/tsconfig.json`, JSON.stringify({ compilerOptions: options, files }))
  for (const args of [
    [`${ROOT}scripts/build.mjs`],
    [`${ROOT}node_modules/typescript/bin/tsc`, '-p', `${built}/tsconfig.json`],
  ]) {
    const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', cwd: ROOT })
    if (status !== 0) throw new Error(`${args[0]} ended with ${status}`)
  }
}

compile()
const load = (path) => import(pathToFileURL(`${built}/test/${path}`).href)
const { fuzz, TARGETS } = await load('fuzz/targets.js')
const { readCorpus } = await load('fuzz/corpus.js')
const { Chance } = await load('simulation/chance.js')
const { drawMessage } = await load('fuzz/grammar.js')
const { judge } = await load('fuzz/reference.js')

console.log(`seed ${seed}`)
const rows = []
let failures = 0

function note(name, inputs, startedMs, failure) {
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1)
  rows.push({ name, inputs, failure })
  if (failure !== undefined) failures++
  console.log(`${name}: ${inputs} inputs in ${seconds} s: ${failure ?? 'no failure'}`)
}

for (const target of TARGETS.filter(({ name }) => isWanted(name))) {
  const startedMs = performance.now()
  const kept = readCorpus(target.name, `${CORPUS}${target.name}/`)
  const failure = fuzz(target, seed, countOf(target.name), kept)
  if (failure !== undefined) {
    const file = `${CORPUS}${target.name}/seed-${seed}-${failure.number}`
    writeFileSync(file, failure.input, 'latin1')
    console.log(`kept as ${file.slice(ROOT.length)}: ${JSON.stringify(failure.input)}`)
  }
  note(target.name, kept.length + countOf(target.name), startedMs, failure?.what)
}

for (const door of ['unix', 'tcp', 'stdio'].filter(isWanted)) {
  const startedMs = performance.now()
  const failed = await fuzzDoor(door, { draw: drawMessage, judge, Chance }, seed, countOf(door)).catch((error) => error)
  const isSound = typeof failed === 'number'
  note(`the ${door} door`, isSound ? failed : 0, startedMs, isSound ? undefined : failed.message)
}

const total = rows.reduce((sum, { inputs }) => sum + inputs, 0)
const lines = [
  '## Fuzzing',
  '',
  'Inputs made by grammar and damaged at random, judged by a slow and simple reference; `npm run fuzz` repeats it with a fresh',
  'seed. What fails is shortened and kept in `test/fuzz/corpus/`.',
  '',
  '| what | inputs | failures |',
  '|---|---|---|',
  ...rows.map(
    ({ name, inputs, failure }) => `| ${name} | ${inputs.toLocaleString('en-US')} | ${failure === undefined ? 0 : 1} |`,
  ),
  `| together | ${total.toLocaleString('en-US')} | ${failures} |`,
]
console.log(lines.slice(5).join('\n'))
if (failures === 0 && values.only === undefined && Number(values.share) >= 1) writeSection('fuzzing', lines.join('\n'))
process.exitCode = failures === 0 ? 0 : 1
