/**
 * What lies between the gateway and one kind of agent: an invocation goes in, an outcome is told.
 *
 * An adapter answers once (`settle` or `fail`), tells partials before that, and returns the way to cancel. It knows
 * neither the caller nor the trace. What goes wrong in itself is told by `broke`, or thrown: it ends that call alone.
 */
import type { Answer } from './answers.ts'
import type { JsonObject } from './json-object.ts'
import type { CallError, ErrorBody, ExchangeListener, ExchangeOptions } from './port.ts'

export interface Invocation {
  /** Without its namespace. */
  readonly method: string
  /** As the agent is to find it in `method`. */
  readonly wireMethod: string
  readonly params: unknown
  readonly notification: boolean
  readonly affinity: string | undefined
  /** The connection for which it is called; left out: nobody's in particular. */
  readonly client?: number | undefined
  /** Trace fields and what the caller had in `_meta`; undefined: the agent gets none. */
  readonly meta: JsonObject | undefined
  readonly traceId: string
  readonly traceparent: string
  /** Present if the caller asked for progress. */
  readonly progressToken: string | undefined
  /** Whose samplings these are. */
  readonly callerKey: string
}

export interface Settlement {
  readonly bytes: number
  /** The agent's own message, for readers that know more spellings than `answer` has. */
  readonly raw?: unknown
  /** A result that counts as an error in the trace (MCP isError). */
  readonly traceError?: CallError
}

export interface Outcome {
  /** The agent has it now; null: not a process of ours. */
  sent(worker: string | null): void
  partial(outputs: readonly unknown[], extra?: JsonObject): void
  /** Settles when the caller can take more partials. */
  room(): Promise<void> | undefined
  settle(answer: Answer, settlement: Settlement): void
  /** `traceOnly` is kept for the operator and not told to the caller. */
  fail(error: ErrorBody, traceOnly?: JsonObject): void
  /** Something is decided or done for the call on the way: it stands below it in the trace. */
  child(start: ChildStart): OpenChild
  /** The adapter itself failed: the caller gets an error, the operator its cause. */
  broke(error: unknown): void
}

/** A step of a call. */
export interface ChildStart {
  readonly agent: string
  readonly method: string
  readonly protocol: 'aio' | 'acp' | 'mcp'
  readonly input: unknown
}

export interface OpenChild {
  /** By which calls of whoever does it find their parent. */
  readonly meta: JsonObject
  /** Agents call each other deeper than they may. */
  readonly isTooDeep: boolean
  sent(worker: string | null): void
  child(start: ChildStart): OpenChild
  end(output: unknown, error?: CallError): void
  /** Nobody wants it any more, nor what it led to. */
  giveUp(error: CallError): void
}

export function exchangeOptions({ affinity, client }: Invocation): ExchangeOptions {
  return { ...(affinity === undefined ? {} : { affinity }), ...(client === undefined ? {} : { client }) }
}

export type Cancel = () => void
export type Adapter = (invocation: Invocation, outcome: Outcome) => Cancel

/** The same outcome for an answer that somebody looks at before it is told; nothing of it comes in parts. */
export function wholeOutcome(outcome: Outcome, settle: Outcome['settle']): Outcome {
  return {
    sent: (worker) => outcome.sent(worker),
    partial: () => {},
    room: () => undefined,
    child: (child) => outcome.child(child),
    settle,
    fail: (error, traceOnly) => outcome.fail(error, traceOnly),
    broke: (error) => outcome.broke(error),
  }
}

/** What an adapter makes of what it hears ends its own call at the worst. */
export function carefulListener(outcome: Outcome, listener: ExchangeListener): ExchangeListener {
  const hear = (act: () => void): void => {
    try {
      act()
    } catch (error) {
      outcome.broke(error)
    }
  }
  return {
    sent: (worker) => hear(() => listener.sent(worker)),
    received: (message, bytes) => hear(() => listener.received(message, bytes)),
    failed: (error) => hear(() => listener.failed(error)),
    asked: (question, answer) => {
      try {
        return listener.asked?.(question, answer)
      } catch (error) {
        outcome.broke(error)
        return () => {}
      }
    },
  }
}

/** The JSON-RPC message for an agent that speaks AIO itself; its id is added by whoever sends it. */
export function agentMessage(invocation: Invocation): { method: string; params?: unknown } & Record<string, unknown> {
  const { wireMethod, meta, traceId } = invocation
  const params = withMeta(invocation.params, meta)
  return {
    jsonrpc: '2.0',
    method: wireMethod,
    ...(params === undefined ? {} : { params }),
    ...(meta === undefined ? {} : { trace_id: traceId }),
  }
}

/** Positional parameters have no place for `_meta` and stay as they are. */
function withMeta(params: unknown, meta: JsonObject | undefined): unknown {
  const isRecord = params === undefined || (typeof params === 'object' && params !== null && !Array.isArray(params))
  if (meta === undefined || !isRecord) return params
  return { ...params, _meta: meta }
}
