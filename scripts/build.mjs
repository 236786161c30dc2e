/**
 * Compiles src/ to dist/, takes in the packages that are not installed beside it, bundles the programs and marks them
 * executable, and writes the JSON Schema for editors and the manual page; skips when nothing has changed.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { writeConfigType } from './config-type.mjs'
import { buildConsole } from './console.mjs'
import { keepPublicDeclarations } from './declarations.mjs'
import { bundlePrograms } from './programs.mjs'
import { takeInPackages } from './vendor.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const stamp = `${root}/dist/.built`

const filesOf = (folder) => readdirSync(`${root}/${folder}`, { recursive: true }).map((name) => `${folder}/${name}`)
const sources = [...filesOf('src'), ...filesOf('scripts'), 'tsconfig.json', 'tsconfig.build.json', 'package.json']
// What was installed anew is taken in anew.
sources.push('node_modules/.package-lock.json')
const newest = Math.max(...sources.map((path) => statSync(`${root}/${path}`).mtimeMs))
if (existsSync(stamp) && statSync(stamp).mtimeMs > newest) process.exit(0)

rmSync(`${root}/dist`, { recursive: true, force: true })
const { status } = spawnSync(
  process.execPath,
  [`${root}/node_modules/typescript/bin/tsc`, '-p', `${root}/tsconfig.build.json`],
  {
    cwd: root,
    stdio: 'inherit',
  },
)
if (status !== 0) process.exit(status ?? 1)

await takeInPackages(root)
await bundlePrograms(root)
await buildConsole(root)

for (const program of ['cli/main.js', 'agents/openai/main.js', 'agents/echo/main.js']) {
  chmodSync(`${root}/dist/${program}`, 0o755)
}
const { jsonSchema } = await import(`${root}/dist/config/json-schema.js`)
mkdirSync(`${root}/schema`, { recursive: true })
writeFileSync(`${root}/schema/stdio-bus.schema.json`, `${JSON.stringify(jsonSchema(), null, 2)}\n`)
writeConfigType(root, jsonSchema())
keepPublicDeclarations(root)
mkdirSync(`${root}/dist/man`)
writeFileSync(`${root}/dist/man/stdio-bus.1`, execFileSync(process.execPath, [`${root}/dist/cli/main.js`, 'manual']))
writeFileSync(stamp, '')
