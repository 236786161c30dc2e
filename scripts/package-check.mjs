/**
 * `npm run package:check`: packs the package and has its exports looked at by publint and by attw ("are the types wrong").
 *
 * attw brings a compiler of its own and is not installed with the rest: npm fetches it for this run.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ATTW = '@arethetypeswrong/cli@0.18.5'
const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'sb-pack-'))

function run(command, args, stdio = 'inherit') {
  const { status, stdout } = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', stdio, 'inherit'],
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`)
  return stdout
}

try {
  const [{ filename }] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', folder], 'pipe'))
  const tarball = join(folder, filename)
  run(process.execPath, [`${root}/node_modules/publint/src/cli.js`, tarball, '--strict'])
  // The package is ESM alone: what CommonJS would make of it is not asked.
  run('npm', [
    'exec',
    '--yes',
    `--package=${ATTW}`,
    '--',
    'attw',
    tarball,
    '--profile',
    'esm-only',
    '--format',
    'ascii',
  ])
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
