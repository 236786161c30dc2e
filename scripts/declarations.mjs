/**
 * Keeps in dist/ the declarations that the exports of the package lead to, and no others: those of the rest name packages
 * that nobody has who installs ours. Those that stay name each other by the files that are there.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const RELATIVE = /((?:from|import\() ?['"])(\.[^'"]+)\.[jt]s(['"])/g

export function keepPublicDeclarations(root) {
  const { exports } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
  const wanted = new Set()
  const want = (path) => {
    if (wanted.has(path)) return
    wanted.add(path)
    const text = readFileSync(path, 'utf8')
    for (const [, , from] of text.matchAll(RELATIVE)) want(resolve(dirname(path), `${from}.d.ts`))
    writeFileSync(path, text.replace(RELATIVE, '$1$2.js$3'))
  }
  for (const { types } of Object.values(exports)) if (types !== undefined) want(resolve(root, types))
  for (const name of readdirSync(`${root}/dist`, { recursive: true })) {
    const path = join(root, 'dist', name)
    if (path.endsWith('.d.ts') && !wanted.has(path)) rmSync(path)
  }
}
