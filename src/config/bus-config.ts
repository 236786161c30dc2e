/** The configuration as the program knows it: resolved, absolute, in milliseconds and bytes. Types only. */
import type { Rights } from '../kernel/rights.ts'
import type { BusSpec, PoolId } from '../kernel/vocabulary.ts'
import type { Source } from './source.ts'

export interface BusConfig {
  /** Absolute path of the file it came from. */
  readonly file: string
  /** What that file said when it was read. */
  readonly source: Source
  readonly bus: BusSpec
  /** Of the pools that have workers. */
  readonly launches: ReadonlyMap<PoolId, Launch>
  /** The pools that are made of others. */
  readonly aggregates: readonly AggregateConfig[]
  readonly listen: Listen
  /** Left out: the default under `~/.stdio-bus/`. */
  readonly control: string | undefined
  readonly aio: AioConfig
  /** The AIO agents, those in pools and those reached over HTTP. */
  readonly agents: readonly AioAgent[]
  readonly registry: RegistryConfig
  /** Left out: nobody is asked who they are. */
  readonly access: AccessConfig | undefined
  /** The address of the bus as clients see it, without a slash at its end. */
  readonly publicUrl?: string
  /** Left out: this bus is alone. */
  readonly cluster?: ClusterConfig
}

/** This bus as one node of many (contract 14). */
export interface ClusterConfig {
  /** References resolved: they may hold passwords. */
  readonly servers: readonly string[]
  readonly name: string
  readonly node: string
  /** Absolute, as those of `tls` are. */
  readonly credentials?: string
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  /** Patterns of pools and agents. */
  readonly exports: readonly string[]
  readonly imports: readonly string[]
  /** By which whoever is local here is known elsewhere. */
  readonly local?: string
  readonly jsDomain?: string
  readonly lostAfterMs: number
}

/** One member of an aggregate, and how its tools and prompts are shown (contract 13.4). */
export interface MemberConfig {
  readonly pool: PoolId
  /** Left out: its id and `_`. */
  readonly prefix?: string
  readonly allow: readonly string[]
  readonly deny: readonly string[]
  /** New names by own name. */
  readonly rename: ReadonlyMap<string, string>
}

/** One MCP server made of many pools (contract 13). */
export interface AggregateConfig {
  readonly id: PoolId
  readonly members: readonly MemberConfig[]
  readonly mode: 'all' | 'search'
  readonly pin: readonly string[]
  readonly maxNameLength: number
  readonly listWaitMs: number
}

interface LaunchOptions {
  readonly args: readonly string[]
  /** What the pool adds to the environment, references resolved: it may hold secrets. */
  readonly env: Readonly<Record<string, string>>
  readonly inheritEnv: boolean
  /** Absolute. */
  readonly cwd: string
  readonly pipes: 'default' | 'fifo'
}

export interface CommandLaunch extends LaunchOptions {
  /** A name to find in PATH, or a path; a relative one is relative to `cwd`. */
  readonly command: string
}

export interface AgentLaunch extends LaunchOptions {
  readonly agent: 'openai' | 'registry' | 'echo'
}

export interface RegistryLaunch extends LaunchOptions {
  readonly registry: string
  readonly distribution: 'binary' | 'npx' | 'uvx' | undefined
}

/** How a worker that is an upstream is reached. */
export interface RemoteLaunch {
  /** References resolved: its query may hold a secret. Of a Unix socket the path is absolute. */
  readonly url: string
  /** References resolved: they and the token may be secrets. */
  readonly headers: Readonly<Record<string, string>>
  readonly token?: string
  /** Of the other bus. */
  readonly pool?: string
  /** Absolute paths. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  readonly connectTimeoutMs: number
}

export type ProcessLaunch = CommandLaunch | AgentLaunch | RegistryLaunch

/** How the workers of a pool are started; told apart by the key that names what they are. */
export type Launch = ProcessLaunch | RemoteLaunch

export interface UnixDoor {
  /** Absolute. */
  readonly path: string
  readonly pool: PoolId | undefined
}

export interface TcpDoor {
  readonly host: string
  readonly port: number
  readonly pool: PoolId | undefined
}

export interface TlsDoor extends TcpDoor {
  /** Absolute, as `key` and `clientCa` are. */
  readonly cert: string
  readonly key: string
  readonly clientCa?: string
  /** Beside `clientCa`: a client without a certificate may show a token instead. */
  readonly isClientCertOptional: boolean
}

/** A web door; with `cert` and `key` it speaks TLS. */
export interface HttpDoor extends TcpDoor, Partial<Pick<TlsDoor, 'cert' | 'key' | 'clientCa'>> {
  readonly isClientCertOptional: boolean
  /** A session without a stream and without anything in flight ends after so long. */
  readonly sessionIdleMs: number
  readonly maxConnections: number
  readonly hasConsole: boolean
  /** Where sessions are remembered over a restart, absolute. */
  readonly sessionsFile?: string
  /** Without a slash at its end. */
  readonly publicUrl?: string
  readonly hosts: readonly string[]
  readonly origins: readonly string[]
}

export interface Listen {
  readonly unix: readonly UnixDoor[]
  readonly tcp: readonly TcpDoor[]
  readonly tls: readonly TlsDoor[]
  readonly http: readonly HttpDoor[]
}

export interface ClaimRow {
  readonly claim: string
  readonly equals: string | number | boolean
  readonly as: string
}

export interface OauthConfig {
  readonly issuer: string
  /** Empty: `publicUrl` and the path of the door. */
  readonly audience: readonly string[]
  readonly jwksUrl?: string
  readonly map: readonly ClaimRow[]
}

export interface CertificateRow {
  readonly subject: string
  readonly as: string
}

/** Variables for workers of one principal; under the id of a pool, for that pool only. References resolved. */
export type PrincipalEnvironment = Readonly<Record<string, string | Readonly<Record<string, string>>>>

export interface AccessConfig {
  /** Absolute. */
  readonly file?: string
  readonly anonymous: false | Rights
  readonly anonymousEnvironment: PrincipalEnvironment
  readonly audit?: { readonly file: string; readonly isRequired: boolean }
  readonly oauth?: OauthConfig
  readonly certificates: readonly CertificateRow[]
  /** Without a slash at its end. */
  readonly publicUrl?: string
}

export type Modality = 'text' | 'image' | 'audio' | 'video' | 'file'

interface AgentCommon {
  readonly name: string
  readonly modalities: readonly Modality[]
  readonly methodStyle: 'namespaced' | 'bare'
  readonly timeoutMs: number
  /** The longest call, as a line. */
  readonly maxPayloadBytes: number
  /** The longest answer: the longest line that is taken from it. */
  readonly maxReplyBytes: number
}

export interface StdioAgent extends AgentCommon {
  readonly type: 'stdio'
  readonly pool: PoolId
  readonly instances: number
  readonly mode: 'ndjson' | 'oneshot' | 'json'
}

export interface McpAgent extends AgentCommon {
  readonly type: 'mcp'
  readonly pool: PoolId
  readonly instances: number
  /** The tool that stands in for it; the ACP pool that answers what the server asks, and where its sessions are. */
  readonly sampling?: {
    readonly tool?: string | undefined
    readonly pool?: PoolId | undefined
    readonly cwd?: string | undefined
  }
}

export interface AcpAgent extends AgentCommon {
  readonly type: 'acp'
  readonly pool: PoolId
  readonly instances: number
  readonly permissions: 'deny' | 'read' | 'allow'
  /** Absolute. */
  readonly cwd: string
}

export interface HttpAgent extends AgentCommon {
  readonly type: 'http'
  readonly endpoint: string
  /** References resolved: it may hold secrets. */
  readonly headers: Readonly<Record<string, string>>
}

/** An MCP server at a URL. */
export interface UrlAgent extends AgentCommon {
  readonly type: 'mcp'
  readonly url: string
  /** References resolved: it may hold secrets. */
  readonly headers: Readonly<Record<string, string>>
}

/** Whoever can be called as `name::method`. */
export type AioAgent = StdioAgent | McpAgent | AcpAgent | UrlAgent | HttpAgent

export interface AioConfig {
  /** Off: `agent::method` and `help` are plain methods. The store below serves pools with `trace` all the same. */
  readonly enabled: boolean
  readonly store: {
    readonly path: string
    /** 0: for ever. */
    readonly retentionDays: number
    readonly payloadBytes: number
    readonly redact: readonly string[]
  }
  readonly otlp:
    | {
        readonly endpoint: string
        readonly headers: Readonly<Record<string, string>>
        readonly payloads: boolean
        readonly compat: boolean
      }
    | undefined
  readonly remoteQueries: boolean
}

export interface RegistryConfig {
  /** A URL, or an absolute path; left out: the registry's own default. */
  readonly index: string | undefined
  readonly cacheDir: string | undefined
  readonly ttlMs: number
  readonly agentsFile: string | undefined
  readonly credentialsFile: string | undefined
  readonly idleTimeoutMs: number
}
