/**
 * What the console shows and changes of the configuration and the access file (contract 15.12, 15.14).
 *
 * Files are read when somebody looks, never kept. The access file only shrinks from here.
 */
import { editAccessFile } from '../../access/access-edit.ts'
import { parseAccessFile, readAccessBytes } from '../../access/access-file.ts'
import type { PrincipalEntry } from '../../access/access-schema.ts'
import { removePrincipal } from '../../access/principal-edit.ts'
import { rowOf } from '../../access/principal-listing.ts'
import type { Sighting } from '../../access/sightings.ts'
import type { BusConfig, Listen } from '../../config/bus-config.ts'
import { changesBetween } from '../../config/changes.ts'
import { effectiveValues } from '../../config/effective.ts'
import type { Problem } from '../../config/problem.ts'
import { readConfig } from '../../config/read.ts'
import type { ConfigurationView, PoolView, PrincipalView } from '../../console/api/port.ts'
import type { Status } from '../../console/status.ts'
import type { PoolRow } from '../../kernel/roll.ts'
import { allProblemsOf } from '../all-problems.ts'

/** Those of the access file, and whoever is there beside them; undefined where nobody is told apart. */
export function viewPrincipals(
  file: string | undefined,
  { principals }: Status,
  sighted: (name: string) => Sighting | undefined,
): PrincipalView[] | undefined {
  if (file === undefined && principals === undefined) return undefined
  const listed = file === undefined ? [] : listPrincipals(file)
  const names = new Set(listed.map(({ name }) => name))
  const present = new Map((principals ?? []).map((principal) => [principal.name, principal]))
  const counts = (name: string): Counts => {
    const { connections = 0, pending = 0, refused = 0 } = present.get(name) ?? {}
    const { via = null, lastSeenMs, refused: before = 0 } = sighted(name) ?? {}
    const lastSeen = lastSeenMs === undefined ? null : new Date(lastSeenMs).toISOString()
    return { connections, pending, refused: Math.max(refused, before), via, last_seen: lastSeen }
  }
  const known = listed.map(({ name, role, pools, tokens }) => {
    const ends = tokens.map(({ expires }) => ({ expires }))
    return { name, role, pools, is_listed: true, tokens: ends, ...counts(name) }
  })
  const others = [...present.keys()]
    .filter((name) => !names.has(name))
    .map((name) => ({ name, role: null, pools: null, is_listed: false, tokens: [], ...counts(name) }))
  return [...known, ...others]
}

type Counts = Pick<PrincipalView, 'connections' | 'pending' | 'refused' | 'via' | 'last_seen'>

/** What a pool speaks is what its workers have shown; one that is made of others speaks MCP. */
export function viewPools({ bus, aggregates, launches }: BusConfig, rows: readonly PoolRow[]): PoolView[] {
  const made = new Set<string>(aggregates.map(({ id }) => id))
  const known = new Map(rows.map((row) => [row.id, row]))
  return bus.pools.map(({ id, keeping }) => {
    const { protocol = null, ready = 0 } = known.get(id) ?? {}
    const launch = launches.get(id)
    const cwd = launch !== undefined && 'cwd' in launch ? launch.cwd : null
    return { id, protocol: made.has(id) ? 'mcp' : protocol, ready, keeps_sessions: keeping !== undefined, cwd }
  })
}

function listPrincipals(file: string): ReturnType<typeof rowOf>[] {
  return entriesOf(file).map((entry) => rowOf(entry, Date.now()))
}

/** A file that cannot be read is told of elsewhere. */
export function entriesOf(file: string): readonly PrincipalEntry[] {
  try {
    const read = readAccessBytes(file)
    const parsed = read.ok ? parseAccessFile(file, read.bytes) : read
    return parsed.ok ? parsed.entries : []
  } catch {
    return []
  }
}

/** As `token rm` does; false: there is nobody of this name. */
export async function revokePrincipal(file: string | undefined, name: string): Promise<boolean> {
  if (file === undefined) return false
  let isFound = false
  await editAccessFile(file, false, (current) => {
    isFound = current.entries.some((entry) => entry.name === name)
    return isFound ? removePrincipal(current, name) : undefined
  })
  return isFound
}

/** What runs is what was read when the bus last took the file; what is on disk now is only judged. */
export async function viewConfiguration(
  running: BusConfig,
  flags: Readonly<Record<string, unknown>> = {},
): Promise<ConfigurationView> {
  const reading = await readConfig(running.file)
  const findings = (await allProblemsOf(reading, process.env)).map(findingOf)
  const settings = effectiveValues({ ...running.source, file: running.file }, flags)
  if (!reading.ok) {
    const problem = 'the file has mistakes: a reload would be refused, and the old configuration stays'
    return { file: running.file, settings, findings, pending: { changed: [], problem } }
  }
  const changed = changedParts(running, reading.config)
  const problem = changed.includes('listen') ? 'listen has changed: that needs a restart of the bus' : null
  return { file: running.file, settings, findings, pending: { changed, problem } }
}

/** The keys of the file that the command line has replaced: its doors stand for all of `listen` (contract 4.1.1). */
export function keysOfFlags(
  { listen }: BusConfig,
  { doors, control }: { readonly doors: Listen; readonly control: string | undefined },
): Readonly<Record<string, unknown>> {
  const named = { unix: doors.unix, tcp: doors.tcp, tls: doors.tls, http: doors.http }
  const isReplaced = JSON.stringify(named) !== JSON.stringify(listen)
  return {
    ...(isReplaced ? { listen: addressesOf(named) } : {}),
    ...(control === undefined ? {} : { control }),
  }
}

function addressesOf({ unix, tcp, tls, http }: Listen): Record<string, readonly string[]> {
  const byNetwork = ({ host, port }: { readonly host: string; readonly port: number }): string =>
    `${host.includes(':') ? `[${host}]` : host}:${port}`
  const found = {
    unix: unix.map(({ path }) => path),
    tcp: tcp.map(byNetwork),
    tls: tls.map(byNetwork),
    http: http.map(byNetwork),
  }
  return Object.fromEntries(Object.entries(found).filter(([, addresses]) => addresses.length > 0))
}

function findingOf({ severity, file, line, path, found, allowed, suggestion }: Problem) {
  const text = `found ${found}; allowed: ${allowed}${suggestion === undefined ? '' : `; ${suggestion}`}`
  return { severity, place: `${file}:${line}${path === '' ? '' : ` ${path}`}`, text }
}

/** The parts that a reload would change, by the words of the file. */
function changedParts(running: BusConfig, next: BusConfig): string[] {
  const { pools, keys } = changesBetween(running, next)
  return [...pools.map(({ pool }) => `pools: ${pool}`), ...keys]
}
