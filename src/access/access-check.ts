/**
 * What `check` says of access (contract 9.27): the access file as it would be at start, names that lead nowhere, patterns
 * and variables without use. It reads the access file, and changes nothing.
 *
 * Errors are what would keep the bus from starting; that something has no use is a warning.
 */
import { statSync } from 'node:fs'
import type { AccessConfig, BusConfig, Launch } from '../config/bus-config.ts'
import type { CheckContext } from '../config/check.ts'
import { byPlace, type Finding, type Path, type Problem, quote } from '../config/problem.ts'
import type { RightsEntry } from '../config/rights-schema.ts'
import { suggest } from '../config/suggest.ts'
import { matches, matchesAny } from '../kernel/rights.ts'
import { readAccessFile } from './access-file.ts'

/** Those of the configuration, then those of the access file, each in the order of its file. */
export function checkAccess({ config, source, environment }: CheckContext): Problem[] {
  const { access } = config
  if (access === undefined) return []
  const world = worldOf(config)
  const reading = access.file === undefined ? undefined : readAccessFile(access.file, environment)
  const names = reading?.ok ? reading.principals.names() : undefined
  const anonymous = (source.value as { access?: { anonymous?: RightsEntry | false } }).access?.anonymous
  const findings = [
    ...(names === undefined ? [] : namesWithoutPrincipal(access, names)),
    ...(access.anonymous === false || !anonymous ? [] : withoutUse(anonymous, ['access', 'anonymous'], world)),
    ...certificatesWithoutDoor(config),
    ...auditOpenToOthers(access),
  ]
  const own = findings.map(source.place).sort(byPlace)
  if (reading === undefined) return own
  if (!reading.ok) return [...own, ...reading.problems]
  const idle = reading.entries.flatMap((entry, index) => withoutUse(entry, ['principals', index], world))
  return [...own, ...idle.slice(0, MAX_FINDINGS).map(reading.source.place).sort(byPlace)]
}

/** More of them say nothing more. */
const MAX_FINDINGS = 100

/** Rows whose `as` is the name of nobody: at start they are mistakes too. */
export function namesWithoutPrincipal(access: AccessConfig, names: readonly string[]): Finding[] {
  const known = new Set(names)
  const rows = [
    ...(access.oauth?.map ?? []).map(({ as }, index) => ({ as, path: ['access', 'oauth', 'map', index, 'as'] })),
    ...access.certificates.map(({ as }, index) => ({ as, path: ['access', 'certificates', index, 'as'] })),
  ]
  return rows.flatMap(({ as, path }): Finding[] => {
    if (known.has(as)) return []
    const meant = suggest(as, names)
    return [
      {
        path,
        found: `${quote(as)}, which is nobody's name`,
        allowed: 'the name of a principal of the access file',
        suggestion: meant === undefined ? `add it with "stdio-bus token add ${as}"` : `did you mean ${quote(meant)}?`,
      },
    ]
  })
}

/** What patterns and variables can be about. */
interface World {
  /** Pools and agents. */
  readonly names: readonly string[]
  /** Pools with workers that are started for one principal. */
  readonly ownWorkers: ReadonlySet<string>
}

function worldOf({ bus, agents, launches }: BusConfig): World {
  const isOpenai = (launch: Launch | undefined): boolean =>
    launch !== undefined && 'agent' in launch && launch.agent === 'openai'
  const oneshots = new Set(
    agents.flatMap((agent) => (agent.type === 'stdio' && agent.mode === 'oneshot' ? agent.pool : [])),
  )
  const own = bus.pools.filter(
    ({ id, sharing }) => sharing === 'isolated' || isOpenai(launches.get(id)) || oneshots.has(id),
  )
  const names = new Set([...bus.pools.map(({ id }) => id), ...agents.map(({ name }) => name)])
  return { names: [...names], ownWorkers: new Set(own.map(({ id }) => id)) }
}

function withoutUse(entry: RightsEntry, path: Path, world: World): Finding[] {
  return [...idlePatterns(entry, path, world), ...idleVariables(entry, path, world)]
}

function idlePatterns({ pools, tools }: RightsEntry, path: Path, { names }: World): Finding[] {
  const isIdle = (pattern: string): boolean => !names.some((name) => matches(pattern, name))
  const ofPools = pools.map((pattern, index) => ({ pattern, about: pattern, path: [...path, 'pools', index] }))
  const ofTools = (['allow', 'deny'] as const).flatMap((list) =>
    (tools?.[list] ?? []).flatMap((pattern, index) => {
      const [about, tool] = pattern.split('::')
      return tool === undefined ? [] : [{ pattern, about: about!, path: [...path, 'tools', list, index] }]
    }),
  )
  return [...ofPools, ...ofTools]
    .filter(({ about }) => isIdle(about))
    .map(({ pattern, path: place }) => ({
      severity: 'warning' as const,
      path: place,
      found: `${quote(pattern)}, which matches no pool and no agent`,
      allowed: 'a pattern that one of them has',
    }))
}

function idleVariables({ pools, env = {} }: RightsEntry, path: Path, { ownWorkers }: World): Finding[] {
  const reached = [...ownWorkers].filter((pool) => matchesAny(pools, pool))
  return Object.entries(env).flatMap(([name, value]): Finding[] => {
    const isUsed = typeof value === 'string' ? reached.length > 0 : reached.includes(name)
    if (isUsed) return []
    const found = typeof value === 'string' ? 'a variable that no worker gets' : 'variables that no worker gets'
    const allowed = 'those for pools that "pools" allows, with sharing "isolated", agent "openai" or aio.mode "oneshot"'
    return [{ severity: 'warning', path: [...path, 'env', name], at: 'key', found, allowed }]
  })
}

/** Certificates that no door asks for. */
function certificatesWithoutDoor({ access, listen }: BusConfig): Finding[] {
  if (access === undefined || access.certificates.length === 0) return []
  if ([...listen.tls, ...listen.http].some(({ clientCa }) => clientCa !== undefined)) return []
  return [
    {
      severity: 'warning',
      path: ['access', 'certificates'],
      at: 'key',
      found: 'rows for certificates, which no door asks for',
      allowed: 'a door of listen.tls or listen.http with client_ca',
    },
  ]
}

/** What was done by whom is nobody else's business; devices have modes of their own. */
function auditOpenToOthers({ audit }: AccessConfig): Finding[] {
  const facts = audit && statSync(audit.file, { throwIfNoEntry: false })
  if (facts === undefined || !facts.isFile() || process.platform === 'win32' || (facts.mode & 0o077) === 0) return []
  const found = 'a file that others may use'
  const suggestion = `run chmod 600 ${audit!.file}`
  return [
    { severity: 'warning', path: ['access', 'audit'], found, allowed: 'a file only its owner may read', suggestion },
  ]
}
