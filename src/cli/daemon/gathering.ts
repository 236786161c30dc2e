/**
 * A list of sessions out of what several nodes have told: each once, newest first, page by page, and who has not answered
 * is named (contract 14.6).
 */

import { pageOf } from '../../kernel/kept/session-page.ts'
import { FIXED } from '../../kernel/limits.ts'
import type { Refusal } from '../../kernel/vocabulary.ts'
import type { Errand } from './errand.ts'

type Row = Readonly<Record<string, unknown>>

/** How a method that lists sessions spells what it is asked and what it tells. */
export interface ListWords {
  readonly method: string
  readonly id: string
  readonly updated: string
  readonly next: string
  /** Where the number of rows is asked for, and how many there are otherwise. */
  readonly limit: string | undefined
  readonly usual: number
}

export const BUS_LIST: ListWords = {
  method: 'bus::sessions.list',
  id: 'session',
  updated: 'updated_at',
  next: 'next_cursor',
  limit: 'limit',
  usual: 100,
}

export const AGENT_LIST: ListWords = {
  method: 'session/list',
  id: 'sessionId',
  updated: 'updatedAt',
  next: 'nextCursor',
  limit: undefined,
  usual: FIXED.maxListed,
}

/** What one node has told; with neither it was silent. */
export interface Told {
  readonly node: string
  readonly rows?: readonly Row[]
  readonly error?: unknown
}

export type Gathered = { readonly outcome: string } | { readonly refusal: Refusal }

const SILENT = 'stdio-bus/silent_nodes'

/** All that one node lists, page by page. */
export async function listAt(node: string, errand: Errand, words: ListWords, params: Row): Promise<Told> {
  const rows: Row[] = []
  let cursor: string | undefined
  for (let page = 0; page < FIXED.maxListPages; page++) {
    const answer = await errand.ask(words.method, { ...params, ...(cursor === undefined ? {} : { cursor }) })
    if (answer === undefined) return page === 0 ? { node } : { node, rows }
    const { result, error } = answer as { result?: Row; error?: unknown }
    if (error !== undefined && page === 0) return { node, error }
    const told = result?.['sessions']
    if (!Array.isArray(told)) break
    for (const row of told) if (typeof row === 'object' && row !== null) rows.push(row as Row)
    const next = result?.[words.next]
    if (typeof next !== 'string') break
    cursor = next
  }
  return { node, rows }
}

/** The nodes are asked for all they have: the page that is wanted is cut out of it. */
export function paramsForNodes(words: ListWords, { cursor: _cursor, ...params }: Row): Row {
  if (words.limit === undefined) return params
  // What is no number of rows they refuse.
  const { [words.limit]: wanted } = params
  return wanted === undefined || isLimit(wanted) ? { ...params, [words.limit]: FIXED.maxListed } : params
}

export function mergeLists(all: readonly Told[], words: ListWords, wish: Row): Gathered {
  const failed = all.find(({ error }) => error !== undefined)
  if (failed !== undefined && all.every(({ rows }) => rows === undefined))
    return { outcome: `"error":${JSON.stringify(failed.error)}` }
  const seen = new Map<string, { id: string; atMs: number; row: Row }>()
  for (const { rows = [] } of all) {
    for (const row of rows) {
      const id = row[words.id]
      if (typeof id === 'string' && !seen.has(id)) seen.set(id, { id, row, atMs: timeOf(row[words.updated]) })
    }
  }
  const limit = words.limit === undefined ? undefined : wish[words.limit]
  const page = pageOf([...seen.values()], isLimit(limit) ? limit : words.usual, wish['cursor'] ?? undefined)
  if (page === undefined) return { refusal: { reason: 'bad_params', detail: { problem: 'an unknown cursor' } } }
  const silent = all.filter(({ rows, error }) => rows === undefined && error === undefined).map(({ node }) => node)
  const result = {
    sessions: page.items.map(({ row }) => row),
    ...(page.next === undefined ? {} : { [words.next]: page.next }),
    ...(silent.length === 0 ? {} : { _meta: { [SILENT]: silent } }),
  }
  return { outcome: `"result":${JSON.stringify(result)}` }
}

function isLimit(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= FIXED.maxListed
}

/** Whose time is not told comes last. */
function timeOf(value: unknown): number {
  const atMs = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(atMs) ? 0 : atMs
}
