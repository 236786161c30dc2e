/** Whether somebody may do something, and the rule that says so, for people who ask beforehand (contract 9.8). */
import { matchesAny, mayUsePool, mayUseTool, type Rights } from '../kernel/rights.ts'
import { printable } from '../wire/printable.ts'

export interface Wish {
  readonly pool: string
  readonly tool?: string
}

export interface Answer {
  readonly isAllowed: boolean
  /** As in `no pattern of pools matches: "coder", "tools-*"`. */
  readonly rule: string
}

export function tryOut(rights: Rights, { pool, tool }: Wish): Answer {
  if (!mayUsePool(rights, pool)) return no(`no pattern of pools matches: ${shown(rights.pools)}`)
  if (rights.role === 'observer') return no('role "observer" sends no message to a worker')
  if (tool === undefined || rights.tools === undefined) return yes(`pools: ${shown(hits(rights.pools, pool))}`)
  const { allow, deny = [] } = rights.tools
  const meant = (pattern: string): boolean => mayUseTool({ ...rights, tools: { allow: [pattern] } }, pool, tool)
  const denied = deny.filter(meant)
  if (denied.length > 0) return no(`tools.deny: ${shown(denied)}`)
  if (!mayUseTool(rights, pool, tool)) return no(`no pattern of tools.allow matches: ${shown(allow ?? [])}`)
  return yes(allow === undefined ? 'no pattern of tools.deny matches' : `tools.allow: ${shown(allow.filter(meant))}`)
}

function hits(patterns: readonly string[], name: string): string[] {
  return patterns.filter((pattern) => matchesAny([pattern], name))
}

function shown(patterns: readonly string[]): string {
  return patterns.length === 0
    ? 'there is none'
    : patterns.map((pattern) => printable(JSON.stringify(pattern))).join(', ')
}

function yes(rule: string): Answer {
  return { isAllowed: true, rule }
}

function no(rule: string): Answer {
  return { isAllowed: false, rule }
}
