/** What is in dist/, read as whoever installs the package would meet it. */
import { readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
export const MANIFEST = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8'))

export const SHIPPED: readonly string[] = readdirSync(`${ROOT}dist`, { recursive: true }).map(String)

const IMPORT = /(?:\bfrom|\bimport|\bimport\(|\b__require\() ?["']([\w@./:-]+)["']/g

/** The packages that these files import, the runtime's own modules left out. */
export function packagesImportedBy(files: readonly string[]): ReadonlySet<string> {
  return packagesOf(files.flatMap((file) => [...codeOf(file).matchAll(IMPORT)].map(([, id]) => id!)))
}

/** Without comments, which may show an import to people. */
function codeOf(file: string): string {
  return readFileSync(`${ROOT}dist/${file}`, 'utf8').replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, '')
}

const SOURCE = /\.(?:ts|tsx|mts|mjs|js)$/
const AT_THE_HEAD = /^(?:import|export) (?:[\w$*{}\s,]* from )?'([\w@./:-]+)'/gm

/** The programs below a folder of this repository, as they are written. */
export function sourcesIn(folder: string): readonly string[] {
  const names = readdirSync(`${ROOT}${folder}`, { recursive: true }).map(String)
  return names.filter((name) => SOURCE.test(name) && !name.includes('node_modules')).map((name) => `${folder}/${name}`)
}

/** The packages of their import statements; the runtime's own modules left out. */
export function packagesNamedAtTheHead(sources: readonly string[]): ReadonlySet<string> {
  const ids = sources.flatMap((file) =>
    [...readFileSync(`${ROOT}${file}`, 'utf8').matchAll(AT_THE_HEAD)].map(([, id]) => id!),
  )
  return packagesOf(ids)
}

function packagesOf(ids: readonly string[]): ReadonlySet<string> {
  const names = ids.flatMap((id) => /^(?:@[^/]+\/)?[^./][^/]*/.exec(id)?.[0] ?? [])
  return new Set(names.filter((name) => !isBuiltin(name)))
}
