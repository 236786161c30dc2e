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

/** So many spellings are kept; a text longer than what is shown is none of them. */
const MAX_SPELLED = 1024

/** Who, where and what come again and again: each is spelled as JSON once. */
const spelled = new Map<string, string>()
let secondMs = Number.NaN
let secondText = ''

/** With its newline; `atMs` is by the wall clock. */
export function auditLine(event: AuditEvent, atMs: number): string {
  const who = `"principal":${spell(event.principal)},"subject":${spell(event.subject)},"via":${spell(event.via)},"credential":${spell(event.credential)}`
  const where = `"door":${spell(event.door)},"peer":${spell(event.peer)},"client":${event.client ?? null},"pool":${spell(event.pool)}`
  const what = `"method":${spell(event.method)},"tool":${spell(event.tool)},"outcome":${spell(event.outcome)},"reason":${spell(event.reason)}`
  const durationMs = event.durationMs === undefined ? null : Math.round(event.durationMs * 1000) / 1000
  const rest = `"duration_ms":${durationMs},"trace_id":${spell(event.traceId)}`
  return `{"time":"${timeOf(atMs)}","event":"${event.event}",${who},${where},${what},${rest}}\n`
}

/** As `toISOString` has it; within a second only the milliseconds change. */
function timeOf(atMs: number): string {
  const wholeMs = Math.floor(atMs)
  const ms = ((wholeMs % 1000) + 1000) % 1000
  if (wholeMs - ms !== secondMs) {
    secondMs = wholeMs - ms
    secondText = new Date(secondMs).toISOString().slice(0, -'000Z'.length)
  }
  return `${secondText}${ms < 10 ? '00' : ms < 100 ? '0' : ''}${ms}Z`
}

function spell(text: string | undefined): string {
  if (text === undefined) return 'null'
  const known = spelled.get(text)
  if (known !== undefined) return known
  const json = JSON.stringify(text.length <= MAX_TEXT ? text : text.slice(0, MAX_TEXT).replace(HIGH_SURROGATE, ''))
  // The escapes of what does not print are those of JSON: the value stays what it was.
  const shown = UNUSUAL.test(json) ? printable(json) : json
  if (text.length > MAX_TEXT) return shown
  if (spelled.size >= MAX_SPELLED) spelled.clear()
  spelled.set(text, shown)
  return shown
}
