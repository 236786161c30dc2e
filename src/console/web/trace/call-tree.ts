/**
 * The calls of a trace in the order of a tree: who called whom, each call once, a parent before its children.
 *
 * A parent that is not there does not lose its children, they stand at the top; a ring of parents is cut at its earliest call. No
 * recursion: a chain may be as long as the trace.
 */

/** All that a tree needs to know of a call. */
export interface Branch {
  readonly id: number
  readonly parent_id: number | null
}

export interface TreeRow<T extends Branch> {
  readonly call: T
  readonly depth: number
  readonly parent: number | undefined
  readonly childCount: number
  /** Which of its siblings it is, from 1, and how many they are. */
  readonly position: number
  readonly siblings: number
}

type Children<T> = ReadonlyMap<number | undefined, readonly T[]>

export function growTree<T extends Branch>(calls: readonly T[]): TreeRow<T>[] {
  const children = byParent(calls)
  const placed = new Set<number>()
  const rows: TreeRow<T>[] = []
  plant(children.get(undefined) ?? [], children, placed, rows)
  for (const call of calls) if (!placed.has(call.id)) plant([call], children, placed, rows)
  return rows
}

/** Without what lies below calls that are folded. */
export function unfolded<T extends Branch>(
  rows: readonly TreeRow<T>[],
  folded: ReadonlySet<number>,
): readonly TreeRow<T>[] {
  if (folded.size === 0) return rows
  let hiddenBelow = Number.POSITIVE_INFINITY
  return rows.filter(({ call, depth }) => {
    if (depth > hiddenBelow) return false
    hiddenBelow = folded.has(call.id) ? depth : Number.POSITIVE_INFINITY
    return true
  })
}

function byParent<T extends Branch>(calls: readonly T[]): Children<T> {
  const known = new Set(calls.map(({ id }) => id))
  const children = new Map<number | undefined, T[]>()
  for (const call of calls) {
    const parent = call.parent_id !== null && known.has(call.parent_id) ? call.parent_id : undefined
    const siblings = children.get(parent)
    if (siblings === undefined) children.set(parent, [call])
    else siblings.push(call)
  }
  return children
}

function plant<T extends Branch>(
  tops: readonly T[],
  children: Children<T>,
  placed: Set<number>,
  rows: TreeRow<T>[],
): void {
  const waiting: TreeRow<T>[] = []
  // The last first: what was put there last is taken first.
  const put = (calls: readonly T[], depth: number, parent: number | undefined): void => {
    const siblings = calls.length
    for (let index = siblings - 1; index >= 0; index--) {
      const call = calls[index]!
      if (placed.has(call.id)) continue
      const childCount = children.get(call.id)?.length ?? 0
      waiting.push({ call, depth, parent, childCount, position: index + 1, siblings })
    }
  }
  put(tops, 0, undefined)
  for (let row = waiting.pop(); row !== undefined; row = waiting.pop()) {
    const { id } = row.call
    if (placed.has(id)) continue
    placed.add(id)
    rows.push(row)
    if (row.childCount > 0) put(children.get(id)!, row.depth + 1, id)
  }
}
