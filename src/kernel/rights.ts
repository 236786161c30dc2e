/**
 * What a principal may do, as plain data, and the questions that are asked of it (contract 9.6, 9.18, 9.19).
 *
 * Who somebody is was judged before; nothing here knows a credential. A pattern means the whole name: `*` is any run of
 * characters, `?` is one, everything else is itself. Matching takes time in proportion to the name, whatever the pattern.
 */
import { LOCAL, type Principal } from './vocabulary.ts'

export type Role = 'user' | 'observer' | 'admin'

/** What the bus itself is asked, and by whom it may be (contract 9.6). */
export const BUS_METHODS = {
  'bus::status': ['observer', 'admin'],
  'bus::reload': ['admin'],
} as const satisfies Record<string, readonly Role[]>
export type BusMethod = keyof typeof BUS_METHODS

export function isBusMethod(method: string): method is BusMethod {
  return Object.hasOwn(BUS_METHODS, method)
}

export interface ToolRights {
  /** What was judged elsewhere: both must allow it. */
  readonly also?: ToolRights
  /** Left out: all that are not denied. */
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
}

export interface Rights {
  readonly role: Role
  /** Patterns of pools and agents; none: nothing. */
  readonly pools: readonly string[]
  /** Left out: all tools. */
  readonly tools?: ToolRights
  /** So many messages in so long; left out: as many as come. */
  readonly rate?: { readonly count: number; readonly perMs: number }
  readonly maxPending?: number
  readonly maxConnections?: number
  /** Patterns of the pools whose workers have an environment of this principal's. */
  readonly environmentFor?: readonly string[]
}

/** Who somebody is, as it was judged before it came here. */
export interface Identity {
  /** By whom it counts, owns and is recorded: each subject of a signed token is one of its own. */
  readonly principal: Principal
  /** Whose rights it has. */
  readonly name: string
  readonly subject?: string
  /** How it was proved. */
  readonly via: string
  readonly rights: Rights
  /** It was judged elsewhere: what it may do here is not what it may do otherwise (contract 14.9). */
  readonly apart?: string
  /** When its credential ends, as it is told. */
  readonly expires?: string
}

/** Whoever is on this machine. */
export const LOCAL_IDENTITY: Identity = {
  principal: LOCAL,
  name: LOCAL,
  via: 'local',
  rights: { role: 'admin', pools: ['*'] },
}

export function mayUsePool({ pools }: Rights, pool: string): boolean {
  return matchesAny(pools, pool)
}

/** A pattern with `::` means the tool of a pool, one without it a tool of any pool; `deny` wins. */
export function mayUseTool(rights: Rights, pool: string, tool: string): boolean {
  return mayUseToolAs(rights, [{ pool, tool }])
}

/** The same for a tool that is known by several names: a deny of any of them counts, and so does an allow. */
export function mayUseToolAs({ tools }: Rights, names: readonly { pool: string; tool: string }[]): boolean {
  if (tools === undefined) return true
  const isMeant = (pattern: string): boolean => names.some((name) => isToolMeant(pattern, name))
  const isAllowed = ({ allow = ['*'], deny = [], also }: ToolRights): boolean =>
    !deny.some(isMeant) && allow.some(isMeant) && (also === undefined || isAllowed(also))
  return isAllowed(tools)
}

/** Somebody denies it, whether or not it is among what is allowed. */
export function isToolDenied({ tools }: Rights, name: { pool: string; tool: string }): boolean {
  const isDenied = ({ deny = [], also }: ToolRights): boolean =>
    deny.some((pattern) => isToolMeant(pattern, name)) || (also !== undefined && isDenied(also))
  return tools !== undefined && isDenied(tools)
}

function isToolMeant(pattern: string, { pool, tool }: { pool: string; tool: string }): boolean {
  return matches(pattern, pattern.includes('::') ? `${pool}::${tool}` : tool)
}

export function matchesAny(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) => matches(pattern, name))
}

/** Only the last `*` is ever taken up again: what an earlier one matched can stay as it is. */
export function matches(pattern: string, name: string): boolean {
  let p = 0
  let star = -1
  let mark = 0
  for (let n = 0; n < name.length; ) {
    if (pattern[p] === '*') {
      star = p++
      mark = n
    } else if (pattern[p] === '?' || pattern[p] === name[n]) {
      p++
      n++
    } else if (star === -1) {
      return false
    } else {
      p = star + 1
      n = ++mark
    }
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}
