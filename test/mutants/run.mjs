/**
 * `npm run mutants`: breaks the bus in one line at a time and shows that the conformance suite notices.
 *
 * It works in a copy of the tree in a temporary folder and never touches the original. First the named tests must pass on
 * the unbroken copy; then each mutant is built and its tests are run, and must fail. Exit 1 if a mutant survives, does not
 * compile, or is stale. `--only 3,17` runs some of them, `--clause 7.2` those of a clause.
 */
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readOptions } from '../support/options.mjs'
import { MUTANTS } from './table.mjs'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const LEFT_OUT = new Set(['node_modules', 'dist', '.git'])
const TEST_TIMEOUT_MS = 240_000

const USAGE = `usage: npm run mutants [-- options]: breaks the bus in one line at a time and shows that the suite notices

  --only LIST   only the mutants of these numbers, such as 3,17
  --clause N    only those of this clause, such as 7.2

  --generated   instead: a sample of all small breakages of the kernel, against its unit tests and a simulation
  --sample N    how many of them (120)
  --seed N      which (1)
  --at PLACE    only those at this place, such as owed.ts or owed.ts:170
  --jobs N      how many at once (2)

Exit 1 if a mutant survives, does not compile, or is stale; of the generated ones, if fewer than 90 % are noticed. A sample
of the whole kernel writes docs/reliability.md.`

const values = readOptions(USAGE, {
  only: { type: 'string' },
  clause: { type: 'string' },
  generated: { type: 'boolean', default: false },
  sample: { type: 'string', default: '120' },
  seed: { type: 'string', default: '1' },
  at: { type: 'string' },
  jobs: { type: 'string', default: '2' },
})
const copy = realpathSync(mkdtempSync(join(tmpdir(), 'sb-mutants-')))

function makeCopy() {
  cpSync(ROOT, copy, { recursive: true, filter: (path) => !LEFT_OUT.has(basename(path)) })
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
}

function runNode(args) {
  const env = { ...process.env, STDIO_BUS_COMMAND: '' }
  return spawnSync(process.execPath, args, {
    cwd: copy,
    env,
    encoding: 'utf8',
    timeout: TEST_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  })
}

function build() {
  return runNode(['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'])
}

/** Runs the tests of these files whose titles begin with one of the clauses; tells which failed. */
function runTests(files, clauses, bail) {
  const report = join(copy, 'report.json')
  rmSync(report, { force: true })
  const pattern = `(^| )(${clauses.map((clause) => clause.replaceAll('.', '\\.')).join('|')}) `
  const paths = files.map((file) => `test/conformance/${file}.test.ts`)
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    ...paths,
    '-t',
    pattern,
    '--reporter=json',
    `--outputFile=${report}`,
  ]
  const done = runNode(bail ? [...args, '--bail=1'] : args)
  if (!existsSync(report)) return { ran: 0, failed: [], hung: done.signal !== null, output: done.stdout + done.stderr }
  const results = JSON.parse(readFileSync(report, 'utf8')).testResults.flatMap((file) => file.assertionResults)
  const failed = results.filter((each) => each.status === 'failed').map((each) => each.title)
  return { ran: results.filter((each) => each.status !== 'skipped').length, failed, hung: false, output: '' }
}

function judge(mutant) {
  const path = join(copy, 'src', mutant.file)
  const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
  if (text.split(mutant.find).length !== 2) return { verdict: 'stale', by: `${mutant.file}: not found exactly once` }
  writeFileSync(
    path,
    text.replace(mutant.find, () => mutant.replace),
  )
  try {
    const built = build()
    if (built.status !== 0) return { verdict: 'does not compile', by: built.stdout.split('\n')[0] }
    const { failed, hung } = runTests(mutant.tests, [mutant.clause], true)
    if (failed.length > 0) return { verdict: 'noticed', by: failed[0] }
    return hung ? { verdict: 'noticed', by: 'the tests did not end' } : { verdict: 'SURVIVED', by: '' }
  } finally {
    writeFileSync(path, text)
  }
}

function chosen() {
  const numbered = MUTANTS.map((mutant, n) => ({ ...mutant, number: n + 1 }))
  if (values.only !== undefined) {
    const numbers = new Set(values.only.split(',').map(Number))
    return numbered.filter(({ number }) => numbers.has(number))
  }
  return values.clause === undefined ? numbered : numbered.filter(({ clause }) => clause === values.clause)
}

function requireSoundness(mutants) {
  const built = build()
  if (built.status !== 0) throw new Error(`the unbroken tree does not compile:\n${built.stdout}`)
  const files = [...new Set(mutants.flatMap(({ tests }) => tests))]
  const { ran, failed, output } = runTests(files, [...new Set(mutants.map(({ clause }) => clause))], false)
  if (ran === 0) throw new Error(`no test ran on the unbroken tree:\n${output}`)
  if (failed.length > 0) throw new Error(`these tests fail on the unbroken tree already:\n  ${failed.join('\n  ')}`)
  console.log(`${ran} tests pass on the unbroken tree; ${mutants.length} mutants follow`)
}

function main() {
  const mutants = chosen()
  makeCopy()
  requireSoundness(mutants)
  const rows = mutants.map((mutant) => {
    const { verdict, by } = judge(mutant)
    console.log(
      `${String(mutant.number).padStart(2)}  ${mutant.clause.padEnd(5)}  ${verdict.padEnd(8)}  ${mutant.breaks}${by && `  <- ${by}`}`,
    )
    return { ...mutant, verdict }
  })
  const escaped = rows.filter(({ verdict }) => verdict !== 'noticed')
  console.log(`\n${rows.length - escaped.length} of ${rows.length} mutants were noticed`)
  for (const { number, verdict, file } of escaped) console.log(`  ${number}: ${verdict} (${file})`)
  return escaped.length === 0 ? 0 : 1
}

async function mainGenerated() {
  const { runGenerated } = await import('./generated.mjs')
  return runGenerated({
    sample: Number(values.sample),
    seed: Number(values.seed),
    only: values.at,
    jobs: Number(values.jobs),
  })
}

try {
  process.exitCode = values.generated ? await mainGenerated() : main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
} finally {
  rmSync(copy, { recursive: true, force: true })
}
