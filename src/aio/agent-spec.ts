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
  /** The tool that answers sampling.start and sampling.step. */
  readonly sampling?: { readonly tool: string }
}

export interface HttpAgent extends AgentCommon {
  readonly type: 'http'
  readonly endpoint: string
  readonly headers?: Readonly<Record<string, string>>
}

export type AgentSpec = StdioAgent | McpAgent | HttpAgent

export const AGENT_DEFAULTS = {
  timeoutMs: 30_000,
  maxPayloadBytes: 4 * 1024 * 1024,
  maxReplyBytes: 1024 * 1024,
  methodStyle: 'namespaced',
} as const
