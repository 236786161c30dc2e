/**
 * `npm run conformance`: the suite of the protocol's authors, @modelcontextprotocol/conformance, against a worker behind the real
 * daemon: every scenario that a revision requires, through each kind of pool. It needs the npm registry once (the suite, and the
 * newer Node it needs, stay in a cache) and a minute, so it is no part of `npm test`.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { readOptions } from '../support/options.mjs'
import { tableOf } from '../support/reliability-page.mjs'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const CACHE = join(ROOT, 'node_modules/.cache/conformance')
const PAGE = join(ROOT, 'docs/conformance.md')
const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url))
const SUITE = '@modelcontextprotocol/conformance'
/** The suite needs Node 22: an older one brings it as a package. */
const NODE = Number(process.versions.node.split('.')[0]) >= 22 ? undefined : `node-${process.platform}-${process.arch}`
const VERSIONS = { [SUITE]: '0.2.0-alpha.12', ...(NODE === undefined ? {} : { [NODE]: '22.23.3' }) }

/** What is run: a pool, and the revision whose required scenarios must all pass there. */
const RUNS = [
  {
    pool: 'isolated',
    revision: '2025-11-25',
    how: 'a process for each session',
    more: { sharing: 'isolated', instances: 0 },
  },
  {
    pool: 'shared',
    revision: '2025-11-25',
    how: 'one process for all sessions',
    more: { era: 'legacy', instances: 1 },
  },
  {
    pool: 'stateless',
    revision: '2026-07-28',
    how: 'two processes, no sessions',
    more: { era: 'modern', instances: 2 },
  },
]

const { keep } = readOptions(
  `usage: npm run conformance [-- --keep]: the official MCP conformance suite through the daemon

  --keep  leave docs/conformance.md as it is

Exit 1 when a scenario that a revision requires fails. STDIO_BUS_MAIN names another build.`,
  { keep: { type: 'boolean', default: false } },
)

/** The suite and its Node, from the cache or from the registry; exact versions, so that a figure can be had again. */
function install() {
  const wanted = JSON.stringify({ private: true, dependencies: VERSIONS }, null, 2)
  const manifest = join(CACHE, 'package.json')
  const node = NODE === undefined ? process.execPath : join(CACHE, 'node_modules', NODE, 'bin/node')
  const isThere =
    existsSync(node) &&
    existsSync(manifest) &&
    existsSync(join(CACHE, 'node_modules', SUITE)) &&
    readFileSync(manifest, 'utf8') === wanted
  if (!isThere) {
    console.log(`installing ${SUITE} ${VERSIONS[SUITE]} ...`)
    rmSync(CACHE, { recursive: true, force: true })
    mkdirSync(CACHE, { recursive: true })
    writeFileSync(manifest, wanted)
    const { status } = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd: CACHE,
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    if (status !== 0) {
      rmSync(manifest)
      throw new Error('the suite could not be installed: is the npm registry within reach?')
    }
  }
  return { node, suite: join(CACHE, 'node_modules', SUITE) }
}

async function startBus(folder) {
  const pools = RUNS.map(({ pool, more }) => {
    const cwd = join(folder, pool)
    mkdirSync(cwd)
    return { id: pool, command: process.execPath, args: [WORKER], cwd, protocol: 'mcp', ...more }
  })
  writeFileSync(join(folder, 'bus.json'), JSON.stringify({ pools, listen: { http: '127.0.0.1:0' } }))
  const main = process.env.STDIO_BUS_MAIN ?? join(ROOT, 'dist/cli/main.js')
  const args = [main, '--config', 'bus.json', '--control', join(folder, 'control.sock')]
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  const log = []
  for await (const line of createInterface({ input: child.stderr })) {
    log.push(line)
    const { msg, addresses } = JSON.parse(line)
    if (msg !== 'ready') continue
    child.stderr.resume()
    return { url: addresses[0], stop: () => stop(child) }
  }
  throw new Error(`the bus did not start:\n${log.join('\n')}`)
}

function stop(child) {
  return new Promise((resolve) => {
    child.once('close', resolve)
    child.kill('SIGTERM')
  })
}

/** The names that a revision requires of servers. */
function requiredOf(suite, revision) {
  const text = readFileSync(join(suite, 'requirements', `${revision}.yaml`), 'utf8')
  const section = /^server:\n((?: +- .*\n| *#.*\n|\n)*)/m.exec(text)[1]
  return [...section.matchAll(/^ +- ([\w./-]+)/gm)].map(([, name]) => name)
}

async function runScenarios({ node, suite }, url, { pool, revision }, folder) {
  const output = join(folder, `results-${pool}`)
  const args = [join(suite, 'dist/index.js'), 'server', '--url', `${url}/mcp/${pool}`, '--requirements', revision]
  const child = spawn(node, [...args, '-o', output], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  await new Promise((resolve) => child.once('close', resolve))
  const results = readdirSync(output)
  return requiredOf(suite, revision).map((name) => {
    const found = results.find((result) => result.startsWith(`server-${name}-2`))
    const checks = found === undefined ? [] : JSON.parse(readFileSync(join(output, found, 'checks.json'), 'utf8'))
    const bad = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
    const problems = bad.map(({ id, status, errorMessage }) => `${status} ${id}: ${errorMessage}`)
    const isPassed = found !== undefined && !bad.some(({ status }) => status === 'FAILURE')
    return { name, checks: checks.length, isPassed, problems: found === undefined ? ['was not run'] : problems }
  })
}

function pageOf(runs) {
  const summary = tableOf(
    [
      ['revision', ({ revision }) => revision],
      ['pool', ({ pool, how }) => `${pool}: ${how}`],
      [
        'scenarios passed',
        ({ results }) => `${results.filter(({ isPassed }) => isPassed).length} of ${results.length}`,
      ],
      ['checks', ({ results }) => String(results.reduce((sum, { checks }) => sum + checks, 0))],
      [
        'warnings',
        ({ results }) =>
          String(results.flatMap(({ problems }) => problems).filter((text) => text.startsWith('WARNING')).length),
      ],
    ],
    runs,
  )
  const names = [...new Set(runs.flatMap(({ results }) => results.map(({ name }) => name)))]
  const cell = ({ results }, name) => {
    const result = results.find((each) => each.name === name)
    return result === undefined ? '' : result.isPassed ? 'passed' : '**failed**'
  }
  const each = tableOf(
    [['scenario', (name) => name], ...runs.map((run) => [`${run.revision} ${run.pool}`, (name) => cell(run, name)])],
    names,
  )
  return `# Conformance

\`npm run conformance\` runs the suite of the protocol's authors, \`${SUITE}\` ${VERSIONS[SUITE]}, through the bus: every scenario that a revision requires of servers. The suite speaks HTTP only; behind the bus is a server over stdio
that was written for it (\`test/official-suite/worker.mjs\`). This page is written by the run.

${summary}

Scenarios that the suite runs but does not score (extensions, and those that came after a revision) are not in the table. \`Mcp-Param-*\` headers are not judged by the bus: only the server knows what it has annotated.

${each}
`
}

const tools = install()
const folder = mkdtempSync(join(tmpdir(), 'stdio-bus-conformance-'))
const bus = await startBus(folder)
const runs = []
try {
  for (const run of RUNS) {
    const results = await runScenarios(tools, bus.url, run, folder)
    runs.push({ ...run, results })
    const passed = results.filter(({ isPassed }) => isPassed).length
    console.log(`${run.revision} ${run.pool.padEnd(9)} ${passed} of ${results.length}`)
    for (const { name, problems } of results) for (const problem of problems) console.log(`  ${name}: ${problem}`)
  }
} finally {
  await bus.stop()
  rmSync(folder, { recursive: true, force: true })
}
if (!keep) writeFileSync(PAGE, pageOf(runs))
process.exitCode = runs.every(({ results }) => results.every(({ isPassed }) => isPassed)) ? 0 : 1
