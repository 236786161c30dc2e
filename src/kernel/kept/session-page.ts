/**
 * A list of sessions, newest first, page by page. A cursor names the last session that was told, so that a page neither
 * repeats nor skips one when others come or go between two questions.
 */
interface Dated {
  readonly id: string
  readonly atMs: number
}

export interface Page<Item> {
  readonly items: readonly Item[]
  readonly next: string | undefined
}

/** Undefined: the cursor is none of ours. */
export function pageOf<Item extends Dated>(
  items: readonly Item[],
  limit: number,
  cursor: unknown,
): Page<Item> | undefined {
  const after = cursor === undefined ? undefined : readCursor(cursor)
  if (cursor !== undefined && after === undefined) return undefined
  const inOrder = [...items].sort(compare)
  const rest = after === undefined ? inOrder : inOrder.filter((item) => compare(item, after) > 0)
  const page = rest.slice(0, limit)
  const last = page.at(-1)
  return { items: page, next: last === undefined || rest.length <= limit ? undefined : spellCursor(last) }
}

function compare(a: Dated, b: Dated): number {
  return b.atMs - a.atMs || (a.id < b.id ? -1 : Number(a.id > b.id))
}

function spellCursor({ id, atMs }: Dated): string {
  return Buffer.from(JSON.stringify([atMs, id])).toString('base64url')
}

function readCursor(cursor: unknown): Dated | undefined {
  if (typeof cursor !== 'string') return undefined
  try {
    const [atMs, id]: unknown[] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return typeof atMs === 'number' && typeof id === 'string' ? { id, atMs } : undefined
  } catch {
    return undefined
  }
}
