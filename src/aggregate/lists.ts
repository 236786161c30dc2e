/** The answer to a request for a list: one page of what the caller sees, and where the next begins (contract 13.8, 13.9). */
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import type { SpokenEra } from './eras.ts'
import type { Kind } from './member-list.ts'
import { BOUNDS } from './spec.ts'
import type { View } from './view.ts'

export const MISSING_KEY = 'stdio-bus/missing'

export interface ListRequest {
  readonly view: View
  readonly kind: Kind
  readonly era: SpokenEra
  /** Members that could not be listed so far. */
  readonly missing: readonly string[]
}

/** A page as members of the result, and what comes behind them. */
export interface ListPage {
  readonly members: Buffer
  readonly more: string
}

/** Undefined: the cursor is none of this list. */
export function listPage({ view, kind, era, missing }: ListRequest, line: Envelope): ListPage | undefined {
  const from = line.has(FIELD.cursor) ? placeOf(line.text(FIELD.cursor), view, kind) : 0
  if (from === undefined) return undefined
  const next = from + BOUNDS.pageItems
  const cursor = next < view.count(kind) ? `,"nextCursor":"${cursorAt(next, view, kind)}"` : ''
  return { members: view.page(kind, from, era), more: `${cursor}${missingMeta(missing)}` }
}

/** Who could not be listed, behind the other members of a result that would tell of what they have. */
export function missingMeta(missing: readonly string[]): string {
  return missing.length === 0 ? '' : `,"_meta":{${JSON.stringify(MISSING_KEY)}:${JSON.stringify(missing)}}`
}

/** A cursor holds for the list that it was given for. */
function cursorAt(from: number, view: View, kind: Kind): string {
  return Buffer.from(`${from} ${kind} ${view.digest(kind)}`).toString('base64url')
}

function placeOf(cursor: string | undefined, view: View, kind: Kind): number | undefined {
  if (cursor === undefined) return undefined
  const from = Number.parseInt(Buffer.from(cursor, 'base64url').toString(), 10)
  return Number.isSafeInteger(from) && from > 0 && cursor === cursorAt(from, view, kind) ? from : undefined
}
