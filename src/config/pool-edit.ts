/**
 * What becomes of the text of a configuration when a pool comes or goes. Text in, text out: comments, order and spelling of
 * everything else stay, and nothing is opened.
 */
import { type Node, parseTree } from 'jsonc-parser'
import { append, appendKey, removeElement, removeKey } from './list-edit.ts'

/** A pool as the file has it. */
export type PoolDraft = Readonly<Record<string, unknown>> & { readonly id: string }

export interface PoolEdit {
  readonly text: string
  /** What else was changed, and why. */
  readonly notes: readonly string[]
}

/** The names of the pools, in their order; those without one are left out. */
export function poolNames(text: string): readonly string[] {
  return rowsOf(text).flatMap(({ id }) => (id === undefined ? [] : [id]))
}

/** Clients that name no pool go on using the one they have used. */
export function addPool(text: string, pool: PoolDraft): PoolEdit {
  const before = poolNames(text)
  const added = append(text, ['pools'], pool)
  if (before.length !== 1 || defaultPool(text) !== undefined) return { text: added, notes: [] }
  const note = `default_pool is now ${JSON.stringify(before[0])}: clients that name no pool go on using it`
  return { text: appendKey(added, 'default_pool', before[0]), notes: [note] }
}

/** A pool of this name must be there. */
export function removePool(text: string, id: string): PoolEdit {
  const index = rowsOf(text).findIndex((row) => row.id === id)
  const removed = removeElement(text, ['pools', index])
  if (defaultPool(text) !== id) return { text: removed, notes: [] }
  const left = poolNames(removed)
  const advice = left.length > 1 ? `; clients must name one of ${left.join(', ')}, or you set another` : ''
  return { text: removeKey(removed, ['default_pool']), notes: [`default_pool was this pool and is gone${advice}`] }
}

function defaultPool(text: string): unknown {
  return contentOf(parseTree(text, [], { allowTrailingComma: true }), 'default_pool')?.value
}

function rowsOf(text: string): readonly { readonly id: string | undefined }[] {
  const pools = contentOf(parseTree(text, [], { allowTrailingComma: true }), 'pools')
  return (pools?.children ?? []).map((pool) => {
    const id: unknown = contentOf(pool, 'id')?.value
    return { id: typeof id === 'string' ? id : undefined }
  })
}

function contentOf(node: Node | undefined, key: string): Node | undefined {
  return node?.children?.find((property) => property.children?.[0]?.value === key)?.children?.[1]
}
