/**
 * The one place where the spelling of the file becomes the spelling of the program: seconds become milliseconds, paths
 * become absolute, `${NAME}` becomes its value, `max_input_buffer` becomes `maxInputBufferBytes`.
 *
 * It is given a file that has passed the schema and decides nothing more about it. Only a draft (see `draft.ts`) may break
 * the rules; what cannot be translated is then left out.
 */
import { createHash } from 'node:crypto'
import type { z } from 'zod'
import { DEFAULT_LIMITS, type Limits } from '../kernel/limits.ts'
import type { Balance, BusSpec, Keeping, PoolId, PoolSpec, Protocol } from '../kernel/vocabulary.ts'
import { parseAddress } from './address.ts'
import type {
  AccessConfig,
  AggregateConfig,
  AioAgent,
  AioConfig,
  BusConfig,
  ClusterConfig,
  HttpDoor,
  Launch,
  Listen,
  MemberConfig,
  OauthConfig,
  RegistryConfig,
  RemoteLaunch,
  TlsDoor,
} from './bus-config.ts'
import { nodeOfHost } from './cluster-rules.ts'
import { type Environment, expandReferences } from './environment.ts'
import { httpDoor } from './http-schema.ts'
import { LIMIT_KEYS, layLimits, POOL_LIMIT_NAMES } from './limit-keys.ts'
import { type Places, resolvePath } from './paths.ts'
import { translateEnvironment, translateRights } from './rights-schema.ts'
import { aioSection, type ConfigFile, type PoolEntry } from './schema.ts'
import { SCHEMES, schemeOf } from './upstream-rules.ts'

const TIMEOUT_MS = 30_000
const ACP_TIMEOUT_MS = 600_000
const DEFAULT_STORE = '~/.stdio-bus/traces.db'

export interface TranslateContext {
  /** Absolute. */
  readonly file: string
  readonly places: Places
  readonly environment: Environment
}

export function translate(file: ConfigFile, context: TranslateContext): Omit<BusConfig, 'source'> {
  const registry = translateRegistry(file.registry, context)
  const withWorkers = file.pools.filter(({ members }) => members === undefined)
  const launches = new Map(withWorkers.map((entry) => [entry.id, translateLaunch(entry, context)]))
  const bus = translateBus(file, launches, registry)
  const agents = translateAgents(file, bus, launches, context)
  return {
    file: context.file,
    bus,
    launches,
    aggregates: file.pools.flatMap(translateAggregate),
    listen: translateListen(file, context.places),
    control: file.control === undefined ? undefined : resolvePath(file.control, context.places),
    aio: translateAio(file, agents.length > 0, context),
    agents,
    registry,
    access: translateAccess(file, context),
    ...(file.public_url === undefined ? {} : { publicUrl: withoutSlash(file.public_url) }),
    ...(file.cluster === undefined ? {} : { cluster: translateCluster(file.cluster, context) }),
  }
}

function translateCluster(
  file: NonNullable<ConfigFile['cluster']>,
  { places, environment }: TranslateContext,
): ClusterConfig {
  const { credentials, tls, local, js_domain: jsDomain } = file
  const at = (path: string): string => resolvePath(path, places)
  return {
    servers: listOf(file.nats).map((url) => expandReferences(url, environment).value),
    name: file.name,
    node: file.node ?? nodeOfHost() ?? '',
    ...(credentials === undefined ? {} : { credentials: at(credentials) }),
    tls: {
      ...(tls.ca && { ca: at(tls.ca) }),
      ...(tls.cert && { cert: at(tls.cert) }),
      ...(tls.key && { key: at(tls.key) }),
    },
    exports: file.export,
    imports: file.import,
    ...(local === undefined ? {} : { local }),
    ...(jsDomain === undefined ? {} : { jsDomain }),
    lostAfterMs: file.lost_after_ms,
  }
}

function translateBus(file: ConfigFile, launches: ReadonlyMap<PoolId, Launch>, registry: RegistryConfig): BusSpec {
  const general = layLimits(DEFAULT_LIMITS, file.limits)
  const members = new Set(
    file.pools.flatMap(translateAggregate).flatMap((each) => each.members.map(({ pool }) => pool)),
  )
  const pools = file.pools.map((entry) =>
    entry.members === undefined
      ? translatePool(members.has(entry.id) ? asMember(entry) : entry, general, launches.get(entry.id)!, registry)
      : aggregatePool(entry, general),
  )
  // A client's line may be as long as the largest that any pool takes (contract 8.1).
  const gateway = gatewayOf(file)
  const longest = Math.max(general.maxInputBufferBytes, ...pools.map(({ limits }) => limits.maxInputBufferBytes))
  const node = file.cluster === undefined ? {} : { node: file.cluster.node ?? nodeOfHost() ?? '' }
  return {
    pools,
    defaultPool: file.default_pool,
    limits: { ...general, maxInputBufferBytes: longest },
    gateway,
    ...node,
  }
}

/** What the kernel hands to the gateway (spec N1): traces can be asked for wherever some are kept. */
function gatewayOf({ aio, agents, pools }: ConfigFile): 'off' | 'bus' | 'all' {
  if (aio !== undefined || agents.length > 0 || pools.some((entry) => entry.aio !== undefined)) return 'all'
  return pools.some(({ trace }) => trace) ? 'bus' : 'off'
}

function agentType({ aio, protocol }: PoolEntry): 'stdio' | 'mcp' | 'acp' | undefined {
  return aio && (aio.type ?? (protocol === 'mcp' || protocol === 'acp' ? protocol : 'stdio'))
}

/** The pool that answers when a server asks for a model. */
function samplingOf({ aio }: PoolEntry): { readonly tool?: string | undefined; readonly pool?: string | undefined } {
  const { sampling } = aio ?? {}
  return typeof sampling === 'string' ? { pool: sampling } : (sampling ?? {})
}

function translatePool(entry: PoolEntry, general: Limits, launch: Launch, registry: RegistryConfig): PoolSpec {
  const isOneshot = agentType(entry) === 'stdio' && entry.aio?.mode === 'oneshot'
  const spec = {
    id: entry.id,
    // Processes that live for one call are started by the gateway.
    instances: isOneshot ? 0 : entry.instances,
    maxInstances: Math.max(entry.instances, entry.max_instances),
    sharing: entry.sharing,
    balance: balanceOf(entry),
    ...(entry.fallback === undefined ? {} : { fallback: entry.fallback }),
    protocol: protocolOf(entry, launch),
    era: entry.era,
    restart: entry.restart,
    startTimeoutMs: entry.start_timeout_sec * 1000,
    hangTimeoutMs: entry.hang_timeout_sec * 1000,
    limits: layLimits(general, entry.limits),
    trace: entry.trace,
    ...(entry.url === undefined ? {} : { isRemote: true }),
    ...(isOneshot ? { isAioOnly: true } : {}),
    ...(samplingOf(entry).pool === undefined ? {} : { offers: { sampling: {} } }),
    ...keepingOf(entry),
    ...(entry.sessions?.portable === true ? { isPortable: true as const } : {}),
  }
  const bounds = POOL_LIMIT_NAMES.map((key) => spec.limits[LIMIT_KEYS[key].name])
  const origin = 'registry' in launch ? registry : undefined
  return { ...spec, revision: revisionOf([{ ...spec, instances: 0, limits: bounds }, launch, entry.aio, origin]) }
}

/** A member is greeted at its start, as a server that agents call is. */
function asMember(entry: PoolEntry): PoolEntry {
  return (entry.protocol ?? 'auto') === 'auto' ? { ...entry, protocol: 'mcp' } : entry
}

/** It has no workers: whatever is for it is handed on. */
function aggregatePool(entry: PoolEntry, limits: Limits): PoolSpec {
  const { id, members, mode, pin, max_name, list_wait_ms } = entry
  return {
    id,
    instances: 0,
    maxInstances: 0,
    sharing: 'shared',
    protocol: 'mcp',
    era: 'auto',
    restart: 'never',
    startTimeoutMs: 0,
    hangTimeoutMs: 0,
    limits,
    trace: false,
    isAggregate: true,
    revision: revisionOf([id, members, mode, pin, max_name, list_wait_ms]),
  }
}

function translateAggregate(entry: PoolEntry): AggregateConfig[] {
  const { id, members, mode, pin, max_name: maxNameLength, list_wait_ms: listWaitMs } = entry
  if (members === undefined) return []
  return [{ id, members: members.map(translateMember), mode, pin, maxNameLength, listWaitMs }]
}

function translateMember(member: NonNullable<PoolEntry['members']>[number]): MemberConfig {
  if (typeof member === 'string') return { pool: member, allow: ['*'], deny: [], rename: new Map() }
  const { pool, prefix, allow, deny, rename } = member
  return { pool, ...(prefix === undefined ? {} : { prefix }), allow, deny, rename: new Map(Object.entries(rename)) }
}

/** Sessions of a pool that keeps them for no time at all end with their clients. */
function keepingOf({ sessions }: PoolEntry): { readonly keeping?: Keeping } {
  if (sessions === undefined || sessions.keep_sec === 0) return {}
  const { keep_sec: keepSec, journal, question_sec: questionSec = keepSec, max_bytes, max_kept } = sessions
  return {
    keeping: {
      keepMs: keepSec * 1000,
      isJournaled: journal,
      questionMs: questionSec * 1000,
      maxBytes: max_bytes,
      maxKept: max_kept,
    },
  }
}

function protocolOf(entry: PoolEntry, launch: Launch): Protocol {
  const { agent, aio, registry, protocol } = entry
  if ('url' in launch && SCHEMES[schemeOf(launch.url) ?? '']?.kind === 'http') return 'mcp'
  // A server that agents call is greeted at its start.
  const type = agentType(entry)
  if (type !== undefined && type !== 'stdio' && (protocol ?? 'auto') === 'auto') return type
  if (protocol !== undefined) return protocol
  // Agents of the registry may have been written for AIO, but then the file says so.
  const isAcp = agent === 'openai' || agent === 'registry' || registry !== undefined
  return isAcp && aio === undefined ? 'acp' : 'auto'
}

/** Sessions of the OpenAI agent share nothing but its settings: each may be in another process. */
function balanceOf({ agent, balance, sharing }: PoolEntry): Balance {
  if (balance !== undefined) return balance
  return agent === 'openai' && sharing === 'shared' ? 'session' : 'connection'
}

/** A fingerprint of everything that makes a pool what it is; secrets go in, only the digest comes out. */
function revisionOf(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts, sortKeys)).digest('hex').slice(0, 16)
}

/** The order in which keys are written in the file changes nothing. */
function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function translateLaunch(entry: PoolEntry, context: TranslateContext): Launch {
  const { places } = context
  if (entry.url !== undefined) return translateRemote(entry, entry.url, context)
  const common = {
    args: entry.args,
    env: expandAll(entry.env, context.environment),
    inheritEnv: entry.inherit_env,
    cwd: entry.cwd === undefined ? places.startedIn : resolvePath(entry.cwd, places),
    pipes: entry.pipes,
  }
  if (entry.agent !== undefined) return { agent: entry.agent, ...common }
  if (entry.registry !== undefined) return { registry: entry.registry, distribution: entry.distribution, ...common }
  const command = entry.command ?? ''
  return { command: command.startsWith('~/') ? resolvePath(command, places) : command, ...common }
}

function translateRemote(entry: PoolEntry, url: string, { places, environment }: TranslateContext): RemoteLaunch {
  const { token, pool, ca, cert, key } = entry
  const text = expandReferences(url, environment).value
  const at = (file: string): string => resolvePath(file, places)
  return {
    url: schemeOf(text) === 'unix' ? `unix:${at(text.slice('unix:'.length))}` : text,
    headers: expandAll(entry.headers, environment),
    ...(token === undefined ? {} : { token: expandReferences(token, environment).value }),
    ...(pool === undefined ? {} : { pool }),
    tls: { ...(ca && { ca: at(ca) }), ...(cert && { cert: at(cert) }), ...(key && { key: at(key) }) },
    connectTimeoutMs: entry.connect_timeout_sec * 1000,
  }
}

function expandAll(map: Readonly<Record<string, string>>, environment: Environment): Record<string, string> {
  const entries = Object.entries(map).map(([name, text]) => [name, expandReferences(text, environment).value])
  return Object.fromEntries(entries)
}

function translateListen({ listen, public_url: publicUrl }: ConfigFile, places: Places): Listen {
  const unix = listOf(listen.unix).map((door) => (typeof door === 'string' ? { path: door } : door))
  const tcp = listOf(listen.tcp).map((door) => (typeof door === 'string' ? { address: door } : door))
  return {
    unix: unix.map(({ path, pool }) => ({ path: resolvePath(path, places), pool })),
    tcp: tcp.flatMap(({ address, pool }) => {
      const parsed = parseAddress(address)
      return parsed === undefined ? [] : [{ ...parsed, pool }]
    }),
    tls: listOf(listen.tls).flatMap((door) => translateTlsDoor(door, places)),
    http: listOf(listen.http).flatMap((door) =>
      translateHttpDoor(typeof door === 'string' ? httpDoor.parse({ address: door }) : door, publicUrl, places),
    ),
  }
}

type HttpEntry = z.output<typeof httpDoor>

function translateHttpDoor(door: HttpEntry, general: string | undefined, places: Places): HttpDoor[] {
  const parsed = parseAddress(door.address)
  if (parsed === undefined) return []
  const { cert, key, client_ca: clientCa, sessions_file: sessionsFile } = door
  const publicUrl = door.public_url ?? general
  const files = Object.entries({ cert, key, clientCa, sessionsFile }).flatMap(([name, path]) =>
    path === undefined ? [] : [[name, resolvePath(path, places)]],
  )
  return [
    {
      ...parsed,
      pool: door.pool,
      ...Object.fromEntries(files),
      isClientCertOptional: door.client_cert === 'optional',
      sessionIdleMs: door.session_idle_sec * 1000,
      maxConnections: door.max_connections,
      hasConsole: door.console,
      ...(publicUrl === undefined ? {} : { publicUrl: withoutSlash(publicUrl) }),
      hosts: door.hosts,
      origins: door.origins,
    },
  ]
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '')
}

type TlsEntry = Exclude<NonNullable<ConfigFile['listen']['tls']>, unknown[]>

function translateTlsDoor(door: TlsEntry, places: Places): TlsDoor[] {
  const parsed = parseAddress(door.address)
  if (parsed === undefined) return []
  const { pool, cert, key, client_ca: clientCa, client_cert: clientCert } = door
  return [
    {
      ...parsed,
      pool,
      cert: resolvePath(cert, places),
      key: resolvePath(key, places),
      ...(clientCa === undefined ? {} : { clientCa: resolvePath(clientCa, places) }),
      isClientCertOptional: clientCert === 'optional',
    },
  ]
}

function translateAccess(
  { access, public_url: publicUrl }: ConfigFile,
  context: TranslateContext,
): AccessConfig | undefined {
  if (access === undefined) return undefined
  const { file, anonymous, oauth, certificates } = access
  const { places, environment } = context
  const audit = typeof access.audit === 'string' ? { file: access.audit, required: false } : access.audit
  return {
    ...(file === undefined ? {} : { file: resolvePath(file, places) }),
    // Whoever shows nothing is never more than a user (contract 9.1).
    anonymous: anonymous === false ? false : translateRights('user', anonymous),
    anonymousEnvironment: translateEnvironment(anonymous === false ? {} : (anonymous.env ?? {}), environment),
    ...(audit === undefined ? {} : { audit: { file: resolvePath(audit.file, places), isRequired: audit.required } }),
    ...(oauth === undefined ? {} : { oauth: translateOauth(oauth) }),
    certificates,
    ...(publicUrl === undefined ? {} : { publicUrl: withoutSlash(publicUrl) }),
  }
}

function translateOauth({ issuer, audience, jwks_url: jwksUrl, map }: OauthEntry): OauthConfig {
  return { issuer, audience: listOf(audience), ...(jwksUrl === undefined ? {} : { jwksUrl }), map }
}

type OauthEntry = NonNullable<NonNullable<ConfigFile['access']>['oauth']>

function listOf<T>(value: T | T[] | undefined): T[] {
  if (value === undefined) return []
  return Array.isArray(value) ? value : [value]
}

function translateAio(file: ConfigFile, hasAgents: boolean, { places, environment }: TranslateContext): AioConfig {
  const { store: spelledOtherwise, otlp, remote_queries: remoteQueries } = file.aio ?? aioSection.parse({})
  const store = file.store ?? spelledOtherwise
  return {
    enabled: file.aio !== undefined || hasAgents,
    store: {
      path: resolvePath(store.path ?? DEFAULT_STORE, places),
      retentionDays: store.retention_days,
      payloadBytes: store.payload_bytes,
      redact: store.redact,
    },
    otlp: otlp && { ...otlp, headers: expandAll(otlp.headers, environment) },
    remoteQueries,
  }
}

function translateAgents(
  file: ConfigFile,
  bus: BusSpec,
  launches: ReadonlyMap<PoolId, Launch>,
  { environment, places }: TranslateContext,
): AioAgent[] {
  const cwdOf = (pool: PoolId): string => {
    const launch = launches.get(pool)
    return launch !== undefined && 'cwd' in launch ? launch.cwd : places.startedIn
  }
  const pooled = file.pools.flatMap((entry, index) => poolAgents(entry, bus.pools[index]!, cwdOf))
  const remote = file.agents.map((agent): AioAgent => {
    const common = {
      headers: expandAll(agent.headers, environment),
      ...agentCommon(agent.name, agent, bus.limits),
    }
    return agent.type === 'mcp'
      ? { type: 'mcp', url: agent.url!, ...common }
      : { type: 'http', endpoint: agent.endpoint!, ...common }
  })
  return [...pooled, ...remote]
}

function poolAgents(entry: PoolEntry, { limits }: PoolSpec, cwdOf: (pool: PoolId) => string): AioAgent[] {
  const { id, aio, instances } = entry
  const type = agentType(entry)
  if (aio === undefined || type === undefined) return []
  const timeoutMs = aio.timeout_ms ?? (type === 'acp' ? ACP_TIMEOUT_MS : TIMEOUT_MS)
  const common = { pool: id, instances, ...agentCommon(id, { ...aio, timeout_ms: timeoutMs }, limits) }
  if (type === 'stdio') return [{ type, mode: aio.mode, ...common }]
  if (type === 'acp') return [{ type, permissions: aio.permissions, cwd: cwdOf(id), ...common }]
  const { tool, pool } = samplingOf(entry)
  if (tool === undefined && pool === undefined) return [{ type, ...common }]
  return [{ type, sampling: { tool, pool, cwd: pool === undefined ? undefined : cwdOf(pool) }, ...common }]
}

type AgentEntry = Pick<ConfigFile['agents'][number], 'modalities' | 'method_style' | 'timeout_ms' | 'max_payload_bytes'>

function agentCommon(name: string, agent: AgentEntry, limits: Limits) {
  return {
    name,
    modalities: agent.modalities,
    methodStyle: agent.method_style,
    timeoutMs: agent.timeout_ms,
    maxPayloadBytes: agent.max_payload_bytes,
    maxReplyBytes: limits.maxInputBufferBytes,
  }
}

function translateRegistry(registry: ConfigFile['registry'], { places }: TranslateContext): RegistryConfig {
  const fileAt = (path: string | undefined) => (path === undefined ? undefined : resolvePath(path, places))
  const isUrl = registry.index !== undefined && /^\w+:\/\//.test(registry.index)
  return {
    index: isUrl ? registry.index : fileAt(registry.index),
    cacheDir: fileAt(registry.cache),
    ttlMs: registry.ttl_sec * 1000,
    agentsFile: fileAt(registry.agents),
    credentialsFile: fileAt(registry.credentials),
    idleTimeoutMs: registry.idle_timeout_sec * 1000,
  }
}
