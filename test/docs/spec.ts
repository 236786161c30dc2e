/** The clauses of `docs/spec.md`: its sections by their headings (`6`, `M`), its clauses by their bold numbers (`6.7.3`, `M12`). */
import { readFileSync } from 'node:fs'

const PAGE = readFileSync(new URL('../../docs/spec.md', import.meta.url), 'utf8')
const SECTION = /^## ([0-9]+|[A-Z]) /gm
const CLAUSE = /^ *- \*\*([0-9A-Z][0-9.]*)\*\* /gm

/** In the order of the page; a number that stands twice is here twice. */
export const CLAUSES: readonly string[] = [SECTION, CLAUSE].flatMap((form) =>
  [...PAGE.matchAll(form)].map((match) => match[1]!),
)
