/**
 * What one key of the file demands of another: names that must exist or be unique, doors that can be opened, variables
 * that must be set. One rule, one function; `RULES` is the list.
 *
 * The rules look at the raw value, so that they report their problems together with those of the schema. They say
 * nothing about values of a wrong kind: that is the schema's part.
 */
import { isLoopback, parseAddress, suggestAddress } from './address.ts'
import { aggregatesHoldTogether } from './aggregate-rules.ts'
import { clusterFindings } from './cluster-rules.ts'
import { type Environment, expandReferences } from './environment.ts'
import { WAYS_TO_NAME_A_PROGRAM } from './json-schema.ts'
import { type Places, resolvePath } from './paths.ts'
import { type Finding, listOf, type Path, quote } from './problem.ts'
import { asObject, entriesOf, poolExists, poolsOf, type Raw } from './raw-file.ts'
import { suggest } from './suggest.ts'
import { upstreamFindings } from './upstream-rules.ts'

export interface RuleContext {
  readonly places: Places
  readonly environment: Environment
}

type Rule = (file: Raw, context: RuleContext) => Finding[]

const RULES: readonly Rule[] = [
  eachPoolHasOneProgram,
  namesAreUnique,
  defaultPoolExists,
  fallbacksEnd,
  doorsCanBeOpened,
  instancesFit,
  optionsHaveTheirSubject,
  upstreamsCanBeReached,
  certificatesHaveTheirSubject,
  aioNamesCanBeCalled,
  agentsHaveAnAddress,
  referencesResolve,
  whoIsMeantIsWritten,
  tokensHaveAnAudience,
  keysComeSafely,
  aggregatesHoldTogether,
  keptSessionsHaveTheirSubject,
  storeIsSaidOnce,
  (file, { environment }) => clusterFindings(file, environment),
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
    return [{ path, found, allowed: `exactly one of ${listOf(WAYS_TO_NAME_A_PROGRAM.map(quote), 'and')}` }]
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
  const tcp = ['tcp', 'tls', 'http'].flatMap((kind) => doorsOf(listen[kind], ['listen', kind], 'address'))
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
    const type = aio?.['type'] ?? (['mcp', 'acp'].includes(String(entry['protocol'])) ? entry['protocol'] : 'stdio')
    const findings: Finding[] = []
    const refuse = (key: Path, allowed: string) =>
      findings.push({ path: [...path, ...key], at: 'key', found: quote(String(key.at(-1))), allowed })
    if ('distribution' in entry && !('registry' in entry)) refuse(['distribution'], 'only beside "registry"')
    if (entry['balance'] === 'session' && (entry['sharing'] ?? 'shared') !== 'shared')
      refuse(['balance'], 'only with sharing "shared": elsewhere a client has one worker at a time')
    if (aio?.['sampling'] !== undefined && type !== 'mcp') refuse(['aio', 'sampling'], 'only with aio.type "mcp"')
    if (aio?.['permissions'] !== undefined && type !== 'acp') refuse(['aio', 'permissions'], 'only with aio.type "acp"')
    findings.push(...samplingIsServed(file, aio?.['sampling'], [...path, 'aio', 'sampling']))
    if (aio?.['mode'] !== undefined && type !== 'stdio') refuse(['aio', 'mode'], 'only with aio.type "stdio"')
    return findings
  })
}

/** Which key says where an agent is, by its type, and which others mean nothing then. */
const AGENT_ADDRESSES = {
  http: { address: 'endpoint', strange: ['url'], allowed: 'only with type "mcp"' },
  mcp: { address: 'url', strange: ['endpoint', 'method_style'], allowed: 'only with type "http"' },
} as const

function agentsHaveAnAddress(file: Raw): Finding[] {
  return entriesOf(file, 'agents').flatMap(({ entry, path }) => {
    const { address, strange, allowed } = AGENT_ADDRESSES[entry['type'] === 'mcp' ? 'mcp' : 'http']
    const missing: Finding = { path: [...path, address], found: 'nothing', allowed: 'an http:// or https:// URL' }
    const stray = strange.filter((key) => key in entry)
    return [
      ...(entry[address] === undefined ? [missing] : []),
      ...stray.map((key): Finding => ({ path: [...path, key], at: 'key', found: quote(key), allowed })),
    ]
  })
}

function upstreamsCanBeReached(file: Raw, { environment }: RuleContext): Finding[] {
  return poolsOf(file).flatMap(({ entry, path }) => upstreamFindings(entry, path, environment))
}

/** What answers for a model is an agent that is there. */
function samplingIsServed(file: Raw, sampling: unknown, path: Path): Finding[] {
  const isLong = typeof sampling === 'object'
  const pool = isLong ? asObject(sampling)?.['pool'] : sampling
  const place = isLong ? [...path, 'pool'] : path
  if (isLong && asObject(sampling) !== undefined && Object.keys(sampling as object).length === 0)
    return [{ path, found: 'neither "tool" nor "pool"', allowed: 'one of them, or both' }]
  const unknown = poolExists(file, pool, place)
  const entry = poolsOf(file).find(({ entry: { id } }) => id === pool)?.entry
  if (unknown.length > 0 || entry === undefined || !speaksMcp(entry)) return unknown
  return [{ path: place, found: `${quote(String(pool))}, which speaks MCP`, allowed: 'a pool whose agent speaks ACP' }]
}

function speaksMcp(entry: Raw): boolean {
  return 'members' in entry || entry['protocol'] === 'mcp' || asObject(entry['aio'])?.['type'] === 'mcp'
}

/** Keys of certificates that mean nothing beside what is there. */
const CERTIFICATE_KEYS = [
  { key: 'client_cert', beside: 'client_ca' },
  { key: 'client_ca', beside: 'cert' },
  { key: 'cert', beside: 'key' },
  { key: 'key', beside: 'cert' },
] as const

/** The doors with TLS that say which clients' certificates they take, and web doors that have one of two files. */
function certificatesHaveTheirSubject(file: Raw): Finding[] {
  return (['tls', 'http'] as const).flatMap((kind) =>
    objectDoorsOf(file, kind).flatMap(({ door, path }) =>
      CERTIFICATE_KEYS.filter(({ beside }) => kind === 'http' || beside === 'client_ca').flatMap(
        ({ key, beside }): Finding[] =>
          door[key] === undefined || door[beside] !== undefined
            ? []
            : [{ path: [...path, key], at: 'key', found: quote(key), allowed: `only beside ${quote(beside)}` }],
      ),
    ),
  )
}

/** The doors of a kind that are written as objects. */
function objectDoorsOf(file: Raw, kind: string): { door: Raw; path: Path }[] {
  const value = asObject(file['listen'])?.[kind]
  const doors = Array.isArray(value)
    ? value.map((door, index) => ({ door: asObject(door), path: ['listen', kind, index] as Path }))
    : [{ door: asObject(value), path: ['listen', kind] as Path }]
  return doors.flatMap(({ door, path }) => (door === undefined ? [] : [{ door, path }]))
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
  const maps = poolsOf(file).flatMap(({ entry, path }): { map: unknown; path: Path }[] => [
    { map: entry['env'], path: [...path, 'env'] },
    { map: entry['headers'], path: [...path, 'headers'] },
    { map: { url: entry['url'], token: entry['token'] }, path },
  ])
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
    if (value === undefined) return []
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
  const isServed = asObject(file['listen'])?.['http'] !== undefined
  if (oauth === undefined) {
    const found = quote('public_url')
    return file['public_url'] === undefined || isServed
      ? []
      : [{ path: ['public_url'], at: 'key', found, allowed: 'only beside access.oauth or listen.http' }]
  }
  if (file['public_url'] !== undefined) return []
  const doors = objectDoorsOf(file, 'http')
  const isPublic = doors.length > 0 && doors.every(({ door }) => door['public_url'] !== undefined)
  if (isServed && !isPublic) return [withoutPublicUrl()]
  if (oauth['audience'] !== undefined || isPublic) return []
  return [
    {
      path: ['access', 'oauth'],
      found: 'neither "audience" nor "public_url"',
      allowed: 'tokens that were made for this bus',
      suggestion: 'add "public_url" at the top, the address of the bus as clients see it, or "audience" here',
    },
  ]
}

/** Contract 9.14: whoever is refused is told where the documents of the door are. */
function withoutPublicUrl(): Finding {
  return {
    path: ['access', 'oauth'],
    found: 'a web door without "public_url"',
    allowed: 'doors whose address clients can be told',
    suggestion: 'add "public_url" at the top, or in the door: its address as clients see it',
  }
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

/** Contract 12.1: sessions of ACP, with workers that stay with their clients. */
function keptSessionsHaveTheirSubject(file: Raw): Finding[] {
  return poolsOf(file).flatMap(({ entry, path }): Finding[] => {
    const sessions = asObject(entry['sessions'])
    const keepSec = sessions?.['keep_sec'] ?? 0
    if (sessions === undefined || keepSec === 0) return []
    const { sharing, protocol } = entry
    const findings: Finding[] = []
    const refuse = (allowed: string): void =>
      void findings.push({ path: [...path, 'sessions'], at: 'key', found: '"sessions"', allowed })
    if (sharing === 'lease') refuse('only with sharing "shared" or "isolated": a lease ends with the request')
    if (protocol === 'mcp' || protocol === 'plain') refuse(`only with protocol "acp" or "auto", not ${quote(protocol)}`)
    const question = sessions['question_sec']
    if (typeof question === 'number' && typeof keepSec === 'number' && question > keepSec)
      findings.push({
        path: [...path, 'sessions', 'question_sec'],
        found: String(question),
        allowed: `at most keep_sec, which is ${keepSec}`,
      })
    return findings
  })
}

function storeIsSaidOnce(file: Raw): Finding[] {
  if (file['store'] === undefined || asObject(file['aio'])?.['store'] === undefined) return []
  const allowed = 'one of "store" and "aio.store": they are the same'
  return [{ path: ['aio', 'store'], at: 'key', found: '"store" a second time', allowed }]
}

function accessOf(file: Raw): Raw {
  return asObject(file['access']) ?? {}
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

function namesOf(file: Raw): { name: string; path: Path }[] {
  const ids = poolsOf(file).map(({ entry, path }) => ({ name: entry['id'], path: [...path, 'id'] }))
  const names = entriesOf(file, 'agents').map(({ entry, path }) => ({ name: entry['name'], path: [...path, 'name'] }))
  return [...ids, ...names].filter(
    (it): it is { name: string; path: (string | number)[] } => typeof it.name === 'string',
  )
}
