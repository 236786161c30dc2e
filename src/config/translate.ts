/**
 * The one place where the spelling of the file becomes the spelling of the program: seconds become milliseconds, paths
 * become absolute, `${NAME}` becomes its value, `max_input_buffer` becomes `maxInputBufferBytes`.
 *
 * It is given a file that has passed the schema and decides nothing more about it. Only a draft (see `draft.ts`) may break
 * the rules; what cannot be translated is then left out.
 */
import { createHash } from 'node:crypto'
import { DEFAULT_LIMITS, type Limits } from '../kernel/limits.ts'
import type { Balance, BusSpec, PoolId, PoolSpec, Protocol } from '../kernel/vocabulary.ts'
import { parseAddress } from './address.ts'
import type {
  AccessConfig,
  AioAgent,
  AioConfig,
  BusConfig,
  Launch,
  Listen,
  OauthConfig,
  RegistryConfig,
  TlsDoor,
} from './bus-config.ts'
import { type Environment, expandReferences } from './environment.ts'
import { LIMIT_KEYS, layLimits, POOL_LIMIT_NAMES } from './limit-keys.ts'
import { type Places, resolvePath } from './paths.ts'
import { translateEnvironment, translateRights } from './rights-schema.ts'
import { aioSection, type ConfigFile, type PoolEntry } from './schema.ts'

const DEFAULT_STORE = '~/.stdio-bus/traces.db'

export interface TranslateContext {
  /** Absolute. */
  readonly file: string
  readonly places: Places
  readonly environment: Environment
}

export function translate(file: ConfigFile, context: TranslateContext): BusConfig {
  const registry = translateRegistry(file.registry, context)
  const launches = new Map(file.pools.map((entry) => [entry.id, translateLaunch(entry, context)]))
  const bus = translateBus(file, launches, registry)
  const agents = translateAgents(file, bus, context)
  return {
    file: context.file,
    bus,
    launches,
    listen: translateListen(file.listen, context.places),
    control: file.control === undefined ? undefined : resolvePath(file.control, context.places),
    aio: translateAio(file, agents.length > 0, context),
    agents,
    registry,
    access: translateAccess(file, context),
  }
}

function translateBus(file: ConfigFile, launches: ReadonlyMap<PoolId, Launch>, registry: RegistryConfig): BusSpec {
  const general = layLimits(DEFAULT_LIMITS, file.limits)
  const pools = file.pools.map((entry) => translatePool(entry, general, launches.get(entry.id)!, registry))
  // A client's line may be as long as the largest that any pool takes (contract 8.1).
  const gateway = gatewayOf(file)
  const longest = Math.max(general.maxInputBufferBytes, ...pools.map(({ limits }) => limits.maxInputBufferBytes))
  return { pools, defaultPool: file.default_pool, limits: { ...general, maxInputBufferBytes: longest }, gateway }
}

/** What the kernel hands to the gateway (spec N1): traces can be asked for wherever some are kept. */
function gatewayOf({ aio, agents, pools }: ConfigFile): 'off' | 'bus' | 'all' {
  if (aio !== undefined || agents.length > 0 || pools.some((entry) => entry.aio !== undefined)) return 'all'
  return pools.some(({ trace }) => trace) ? 'bus' : 'off'
}

function agentType({ aio, protocol }: PoolEntry): 'stdio' | 'mcp' | undefined {
  return aio && (aio.type ?? (protocol === 'mcp' ? 'mcp' : 'stdio'))
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
    protocol: protocolOf(entry),
    era: entry.era,
    restart: entry.restart,
    startTimeoutMs: entry.start_timeout_sec * 1000,
    hangTimeoutMs: entry.hang_timeout_sec * 1000,
    limits: layLimits(general, entry.limits),
    trace: entry.trace,
    ...(isOneshot ? { isAioOnly: true } : {}),
  }
  const bounds = POOL_LIMIT_NAMES.map((key) => spec.limits[LIMIT_KEYS[key].name])
  const origin = 'registry' in launch ? registry : undefined
  return { ...spec, revision: revisionOf([{ ...spec, instances: 0, limits: bounds }, launch, entry.aio, origin]) }
}

function protocolOf(entry: PoolEntry): Protocol {
  const { agent, aio, registry, protocol } = entry
  // A server that agents call is greeted at its start.
  if (agentType(entry) === 'mcp' && (protocol ?? 'auto') === 'auto') return 'mcp'
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

function expandAll(map: Readonly<Record<string, string>>, environment: Environment): Record<string, string> {
  const entries = Object.entries(map).map(([name, text]) => [name, expandReferences(text, environment).value])
  return Object.fromEntries(entries)
}

function translateListen(listen: ConfigFile['listen'], places: Places): Listen {
  const unix = listOf(listen.unix).map((door) => (typeof door === 'string' ? { path: door } : door))
  const tcp = listOf(listen.tcp).map((door) => (typeof door === 'string' ? { address: door } : door))
  return {
    unix: unix.map(({ path, pool }) => ({ path: resolvePath(path, places), pool })),
    tcp: tcp.flatMap(({ address, pool }) => {
      const parsed = parseAddress(address)
      return parsed === undefined ? [] : [{ ...parsed, pool }]
    }),
    tls: listOf(listen.tls).flatMap((door) => translateTlsDoor(door, places)),
  }
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
    ...(publicUrl === undefined ? {} : { publicUrl: publicUrl.replace(/\/+$/, '') }),
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
  const { store, otlp, remote_queries: remoteQueries } = file.aio ?? aioSection.parse({})
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

function translateAgents(file: ConfigFile, bus: BusSpec, { environment }: TranslateContext): AioAgent[] {
  const pooled = file.pools.flatMap((entry, index) => poolAgents(entry, bus.pools[index]!))
  const remote = file.agents.map(
    (agent): AioAgent => ({
      type: 'http',
      endpoint: agent.endpoint,
      headers: expandAll(agent.headers, environment),
      ...agentCommon(agent.name, agent, bus.limits),
    }),
  )
  return [...pooled, ...remote]
}

function poolAgents(entry: PoolEntry, { limits }: PoolSpec): AioAgent[] {
  const { id, aio, instances } = entry
  const type = agentType(entry)
  if (aio === undefined || type === undefined) return []
  const common = { pool: id, instances, ...agentCommon(id, aio, limits) }
  if (type === 'stdio') return [{ type, mode: aio.mode, ...common }]
  return [{ type, ...(aio.sampling === undefined ? {} : { sampling: aio.sampling }), ...common }]
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
