/**
 * What one key of the file demands of another: names that must exist or be unique, doors that can be opened, variables
 * that must be set. One rule, one function; `RULES` is the list.
 *
 * The rules look at the raw value, so that they report their problems together with those of the schema. They say
 * nothing about values of a wrong kind: that is the schema's part.
 */
import { isLoopback, parseAddress, suggestAddress } from './address.ts'
import { type Environment, expandReferences } from './environment.ts'
import { WAYS_TO_NAME_A_PROGRAM } from './json-schema.ts'
import { type Places, resolvePath } from './paths.ts'
import { type Finding, listOf, type Path, quote } from './problem.ts'
import { suggest } from './suggest.ts'

export interface RuleContext {
  readonly places: Places
  readonly environment: Environment
}

type Raw = Readonly<Record<string, unknown>>
type Rule = (file: Raw, context: RuleContext) => Finding[]

const RULES: readonly Rule[] = [
  eachPoolHasOneProgram,
  namesAreUnique,
  defaultPoolExists,
  fallbacksEnd,
  doorsCanBeOpened,
  instancesFit,
  optionsHaveTheirSubject,
  certificatesHaveTheirSubject,
  aioNamesCanBeCalled,
  referencesResolve,
  whoIsMeantIsWritten,
  tokensHaveAnAudience,
  keysComeSafely,
]

/** The longest path that fits into a socket address on every system (contract 4.1.1). */
const MAX_SOCKET_PATH_BYTES = 103
const RESERVED_NAME = 'bus'
const AGENT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

export function checkRules(value: unknown, context: RuleContext): Finding[] {
  const file = asObject(value)
  return file === undefined ? [] : RULES.flatMap((rule) => rule(file, context))
}

function eachPoolHasOneProgram(file: Raw): Finding[] {
  return poolsOf(file).flatMap(({ entry, path }) => {
    const given = WAYS_TO_NAME_A_PROGRAM.filter((key) => Object.hasOwn(entry, key))
    // A misspelt one is reported as an unknown key, with the right spelling.
    const isMisspelt = Object.keys(entry).some((key) => suggest(key, WAYS_TO_NAME_A_PROGRAM) !== undefined)
    if (given.length === 1 || (given.length === 0 && isMisspelt)) return []
    const found = given.length === 0 ? 'none of them' : listOf(given.map(quote), 'and')
    return [{ path, found, allowed: 'exactly one of "command", "agent" and "registry"' }]
  })
}

function namesAreUnique(file: Raw): Finding[] {
  const seen = new Set<string>()
  return namesOf(file).flatMap(({ name, path }) => {
    if (name === RESERVED_NAME)
      return [{ path, found: quote(name), allowed: "any other name: methods in bus:: are the bus's own" }]
    if (!seen.has(name)) return seen.add(name) && []
    return [{ path, found: `${quote(name)} a second time`, allowed: 'a name of its own for each pool and agent' }]
  })
}

function defaultPoolExists(file: Raw): Finding[] {
  return poolExists(file, file['default_pool'], ['default_pool'])
}

/** Each names another pool, and whoever follows them comes to an end. */
function fallbacksEnd(file: Raw): Finding[] {
  const next = new Map(poolsOf(file).map(({ entry }) => [entry['id'], entry['fallback']]))
  return poolsOf(file).flatMap(({ entry: { id, fallback }, path }): Finding[] => {
    const place = [...path, 'fallback']
    const chain = new Set<unknown>()
    for (let pool = fallback; pool !== undefined && !chain.has(pool); pool = next.get(pool)) chain.add(pool)
    if (fallback === undefined || !chain.has(id)) return poolExists(file, fallback, place)
    const way = [id, ...chain].map((pool) => quote(String(pool))).join(' to ')
    const found = fallback === id ? 'the pool itself' : `a way that comes back: ${way}`
    return [{ path: place, found, allowed: 'another pool, whose own fallbacks end' }]
  })
}

function doorsCanBeOpened(file: Raw, { places }: RuleContext): Finding[] {
  const listen = asObject(file['listen']) ?? {}
  const unix = doorsOf(listen['unix'], ['listen', 'unix'], 'path')
  const tcp = ['tcp', 'tls'].flatMap((kind) => doorsOf(listen[kind], ['listen', kind], 'address'))
  const control = typeof file['control'] === 'string' ? [{ text: file['control'], path: ['control'] }] : []
  return [
    ...[...unix, ...control].flatMap(({ text, path }) => socketFits(text, path, places)),
    ...tcp.flatMap(({ text, path }) => addressIsOne(text, path)),
    ...[...unix, ...tcp].flatMap(({ pool, poolPath }) => poolExists(file, pool, poolPath)),
  ]
}

function instancesFit(file: Raw): Finding[] {
  return poolsOf(file).flatMap(({ entry, path }) => {
    const { instances, max_instances: most, sharing } = entry
    if (instances === 0 && sharing !== 'isolated') {
      return [{ path: [...path, 'instances'], found: '0', allowed: 'at least 1, unless sharing is "isolated"' }]
    }
    if (typeof instances !== 'number' || typeof most !== 'number' || most >= instances) return []
    return [
      { path: [...path, 'max_instances'], found: String(most), allowed: `at least instances, which is ${instances}` },
    ]
  })
}

/** Options that mean nothing beside another one are mistakes, not decoration. */
function optionsHaveTheirSubject(file: Raw): Finding[] {
  return poolsOf(file).flatMap(({ entry, path }) => {
    const aio = asObject(entry['aio'])
    const type = aio?.['type'] ?? (entry['protocol'] === 'mcp' ? 'mcp' : 'stdio')
    const findings: Finding[] = []
    const refuse = (key: Path, allowed: string) =>
      findings.push({ path: [...path, ...key], at: 'key', found: quote(String(key.at(-1))), allowed })
    if ('distribution' in entry && !('registry' in entry)) refuse(['distribution'], 'only beside "registry"')
    if (entry['balance'] === 'session' && (entry['sharing'] ?? 'shared') !== 'shared')
      refuse(['balance'], 'only with sharing "shared": elsewhere a client has one worker at a time')
    if (aio?.['sampling'] !== undefined && type !== 'mcp') refuse(['aio', 'sampling'], 'only with aio.type "mcp"')
    if (aio?.['mode'] !== undefined && type !== 'stdio') refuse(['aio', 'mode'], 'only with aio.type "stdio"')
    return findings
  })
}

/** The doors with TLS that say which clients' certificates they take. */
function certificatesHaveTheirSubject(file: Raw): Finding[] {
  const value = asObject(file['listen'])?.['tls']
  const doors = Array.isArray(value)
    ? value.map((door, index) => ({ door: asObject(door), path: ['listen', 'tls', index] }))
    : [{ door: asObject(value), path: ['listen', 'tls'] }]
  return doors.flatMap(({ door, path }): Finding[] => {
    if (door?.['client_cert'] === undefined || door['client_ca'] !== undefined) return []
    return [{ path: [...path, 'client_cert'], at: 'key', found: '"client_cert"', allowed: 'only beside "client_ca"' }]
  })
}

function aioNamesCanBeCalled(file: Raw): Finding[] {
  return poolsOf(file).flatMap(({ entry, path }) => {
    const id = entry['id']
    if (typeof id !== 'string' || id === '' || entry['aio'] === undefined || AGENT_NAME.test(id)) return []
    return [
      {
        path: [...path, 'id'],
        found: quote(id),
        allowed: 'beside "aio" a name of letters, digits, ".", "_" and "-", at most 64',
      },
    ]
  })
}

function referencesResolve(file: Raw, { environment }: RuleContext): Finding[] {
  const otlp = asObject(asObject(file['aio'])?.['otlp'])
  const maps = poolsOf(file).map(({ entry, path }) => ({ map: entry['env'], path: [...path, 'env'] as Path }))
  maps.push(
    ...entriesOf(file, 'agents').map(({ entry, path }) => ({ map: entry['headers'], path: [...path, 'headers'] })),
  )
  maps.push({ map: otlp?.['headers'], path: ['aio', 'otlp', 'headers'] })
  maps.push({ map: asObject(accessOf(file)['anonymous'])?.['env'], path: ['access', 'anonymous', 'env'] })
  return maps.flatMap(({ map, path }) => unresolvedIn(map, path, environment))
}

/** References in a map of variables, also one that has maps for single pools, that lead nowhere. */
export function unresolvedIn(map: unknown, path: Path, environment: Environment): Finding[] {
  return Object.entries(asObject(map) ?? {}).flatMap(([name, value]) => {
    const place = [...path, name]
    return typeof value === 'string'
      ? referenceFindings(value, place, environment)
      : unresolvedIn(value, place, environment)
  })
}

function referenceFindings(text: string, path: Path, environment: Environment): Finding[] {
  const { unset, malformed } = expandReferences(text, environment)
  const findings: Finding[] = unset.map((name) => ({
    path,
    found: `\${${name}}, which is not set`,
    allowed: 'variables of the environment the bus is started in',
    suggestion: `set ${name}, or write $\${${name}} if you mean the text itself`,
  }))
  if (!malformed) return findings
  return [
    ...findings,
    { path, found: `"\${" without a name and "}"`, allowed: `\${NAME}`, suggestion: `write $\${ for a literal \${` },
  ]
}

/** Rows that say `as` need the file in which that principal is. */
function whoIsMeantIsWritten(file: Raw): Finding[] {
  const access = accessOf(file)
  if (access['file'] !== undefined) return []
  const allowed = 'only beside access.file, which has the principals that "as" names'
  const places: Path[] = []
  if (asObject(access['oauth'])?.['map'] !== undefined) places.push(['access', 'oauth', 'map'])
  if (Array.isArray(access['certificates']) && access['certificates'].length > 0)
    places.push(['access', 'certificates'])
  return places.map((path) => ({ path, at: 'key', found: quote(String(path.at(-1))), allowed }))
}

/** Contract 9.11, 9.14: whom a token is for is said by one of the two. */
function tokensHaveAnAudience(file: Raw): Finding[] {
  const oauth = asObject(accessOf(file)['oauth'])
  if (oauth === undefined) {
    const found = quote('public_url')
    return file['public_url'] === undefined
      ? []
      : [{ path: ['public_url'], at: 'key', found, allowed: 'only beside access.oauth' }]
  }
  if (oauth['audience'] !== undefined || file['public_url'] !== undefined) return []
  return [
    {
      path: ['access', 'oauth'],
      found: 'neither "audience" nor "public_url"',
      allowed: 'tokens that were made for this bus',
      suggestion: 'add "public_url" at the top, the address of the bus as clients see it, or "audience" here',
    },
  ]
}

/** Contract 9.12: what is believed about tokens does not come over a network in plain. */
function keysComeSafely(file: Raw): Finding[] {
  const oauth = asObject(accessOf(file)['oauth']) ?? {}
  return ['issuer', 'jwks_url'].flatMap((key): Finding[] => {
    const text = oauth[key]
    if (typeof text !== 'string' || !/^http:/i.test(text) || !URL.canParse(text)) return []
    const host = new URL(text).hostname.replace(/^\[|\]$/g, '')
    if (isLoopback({ host, port: 0 })) return []
    const found = `http:// to ${quote(host)}`
    return [{ path: ['access', 'oauth', key], found, allowed: 'https://, or http:// to this machine' }]
  })
}

function accessOf(file: Raw): Raw {
  return asObject(file['access']) ?? {}
}

function poolExists(file: Raw, name: unknown, path: Path): Finding[] {
  const ids = [...new Set(poolsOf(file).flatMap(({ entry }) => (typeof entry['id'] === 'string' ? [entry['id']] : [])))]
  if (typeof name !== 'string' || name === '' || ids.includes(name)) return []
  const meant = suggest(name, ids)
  const finding: Finding = {
    path,
    found: quote(name),
    allowed: ids.length === 0 ? 'the id of a pool' : listOf(ids.map(quote)),
  }
  return [meant === undefined ? finding : { ...finding, suggestion: `did you mean ${quote(meant)}?` }]
}

function socketFits(text: string, path: Path, places: Places): Finding[] {
  const bytes = Buffer.byteLength(resolvePath(text, places))
  if (bytes <= MAX_SOCKET_PATH_BYTES) return []
  const found = `a path of ${bytes} bytes`
  return [
    {
      path,
      found,
      allowed: `at most ${MAX_SOCKET_PATH_BYTES} bytes, counted from the root`,
      suggestion: 'choose a directory nearer to the root',
    },
  ]
}

function addressIsOne(text: string, path: Path): Finding[] {
  if (text === '' || parseAddress(text) !== undefined) return []
  const meant = suggestAddress(text)
  const allowed = 'HOST:PORT, where HOST is a name, an IPv4 address or [IPv6], and PORT is 0 to 65535'
  const finding: Finding = { path, found: quote(text), allowed }
  return [meant === undefined ? finding : { ...finding, suggestion: `did you mean ${quote(meant)}?` }]
}

interface DoorText {
  readonly text: string
  readonly path: Path
  readonly pool: unknown
  readonly poolPath: Path
}

/** The doors behind one key, whether written short, long or as a list. */
function doorsOf(value: unknown, path: Path, textKey: string): DoorText[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => doorsOf(item, [...path, index], textKey))
  const poolPath = [...path, 'pool']
  if (typeof value === 'string') return [{ text: value, path, pool: undefined, poolPath }]
  const door = asObject(value)
  const text = door?.[textKey]
  return typeof text === 'string' ? [{ text, path: [...path, textKey], pool: door?.['pool'], poolPath }] : []
}

function poolsOf(file: Raw): { entry: Raw; path: Path }[] {
  return entriesOf(file, 'pools')
}

function namesOf(file: Raw): { name: string; path: Path }[] {
  const ids = poolsOf(file).map(({ entry, path }) => ({ name: entry['id'], path: [...path, 'id'] }))
  const names = entriesOf(file, 'agents').map(({ entry, path }) => ({ name: entry['name'], path: [...path, 'name'] }))
  return [...ids, ...names].filter(
    (it): it is { name: string; path: (string | number)[] } => typeof it.name === 'string',
  )
}

function entriesOf(file: Raw, key: string): { entry: Raw; path: Path }[] {
  const list = file[key]
  if (!Array.isArray(list)) return []
  return list.flatMap((item, index) => {
    const entry = asObject(item)
    return entry === undefined ? [] : [{ entry, path: [key, index] }]
  })
}

function asObject(value: unknown): Raw | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Raw) : undefined
}
