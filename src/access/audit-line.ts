/**
 * What is told of an event in the audit log, as one line of JSON (contract 9.23).
 *
 * Every line has the same keys in the same order; what an event knows nothing of is null. There is no place for a
 * credential, a value of an environment or a payload. What a peer has chosen is cut, and nothing of it moves a cursor.
 */
import { printable } from '../wire/printable.ts'

export type AuditEventName = 'open' | 'close' | 'refused' | 'denied' | 'call' | 'access' | 'reload' | 'gap'

export interface AuditEvent {
  readonly event: AuditEventName
  readonly principal?: string | undefined
  readonly subject?: string | undefined
  readonly via?: string | undefined
  /** Eight hex digits of its digest. */
  readonly credential?: string | undefined
  readonly door?: string | undefined
  readonly peer?: string | undefined
  readonly client?: number | undefined
  readonly pool?: string | undefined
  readonly method?: string | undefined
  readonly tool?: string | undefined
  readonly outcome?: string | undefined
  readonly reason?: string | undefined
  readonly durationMs?: number | undefined
  readonly traceId?: string | undefined
}

const MAX_TEXT = 256
const UNUSUAL = /[^ -~]/
const HIGH_SURROGATE = /[\ud800-\udbff]$/

/** With its newline; `atMs` is by the wall clock. */
export function auditLine(event: AuditEvent, atMs: number): string {
  const line = JSON.stringify({
    time: new Date(atMs).toISOString(),
    event: event.event,
    principal: cut(event.principal),
    subject: cut(event.subject),
    via: cut(event.via),
    credential: cut(event.credential),
    door: cut(event.door),
    peer: cut(event.peer),
    client: event.client ?? null,
    pool: cut(event.pool),
    method: cut(event.method),
    tool: cut(event.tool),
    outcome: cut(event.outcome),
    reason: cut(event.reason),
    duration_ms: event.durationMs === undefined ? null : Math.round(event.durationMs * 1000) / 1000,
    trace_id: cut(event.traceId),
  })
  // The escapes of what does not print are those of JSON: the value stays what it was.
  return `${UNUSUAL.test(line) ? printable(line) : line}\n`
}

function cut(text: string | undefined): string | null {
  if (text === undefined) return null
  return text.length <= MAX_TEXT ? text : text.slice(0, MAX_TEXT).replace(HIGH_SURROGATE, '')
}
