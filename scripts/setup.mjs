/**
 * Installs the dependencies when they are missing or older than the lock file, and does nothing otherwise.
 * It lets the two commands of the README work on a fresh clone, and npm itself before it packs or links one. No script of
 * a dependency is run: none needs one.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const [major, minor] = process.versions.node.split('.').map(Number)
const floor = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')).engines.node

if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`stdio-bus needs Node ${floor}; this is ${process.version}.`)
  process.exit(1)
}

const installed = `${root}/node_modules/.package-lock.json`
if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(`${root}/package-lock.json`).mtimeMs)
  process.exit(0)

console.error('Installing dependencies (once) ...')
const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
  cwd: root,
  stdio: ['ignore', 2, 2],
})
process.exit(status ?? 1)
