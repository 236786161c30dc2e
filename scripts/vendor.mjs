/**
 * Takes into dist/vendor the modules of packages that shipped files import and that are no `dependencies`: of a few large
 * packages little is used, and installed whole they would weigh ten times as much as the bus and slow down its start.
 * What answers to the network (HTTP, WebSocket, signatures) stays a dependency, so that it can be mended without us.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { rolldown } from 'rolldown'
import { keepLicences } from './licences.mjs'

export async function takeInPackages(root) {
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
  const installed = new Set(Object.keys({ ...dependencies, ...optionalDependencies }))
  const modules = readdirSync(`${root}/dist`, { recursive: true }).filter((name) => name.endsWith('.js'))
  const bundle = await rolldown({
    cwd: root,
    platform: 'node',
    input: Object.fromEntries(modules.map((name) => [name.slice(0, -'.js'.length), `${root}/dist/${name}`])),
    external: (id) => isBuiltin(id) || installed.has(packageOf(id)),
  })
  const { output } = await bundle.write({
    dir: `${root}/dist`,
    format: 'esm',
    preserveModules: true,
    preserveModulesRoot: `${root}/dist`,
    entryFileNames: ({ name }) => `${name.replaceAll('node_modules/', 'vendor/')}.js`,
  })
  keepLicences(
    root,
    output.map(({ facadeModuleId }) => facadeModuleId ?? ''),
  )
}

const packageOf = (id) => /^(?:@[^/]+\/)?[^/]+/.exec(id)?.[0]
