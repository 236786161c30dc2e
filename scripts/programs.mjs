/**
 * Makes of each program a few files instead of hundreds, because a module costs a millisecond when a program starts; what
 * `connect` needs, for which editors wait, is one file. The modules stay where they are for those who import them.
 *
 * Invariant: a module that asks where it is gets the answer that it would get unbundled.
 */
import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, relative, resolve } from 'node:path'
import { rolldown } from 'rolldown'

const PROGRAMS = ['cli/main', 'agents/echo/main', 'agents/openai/main', 'agents/registry/main']
const FIRST_NEEDED = ['cli/token-variable', 'cli/commands/connect', 'vendor/commander/esm']
const CHUNKS = 'chunks'

export async function bundlePrograms(root) {
  const dist = resolve(root, 'dist')
  const fileOf = (name) => resolve(dist, `${name}.js`)
  const first = closureOf(FIRST_NEEDED.map(fileOf))
  const bundle = await rolldown({
    cwd: root,
    platform: 'node',
    input: Object.fromEntries(PROGRAMS.map((name) => [name, fileOf(name)])),
    external: (id) => isBuiltin(id) || !/^[./]/.test(id),
    plugins: [keepPlaces(dist)],
    onLog: (level, log, tell) => log.code !== 'INEFFECTIVE_DYNAMIC_IMPORT' && tell(level, log),
  })
  await bundle.write({
    dir: dist,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: `${CHUNKS}/[name]-[hash].js`,
    codeSplitting: { groups: [{ name: 'connect', test: (id) => first.has(id) }] },
  })
}

/** These modules and all that they import at once. */
function closureOf(files) {
  const found = new Set()
  const visit = (file) => {
    if (found.has(file)) return
    found.add(file)
    const imports = readFileSync(file, 'utf8').matchAll(/^(?:import|export)\b[^'"]*['"](\.[^'"]+)['"]/gm)
    for (const [, path] of imports) visit(resolve(dirname(file), path))
  }
  for (const file of files) visit(file)
  return found
}

/** Programs stay where they are; all else moves to the folder of the chunks. */
function keepPlaces(dist) {
  const programs = new Set(PROGRAMS.map((name) => resolve(dist, `${name}.js`)))
  return {
    name: 'keep-places',
    transform(code, id) {
      if (programs.has(id) || !code.includes('import.meta')) return
      const place = relative(resolve(dist, CHUNKS), id)
      return code.replaceAll('import.meta.url', `new URL(${JSON.stringify(place)}, import.meta.url).href`)
    },
  }
}
