/** Compiles src/ to dist/, marks the programs executable and writes the JSON Schema for editors; skips when nothing has changed. */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const stamp = `${root}/dist/.built`

const sources = [
  ...readdirSync(`${root}/src`, { recursive: true }).map((name) => `${root}/src/${name}`),
  `${root}/tsconfig.json`,
  `${root}/tsconfig.build.json`,
  `${root}/package.json`,
]
const newest = Math.max(...sources.map((path) => statSync(path).mtimeMs))
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

for (const program of ['cli/main.js', 'agents/openai/main.js']) {
  if (existsSync(`${root}/dist/${program}`)) chmodSync(`${root}/dist/${program}`, 0o755)
}
if (existsSync(`${root}/dist/config/json-schema.js`)) {
  const { jsonSchema } = await import(`${root}/dist/config/json-schema.js`)
  mkdirSync(`${root}/schema`, { recursive: true })
  writeFileSync(`${root}/schema/stdio-bus.schema.json`, `${JSON.stringify(jsonSchema(), null, 2)}\n`)
}
writeFileSync(stamp, '')
