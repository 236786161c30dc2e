/** The configuration as the program knows it: resolved, absolute, in milliseconds and bytes. Types only. */
import type { Rights } from '../kernel/rights.ts'
import type { BusSpec, PoolId } from '../kernel/vocabulary.ts'

export interface BusConfig {
  /** Absolute path of the file it came from. */
  readonly file: string
  readonly bus: BusSpec
  readonly launches: ReadonlyMap<PoolId, Launch>
  readonly listen: Listen
  /** Left out: the default under `~/.stdio-bus/`. */
  readonly control: string | undefined
  readonly aio: AioConfig
  /** The AIO agents, those in pools and those reached over HTTP. */
  readonly agents: readonly AioAgent[]
  readonly registry: RegistryConfig
  /** Left out: nobody is asked who they are. */
  readonly access: AccessConfig | undefined
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

/** How the workers of a pool are started; told apart by the key that names the program. */
export type Launch = CommandLaunch | AgentLaunch | RegistryLaunch

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

export interface Listen {
  readonly unix: readonly UnixDoor[]
  readonly tcp: readonly TcpDoor[]
  readonly tls: readonly TlsDoor[]
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
  readonly sampling?: { readonly tool: string }
}

export interface HttpAgent extends AgentCommon {
  readonly type: 'http'
  readonly endpoint: string
  /** References resolved: it may hold secrets. */
  readonly headers: Readonly<Record<string, string>>
}

/** Whoever can be called as `name::method`. */
export type AioAgent = StdioAgent | McpAgent | HttpAgent

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
