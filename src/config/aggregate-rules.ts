/**
 * What an aggregate demands of the rest of the file: members that are there, once each, and that speak MCP; nothing that
 * belongs to a process; no name given twice (contract 13.1).
 */
import { AGGREGATE_KEYS } from './aggregate-schema.ts'
import { type Finding, listOf, type Path, quote } from './problem.ts'
import { asObject, poolExists, poolsOf, type Raw } from './raw-file.ts'

interface MemberAt {
  readonly pool: string
  /** Where it stands, and where its pool is named. */
  readonly place: Path
  readonly path: Path
  readonly entry: Raw
}

export function aggregatesHoldTogether(file: Raw): Finding[] {
  return poolsOf(file).flatMap(({ entry, path }) =>
    'members' in entry
      ? [
          ...hasNoProcess(entry, path),
          ...membersFit(file, membersOf(entry, path)),
          ...namesAreGivenOnce(membersOf(entry, path)),
          ...pinsHaveTheirSubject(entry, path),
        ]
      : [...keysHaveTheirSubject(entry, path), ...isServedByWorkers(file, entry, path)],
  )
}

/** Keys of a process beside `members`; what no pool knows the schema reports. */
function hasNoProcess(entry: Raw, path: Path): Finding[] {
  const given = Object.keys(entry).filter((key) => PROCESS_KEYS.has(key))
  const allowed = `beside "members" only ${listOf(AGGREGATE_KEYS.map(quote), 'and')}: an aggregate has no process`
  return given.map((key) => ({ path: [...path, key], at: 'key' as const, found: quote(key), allowed }))
}

/** The ways to name a program are reported by their own rule. */
const PROCESS_KEYS: ReadonlySet<string> = new Set([
  ...['args', 'instances', 'max_instances', 'sharing', 'balance', 'fallback', 'protocol', 'era', 'env', 'inherit_env'],
  ...[
    'cwd',
    'pipes',
    'restart',
    'start_timeout_sec',
    'hang_timeout_sec',
    'limits',
    'trace',
    'aio',
    'distribution',
    'sessions',
  ],
])

function membersFit(file: Raw, members: readonly MemberAt[]): Finding[] {
  const seen = new Set<string>()
  const pools = new Map(poolsOf(file).map(({ entry }) => [entry['id'], entry]))
  return members.flatMap(({ pool, path }): Finding[] => {
    const unknown = poolExists(file, pool, path)
    if (unknown.length > 0) return unknown
    if (seen.has(pool)) return [{ path, found: `${quote(pool)} a second time`, allowed: 'each pool once' }]
    seen.add(pool)
    const speaks = pools.get(pool)
    if (speaks === undefined) return []
    if ('members' in speaks)
      return [{ path, found: `${quote(pool)}, which is an aggregate`, allowed: 'pools that have workers' }]
    const other = otherProtocolOf(speaks)
    return other === undefined ? [] : [{ path, found: `${quote(pool)}, ${other}`, allowed: 'pools that speak MCP' }]
  })
}

function otherProtocolOf({ protocol, agent, registry, aio }: Raw): string | undefined {
  if (protocol === 'mcp') return undefined
  if (protocol === 'acp' || protocol === 'plain') return `which speaks ${protocol}`
  if (agent !== undefined || registry !== undefined) return 'whose agent speaks ACP'
  const { type, mode } = asObject(aio) ?? {}
  return type === 'stdio' || type === 'acp' || mode !== undefined ? 'which is an AIO agent of another type' : undefined
}

function namesAreGivenOnce(members: readonly MemberAt[]): Finding[] {
  const seen = new Set<string>()
  return members.flatMap(({ entry, place }) =>
    Object.entries(asObject(entry['rename']) ?? {}).flatMap(([own, name]): Finding[] => {
      if (typeof name !== 'string' || !seen.has(name)) {
        seen.add(String(name))
        return []
      }
      const found = `${quote(name)} a second time`
      return [{ path: [...place, 'rename', own], found, allowed: 'a new name for one thing only' }]
    }),
  )
}

function pinsHaveTheirSubject({ pin, mode }: Raw, path: Path): Finding[] {
  if (!Array.isArray(pin) || pin.length === 0 || mode === 'search') return []
  return [{ path: [...path, 'pin'], at: 'key', found: '"pin"', allowed: 'only with mode "search"' }]
}

function keysHaveTheirSubject(entry: Raw, path: Path): Finding[] {
  const given = AGGREGATE_KEYS.filter((key) => key !== 'id' && key in entry)
  return given.map((key) => ({
    path: [...path, key],
    at: 'key' as const,
    found: quote(key),
    allowed: 'only beside "members"',
  }))
}

/** What steps in for a pool has workers. */
function isServedByWorkers(file: Raw, { fallback }: Raw, path: Path): Finding[] {
  if (fallback === undefined) return []
  const other = poolsOf(file).find(({ entry }) => entry['id'] === fallback)?.entry
  if (other === undefined || !('members' in other)) return []
  const found = `${quote(String(fallback))}, which is an aggregate`
  return [{ path: [...path, 'fallback'], found, allowed: 'a pool that has workers' }]
}

function membersOf(entry: Raw, path: Path): MemberAt[] {
  const list = entry['members']
  if (!Array.isArray(list)) return []
  return list.flatMap((item, index): MemberAt[] => {
    const place = [...path, 'members', index]
    if (typeof item === 'string') return [{ pool: item, place, path: place, entry: {} }]
    const member = asObject(item)
    const pool = member?.['pool']
    if (member === undefined || typeof pool !== 'string') return []
    return [{ pool, place, path: [...place, 'pool'], entry: member }]
  })
}
