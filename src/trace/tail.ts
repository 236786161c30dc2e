/**
 * What somebody who follows traces live is told of a call: everything but its payloads.
 */
import type { CallCaller, CallError } from './call.ts'
import { describeFacts, parseCaller } from './document.ts'
import type { CallEvent } from './store.ts'

export type TailItem = ReturnType<typeof describeFacts> & {
  readonly event: 'started' | 'ended'
  readonly trace_id: string
  readonly id: number
  readonly agent: string
  readonly method: string
  readonly caller?: CallCaller | undefined
  /** Code, message and type: what an agent put into `data` stays in the trace. */
  readonly error?: Omit<CallError, 'data'>
}

export function tailItem({ event, traceId, row }: CallEvent): TailItem {
  const { id, agent, method } = row
  const caller = parseCaller(row.caller)
  return { event, trace_id: traceId, id, agent, method, ...describeFacts(row), caller, ...errorOf(row.error) }
}

function errorOf(text: string | null): { error?: Omit<CallError, 'data'> } {
  if (text === null) return {}
  const { data: _, ...error } = JSON.parse(text) as CallError
  return { error }
}
