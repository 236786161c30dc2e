/**
 * docs/reliability.md is written by the runs themselves: each has a section between two marks and replaces only that.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const PAGE = fileURLToPath(new URL('../../docs/reliability.md', import.meta.url))
const OPENING = `# Reliability: what was proved, and how

Every section of this page is written by the run it describes; nothing in it is typed by hand.
`

/** Writes the section of one kind of run, whatever the other sections say. */
export function writeSection(name, text) {
  const begin = `<!-- ${name}:begin -->`
  const end = `<!-- ${name}:end -->`
  const section = `${begin}\n${text.trim()}\n${end}\n`
  const page = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : OPENING
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  const isThere = from !== -1 && to !== -1
  const next = isThere
    ? page.slice(0, from) + section + page.slice(to + end.length + 1)
    : `${page.trimEnd()}\n\n${section}`
  writeFileSync(PAGE, next)
}
