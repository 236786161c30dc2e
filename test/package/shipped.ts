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
  const names = files.flatMap((file) =>
    [...codeOf(file).matchAll(IMPORT)].flatMap(([, id]) => /^(?:@[^/]+\/)?[^./][^/]*/.exec(id!)?.[0] ?? []),
  )
  return new Set(names.filter((name) => !isBuiltin(name)))
}

/** Without comments, which may show an import to people. */
function codeOf(file: string): string {
  return readFileSync(`${ROOT}dist/${file}`, 'utf8').replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, '')
}
