/**
 * Compiles src/ to dist/, takes into it the few modules of the schema library that are used, marks the programs executable
 * and writes the JSON Schema for editors; skips when nothing has changed.
 */
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

// As a whole the schema library costs every bus 9 MB and 40 ms, mostly for messages in other languages.
const { rolldown } = await import('rolldown')
const modules = readdirSync(`${root}/dist`, { recursive: true }).filter((name) => name.endsWith('.js'))
const bundle = await rolldown({
  cwd: root,
  platform: 'node',
  input: Object.fromEntries(modules.map((name) => [name.slice(0, -'.js'.length), `${root}/dist/${name}`])),
  external: (id) => id !== 'zod' && !/^[./]/.test(id),
})
await bundle.write({
  dir: `${root}/dist`,
  format: 'esm',
  preserveModules: true,
  preserveModulesRoot: `${root}/dist`,
  entryFileNames: ({ name }) => `${name.replace('node_modules/', 'vendor/')}.js`,
})

for (const program of ['cli/main.js', 'agents/openai/main.js', 'agents/echo/main.js']) {
  if (existsSync(`${root}/dist/${program}`)) chmodSync(`${root}/dist/${program}`, 0o755)
}
if (existsSync(`${root}/dist/config/json-schema.js`)) {
  const { jsonSchema } = await import(`${root}/dist/config/json-schema.js`)
  mkdirSync(`${root}/schema`, { recursive: true })
  writeFileSync(`${root}/schema/stdio-bus.schema.json`, `${JSON.stringify(jsonSchema(), null, 2)}\n`)
}
writeFileSync(stamp, '')
