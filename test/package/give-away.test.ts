/**
 * The package as somebody gets it: packed from a fresh clone, installed into an empty folder where no script is run, and
 * linked. Needs what the lock file names, from npm's cache or from a registry.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launch } from '../support/bus.ts'
import { Workspace } from '../support/workspace.ts'
import { npm, Scratch } from './scratch.ts'
import { MANIFEST, ROOT } from './shipped.ts'

const TIMEOUT_MS = 180_000
/** The last line is the one mistake that must be found. */
const CONSUMER = `import { startBus, type WorkerNews } from 'stdio-bus'
import { connect } from 'stdio-bus/client'
import { startWorker, WorkerError } from 'stdio-bus/worker'

export async function main(): Promise<void> {
  const bus = await startBus({ config: { pools: [{ id: 'a', agent: 'echo', instances: 2 }] } })
  bus.on('worker', (news: WorkerNews) => console.error(news.what === 'failed' && news.reason))
  const [one, other] = [await bus.connect({ pool: 'a' }), await connect({ unix: '/tmp/bus.sock' })]
  for (const connection of [one, other]) await connection.send('{}')
  startWorker({ add: ({ a }, call) => call.sessionId ?? a, no() { throw new WorkerError(-32000, 'no') } })
}
void startBus({ config: { pools: [{ id: 'a', agent: 'nobody' }] } })
`
const scratch = new Scratch()
let clone: string
let installed: string

beforeAll(() => {
  clone = scratch.clone('clone')
  const [{ filename }] = JSON.parse(npm(clone, ['pack', '--json']))
  const home = scratch.path('home')
  mkdirSync(home)
  writeFileSync(join(home, 'package.json'), '{}')
  npm(home, ['install', '--ignore-scripts', '--omit=dev', join(clone, filename)])
  installed = join(home, 'node_modules')
}, TIMEOUT_MS)
afterAll(() => scratch.remove(), TIMEOUT_MS)

const program = (): string => join(installed, '.bin/stdio-bus')
const run = (...args: string[]) => spawnSync(program(), args, { encoding: 'utf8', cwd: scratch.folder })

describe('npm pack on a fresh clone, installed without scripts', () => {
  test('is the program', () => {
    expect(run('--version')).toMatchObject({ stdout: `${MANIFEST.version}\n`, status: 0 })
    expect(run('demo')).toMatchObject({ stdout: expect.stringContaining('What next'), status: 0 })
  })

  test('holds no test, no source and nothing of the machine it was made on', () => {
    const files = readdirSync(join(installed, 'stdio-bus'), { recursive: true }).map(String)
    expect(files.filter((name) => /\.test\.|(^|\/)src\/|tsbuildinfo/.test(name))).toEqual([])
    const text = files
      .filter((name) => /\.(js|d\.ts|json)$/.test(name))
      .map((name) => join(installed, 'stdio-bus', name))
    expect(text.filter((path) => readFileSync(path, 'utf8').includes(clone))).toEqual([])
  })

  test('a program of others compiles against its types, without any package beside them', () => {
    writeFileSync(scratch.path('home', 'consumer.ts'), CONSUMER)
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    const flags = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node']
    const args = [tsc, ...flags, '--typeRoots', join(ROOT, 'node_modules/@types'), 'consumer.ts']
    const { stdout } = spawnSync(process.execPath, args, { cwd: scratch.path('home'), encoding: 'utf8' })
    expect(stdout).toContain('consumer.ts(12,')
    expect(stdout.trim().split('\n')).toHaveLength(1)
  })

  test('publint finds nothing to say', async () => {
    const { messages, pkg } = await publint({ pkgDir: join(installed, 'stdio-bus'), pack: false })
    expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([])
  })

  test('its size and the number of its packages, without the SQLite that only old runtimes need', () => {
    const listed = npm(scratch.path('home'), ['ls', '--all', '--parseable']).split('\n').slice(1).filter(Boolean)
    const needed = listed.filter((path) => !/@photostructure|node-addon-api|node-gyp-build/.test(path))
    const megabytes = needed.reduce((sum, path) => sum + bytesOf(path), 0) / 1e6
    expect(needed.length).toBeLessThanOrEqual(60)
    expect(megabytes).toBeLessThanOrEqual(30)
    expect(megabytes).toBeGreaterThan(1)
  })
})

test('without the optional SQLite the bus runs, and says what is missing where the runtime has none', async () => {
  rmSync(join(installed, '@photostructure'), { recursive: true })
  const workspace = new Workspace()
  process.env['STDIO_BUS_COMMAND'] = program()
  try {
    const config = { pools: [{ id: 'echo', agent: 'echo', trace: true }], aio: {} }
    const bus = await launch({ config }, workspace)
    const { traces } = (await bus.status()) as unknown as { traces: { state: string; reason?: string } }
    const hasOwn = process.getBuiltinModule('node:module').isBuiltin('node:sqlite')
    expect(traces.state).toBe(hasOwn ? 'ok' : 'failed')
    if (!hasOwn) expect(bus.log.text).toContain('npm install @photostructure/sqlite')
    await bus.stop()
  } finally {
    delete process.env['STDIO_BUS_COMMAND']
    await workspace.remove()
  }
})

test(
  'npm link on a fresh clone is the program too',
  () => {
    // What packing has built is taken away again.
    rmSync(join(clone, 'dist'), { recursive: true })
    const prefix = scratch.path('prefix')
    npm(clone, ['link'], { PREFIX: prefix })
    const { stdout } = spawnSync(join(prefix, 'bin/stdio-bus'), ['--version'], { encoding: 'utf8' })
    expect(stdout).toBe(`${MANIFEST.version}\n`)
    expect(existsSync(join(prefix, 'bin/openai-agent'))).toBe(true)
    expect(readFileSync(join(prefix, 'share/man/man1/stdio-bus.1'), 'utf8')).toContain('.TH')
  },
  TIMEOUT_MS,
)

function bytesOf(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}
