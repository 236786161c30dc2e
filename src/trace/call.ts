/**
 * What the trace room is told about a call: its start, its partials and its end.
 *
 * Types only; a payload may be a `JsonText`. Whoever reports a call owns these objects no longer than the
 * call to the store lasts: the store takes what it needs at once and never looks at a payload again.
 */

/** `aio`, or what a dialect is called. */
export type CallProtocol = string
export type CallType = 'stdio' | 'http' | 'mcp'

/** The error of a call as it was answered; `type` is `tool_error` for an MCP result with `isError`. */
export interface CallError {
  readonly code?: number | undefined
  readonly message: string
  readonly data?: unknown
  readonly type?: string | undefined
}

/** Who made a call; what an agent calls in turn keeps the principal and the client of the call at the root (contract 9.24). */
export interface CallCaller {
  readonly kind: 'client' | 'agent'
  readonly principal: string
  /** The connection at the root; nobody's, if a worker called by itself. */
  readonly client?: number | undefined
  /** What the client calls itself. */
  readonly name?: string | undefined
  readonly agent?: string | undefined
}

export interface CallStart {
  readonly traceId: string
  /** Unique within the trace; `traceId#callId` names the call everywhere. */
  readonly callId: number
  readonly parentId: number | null
  /** The id the caller used; null for a notification. */
  readonly requestId: string | number | null
  readonly protocol: CallProtocol
  readonly type: CallType
  readonly agent: string
  readonly worker: string | null
  /** Without the agent's name in front. */
  readonly method: string
  /** What was really sent, where it differs: `tools/call` for `tools.call`. */
  readonly nativeMethod?: string | undefined
  /** The tool or prompt that was named. */
  readonly target?: string | undefined
  readonly input: unknown
  readonly bytesIn: number
  readonly startedAtMs: number
  readonly caller?: CallCaller | undefined
  /** The trace id of an inbound `traceparent`; without it one is derived. */
  readonly otelTraceId?: string | undefined
}

export interface CallPartial {
  readonly traceId: string
  readonly callId: number
  readonly atMs: number
}

export interface CallEnd {
  readonly traceId: string
  readonly callId: number
  readonly status: 'ok' | 'error'
  readonly error?: CallError | undefined
  readonly output: unknown
  readonly bytesOut: number
  readonly partials: number
  readonly firstPartialAtMs?: number | undefined
  readonly endedAtMs: number
  readonly nativeMethod?: string | undefined
  readonly target?: string | undefined
  readonly worker?: string | undefined
}
