/**
 * What becomes of the text of an access file when a principal comes, goes, or gets another token (contract 9.8). Text in,
 * text out: nothing is opened, and tokens are known by their digests.
 */

import { append, removeElement, setValue } from '../config/list-edit.ts'
import type { EditableFile } from './access-edit.ts'
import { MAX_TOKENS, type PrincipalEntry } from './access-schema.ts'

export interface NewToken {
  readonly sha256: string
  readonly expires?: string
}

export interface NewPrincipal {
  readonly name: string
  readonly role: PrincipalEntry['role']
  readonly pools: readonly string[]
  readonly tools?: { readonly allow: readonly string[] }
  readonly rate?: string
  readonly tokens: readonly NewToken[]
}

export interface Rotation {
  readonly nowMs: number
  /** When the old tokens end at the latest; left out: now. */
  readonly keepUntilMs?: number
}

/** A file that has it already is not to be asked. */
export function addPrincipal({ text }: EditableFile, principal: NewPrincipal): string {
  return append(text, ['principals'], principal)
}

export function removePrincipal({ text, entries }: EditableFile, name: string): string {
  return removeElement(text, ['principals', indexOf(entries, name)])
}

/** The old tokens end, at once or after a while; `full` where so many go on that there is no room for another. */
export function rotateToken(file: EditableFile, name: string, token: NewToken, rotation: Rotation): string | 'full' {
  const index = indexOf(file.entries, name)
  const tokens = file.entries[index]!.tokens
  const path = ['principals', index, 'tokens']
  if (tokens.length === 0) return setValue(file.text, path, [token])
  const { nowMs, keepUntilMs } = rotation
  const endsAt = tokens.map(({ expires }) => Math.min(endOf(expires), keepUntilMs ?? nowMs))
  if (endsAt.filter((ms) => ms > nowMs).length >= MAX_TOKENS) return 'full'
  let text = append(file.text, path, token)
  // From the last to the first: what is taken out moves those behind it.
  for (const [at, ms] of [...endsAt.entries()].reverse()) {
    if (ms <= nowMs) text = removeElement(text, [...path, at])
    else if (ms < endOf(tokens[at]!.expires)) text = setValue(text, [...path, at, 'expires'], timeOf(ms))
  }
  return text
}

/** When the last of the tokens ends by itself; undefined when one of them does not, or there is none. */
export function lastEndOf({ tokens }: PrincipalEntry): number | undefined {
  const last = Math.max(...tokens.map(({ expires }) => endOf(expires)))
  return Number.isFinite(last) ? last : undefined
}

/** To the second, as the file has it. */
export function timeOf(ms: number): string {
  return new Date(Math.floor(ms / 1000) * 1000).toISOString().replace('.000Z', 'Z')
}

function endOf(expires: string | undefined): number {
  return expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires)
}

function indexOf(entries: readonly PrincipalEntry[], name: string): number {
  const index = entries.findIndex((entry) => entry.name === name)
  if (index === -1) throw new Error(`there is no principal ${name}`)
  return index
}
