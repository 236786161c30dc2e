/**
 * Compiles the kernel and the simulation to a folder outside the repository, without checking types: Node runs no
 * TypeScript here, and a planted bug must not touch the sources.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
const FOLDERS = ['src/wire', 'src/kernel', 'src/dialects', 'src/aio', 'src/cluster', 'test/simulation']
/** What joins the gateway, and other nodes, to the kernel. */
const FILES = [
  'bus-clock',
  'gateway-port',
  'imports',
  'internal-client',
  'odd-ids',
  'open-doors',
  'port-exchange',
  'stream-client',
  'stream-worker',
  'written-lines',
].map((name) => `src/cli/daemon/${name}.ts`)
FILES.push('src/cli/version.ts')

/** A folder for one run; it is gone when the process is. */
export function makeWorkshop() {
  const folder = mkdtempSync(join(tmpdir(), 'stdio-bus-simulate-'))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Copies the sources to `folder`. */
export function copySources(folder) {
  for (const name of FOLDERS) {
    mkdirSync(join(folder, name), { recursive: true })
    cpSync(join(ROOT, name), join(folder, name), {
      recursive: true,
      filter: (path) => !path.endsWith('.test.ts') && !path.endsWith('.mjs'),
    })
  }
  for (const name of FILES) cpSync(join(ROOT, name), join(folder, name))
}

/** Compiles the sources in `from` into `to`. */
export function compile(from, to) {
  const options = {
    target: 'ES2022',
    lib: ['ES2023'],
    module: 'NodeNext',
    moduleResolution: 'NodeNext',
    types: [],
    noCheck: true,
    isolatedModules: true,
    verbatimModuleSyntax: true,
    allowImportingTsExtensions: true,
    rewriteRelativeImportExtensions: true,
    skipLibCheck: true,
    rootDir: from,
    outDir: to,
  }
  writeFileSync(join(from, 'package.json'), '{"type":"module"}')
  writeFileSync(
    join(from, 'tsconfig.json'),
    JSON.stringify({ compilerOptions: options, include: [...FOLDERS, ...FILES] }),
  )
  const { status } = spawnSync(process.execPath, [TSC, '-p', join(from, 'tsconfig.json')], { stdio: 'inherit' })
  if (status !== 0) throw new Error(`tsc ended with ${status}`)
  mkdirSync(to, { recursive: true })
  writeFileSync(join(to, 'package.json'), '{"type":"module"}')
}
