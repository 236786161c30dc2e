/** The file as it was written, for rules that look across keys: whatever is of a wrong kind is as if it were not there. */
import { type Finding, listOf, type Path, quote } from './problem.ts'
import { suggest } from './suggest.ts'

export type Raw = Readonly<Record<string, unknown>>

export function poolExists(file: Raw, name: unknown, path: Path): Finding[] {
  if (typeof name !== 'string' || name === '') return []
  const ids = [...new Set(poolsOf(file).flatMap(({ entry }) => (typeof entry['id'] === 'string' ? [entry['id']] : [])))]
  if (ids.includes(name)) return []
  // Other nodes may have it.
  if (asObject(file['cluster']) !== undefined) return []
  const meant = suggest(name, ids)
  const finding: Finding = {
    path,
    found: quote(name),
    allowed: ids.length === 0 ? 'the id of a pool' : listOf(ids.map(quote)),
  }
  return [meant === undefined ? finding : { ...finding, suggestion: `did you mean ${quote(meant)}?` }]
}

export function poolsOf(file: Raw): { entry: Raw; path: Path }[] {
  return entriesOf(file, 'pools')
}

export function entriesOf(file: Raw, key: string): { entry: Raw; path: Path }[] {
  const list = file[key]
  if (!Array.isArray(list)) return []
  return list.flatMap((item, index) => {
    const entry = asObject(item)
    return entry === undefined ? [] : [{ entry, path: [key, index] }]
  })
}

export function asObject(value: unknown): Raw | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Raw) : undefined
}
