/**
 * The principals of an access file as rows of data and as lines for people. No row has a token, a digest or the value of a
 * variable; text is escaped where it is shown.
 */
import { printable } from '../wire/printable.ts'
import type { PrincipalEntry } from './access-schema.ts'

export interface PrincipalRow {
  readonly name: string
  readonly role: PrincipalEntry['role']
  readonly pools: readonly string[]
  readonly tools?: PrincipalEntry['tools']
  readonly rate?: string
  readonly max_pending?: number
  readonly max_connections?: number
  /** Names alone. */
  readonly env: readonly string[]
  readonly tokens: readonly { readonly expires: string | null; readonly expired: boolean }[]
}

export function rowOf(entry: PrincipalEntry, nowMs: number): PrincipalRow {
  const { tokens, env = {}, ...rest } = entry
  return {
    ...(rest as Omit<PrincipalRow, 'env' | 'tokens'>),
    env: Object.keys(env),
    tokens: tokens.map(({ expires }) => ({
      expires: expires ?? null,
      expired: expires !== undefined && Date.parse(expires) <= nowMs,
    })),
  }
}

const LONGEST = 40
const HEAD = ['name', 'role', 'pools', 'tools', 'rate', 'tokens']

/** A table; `dim` is for its head. */
export function drawPrincipals(rows: readonly PrincipalRow[], dim: (text: string) => string): string {
  const cells = rows.map((row) => [row.name, row.role, poolsOf(row), toolsOf(row), row.rate ?? '-', tokensOf(row)])
  const widths = HEAD.map((title, column) => Math.max(title.length, ...cells.map((row) => row[column]!.length)))
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd()
  return [dim(line(HEAD)), ...cells.map(line)].map((text) => `${text}\n`).join('')
}

function poolsOf({ pools }: PrincipalRow): string {
  return pools.length === 0 ? 'none' : shorten(pools.join(', '))
}

function toolsOf({ tools }: PrincipalRow): string {
  if (tools === undefined) return 'all'
  const { allow, deny = [] } = tools
  return shorten(
    [allow === undefined ? 'all' : allow.join(', ') || 'none', ...deny.map((pattern) => `not ${pattern}`)].join(', '),
  )
}

function tokensOf({ tokens }: PrincipalRow): string {
  if (tokens.length === 0) return 'none'
  return tokens
    .map(({ expires, expired }) => (expired ? 'expired' : expires === null ? 'for ever' : `until ${expires}`))
    .join(', ')
}

function shorten(text: string): string {
  const safe = printable(text)
  return safe.length > LONGEST ? `${safe.slice(0, LONGEST - 1)}…` : safe
}
