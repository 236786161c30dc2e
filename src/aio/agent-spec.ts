/**
 * What the gateway knows of an agent: its configuration in the spelling of the code, and nothing that changes.
 *
 * The type of an agent comes from here only; what an agent says about itself in `help` is never trusted for transport.
 */
export const MODALITIES = ['text', 'image', 'audio', 'video', 'file'] as const
export type Modality = (typeof MODALITIES)[number]

/** What the agent finds in `method`: `agent::method` with trace fields, or the bare method without them. */
export type MethodStyle = 'namespaced' | 'bare'

interface AgentCommon {
  readonly name: string
  /** Left out: all five. */
  readonly modalities?: readonly Modality[]
  readonly timeoutMs: number
  /** The longest request line. */
  readonly maxPayloadBytes: number
  /** The longest answer. */
  readonly maxReplyBytes: number
  readonly methodStyle: MethodStyle
}

/** `json` differs from `ndjson` only in how the worker's output is split, which happens before the gateway. */
export interface StdioAgent extends AgentCommon {
  readonly type: 'stdio'
  readonly pool: string
  readonly mode: 'ndjson' | 'oneshot' | 'json'
  readonly instances: number
}

export interface McpAgent extends AgentCommon {
  readonly type: 'mcp'
  readonly pool: string
  readonly instances: number
  /** The tool that answers sampling.start and sampling.step; the pool whose agent answers what the server itself asks. */
  readonly sampling?: {
    readonly tool?: string | undefined
    readonly pool?: string | undefined
    /** The directory that sessions of that pool are told. */
    readonly cwd?: string | undefined
  }
}

/** What an agent is allowed without anybody being asked (contract 13.15). */
export type PermissionPolicy = 'deny' | 'read' | 'allow'

export interface AcpAgent extends AgentCommon {
  readonly type: 'acp'
  readonly pool: string
  readonly instances: number
  readonly permissions: PermissionPolicy
  /** The directory that its sessions are told. */
  readonly cwd: string
}

/** A program that has registered itself (contract 13.18): its calls go to that connection. */
export interface ProgramAgent extends AgentCommon {
  readonly type: 'program'
  readonly methods?: readonly string[]
  readonly description?: string
}

export interface HttpAgent extends AgentCommon {
  readonly type: 'http'
  readonly endpoint: string
  readonly headers?: Readonly<Record<string, string>>
}

/** An MCP server at a URL (contract 13.17). */
export interface UrlAgent extends AgentCommon {
  readonly type: 'mcp'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly pool?: undefined
  readonly sampling?: undefined
}

/** An agent whose calls go to workers of a pool. */
export type PooledAgent = StdioAgent | McpAgent | AcpAgent

/** What the configuration has. */
export type AgentSpec = PooledAgent | UrlAgent | HttpAgent

/** Whoever can be called. */
export type NamedAgent = AgentSpec | ProgramAgent

export function isPooled(agent: NamedAgent): agent is PooledAgent {
  return 'pool' in agent && agent.pool !== undefined
}

export const AGENT_DEFAULTS = {
  timeoutMs: 30_000,
  maxPayloadBytes: 4 * 1024 * 1024,
  maxReplyBytes: 1024 * 1024,
  methodStyle: 'namespaced',
} as const
