/** What is given away: dist/ needs what package.json names and nothing else, and what was taken in keeps its licence. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { MANIFEST, packagesImportedBy, packagesNamedAtTheHead, ROOT, SHIPPED, sourcesIn } from './shipped.ts'

const programs = SHIPPED.filter((name) => name.endsWith('.js'))
const declarations = SHIPPED.filter((name) => name.endsWith('.d.ts'))
const dependencies = Object.keys({ ...MANIFEST.dependencies, ...MANIFEST.optionalDependencies })

describe('dependencies', () => {
  test('every package that a shipped file imports is one', () => {
    expect([...packagesImportedBy(programs)].filter((name) => !dependencies.includes(name))).toEqual([])
  })

  test('a shipped file imports every one of them', () => {
    const imported = packagesImportedBy(programs)
    expect(dependencies.filter((name) => !imported.has(name))).toEqual([])
  })

  test('every package that the tests and scripts import is named too, and comes by no other package', () => {
    const sources = ['test', 'scripts', 'bench', 'examples', 'src'].flatMap((folder) => sourcesIn(folder))
    const named = [...dependencies, ...Object.keys(MANIFEST.devDependencies), MANIFEST.name]
    expect([...packagesNamedAtTheHead(sources)].filter((name) => !named.includes(name))).toEqual([])
    expect(packagesNamedAtTheHead(sources)).toContain('vitest')
  })

  test('declarations need none: nobody must install a package for our types', () => {
    expect(declarations).toContain('client/index.d.ts')
    expect([...packagesImportedBy(declarations)]).toEqual([])
  })

  test('an import would be seen', () => {
    expect(packagesImportedBy(['cli/daemon/log.js'])).toContain('pino')
  })

  test('none may run a script when it is installed', () => {
    const { packages } = JSON.parse(readFileSync(`${ROOT}package-lock.json`, 'utf8'))
    const scripted = Object.keys(packages).filter((path) => packages[path].hasInstallScript && path !== '')
    expect(scripted.map((path) => path.replace(/^.*node_modules\//, ''))).toEqual(Object.keys(MANIFEST.allowScripts))
    expect(Object.values(MANIFEST.allowScripts)).not.toContain(true)
  })
})

describe('packages that were taken in', () => {
  const versions: Record<string, { version: string; license: string }> = JSON.parse(
    readFileSync(`${ROOT}dist/vendor/packages.json`, 'utf8'),
  )

  test('are listed with their versions, and none is missing', () => {
    const folders = readdirSync(`${ROOT}dist/vendor`).flatMap((name) =>
      name.startsWith('@') ? readdirSync(`${ROOT}dist/vendor/${name}`).map((each) => `${name}/${each}`) : [name],
    )
    expect(folders.filter((name) => name !== 'packages.json').toSorted()).toEqual(Object.keys(versions).toSorted())
    expect(versions['zod']!.version).toBe(MANIFEST.devDependencies.zod)
  })

  test.each(Object.keys(versions))('%s has its licence beside it', (name) => {
    const files = readdirSync(`${ROOT}dist/vendor/${name}`).filter((file) => /^licen[cs]e/i.test(file))
    expect(files.map((file) => statSync(`${ROOT}dist/vendor/${name}/${file}`).size > 500)).toEqual([true])
    expect(versions[name]!.license).toMatch(/^(MIT|ISC|Apache-2\.0)$/)
  })
})
