/**
 * A trace as AIO JSON: the document that `bus::traces.get` answers with, which both texts of the protocol can read.
 *
 * Payloads are spliced in as the text they are stored as: a trace of ten thousand calls is written without parsing one.
 */
import { describeFacts, describeHead } from './document.ts'
import { spanId } from './otel-ids.ts'
import type { FoundTrace } from './query.ts'
import type { CallRow } from './row.ts'

export function exportAio({ trace, calls }: FoundTrace, busInstance: string): string {
  const head = JSON.stringify(describeHead(trace, busInstance))
  const bodies = calls.map((call) => writeCall(call, trace.trace_id, busInstance))
  return `${head.slice(0, -1)},"calls":[${bodies.join(',')}]}`
}

function writeCall(row: CallRow, traceId: string, busInstance: string): string {
  const head = JSON.stringify({ id: row.id, agent: row.agent, method: row.method })
  const tail = JSON.stringify({ ...describeFacts(row), span_id: spanId(busInstance, traceId, row.id) })
  const lists = listOf(row.input, 'inputs', 'input') + listOf(row.output, 'outputs', 'output')
  const request = `"request_id":${row.request_id ?? 'null'}`
  const caller = row.caller === null ? '' : `,"caller":${row.caller}`
  const error = row.error === null ? '' : `,"error":${row.error}`
  const payloads = `"input":${row.input ?? 'null'},"output":${row.output ?? 'null'}`
  return `${head.slice(0, -1)},${payloads},${tail.slice(1, -1)},${request}${caller}${lists}${error}}`
}

/** The second text of the protocol has arrays beside the objects; only generic payloads have them, so few are parsed. */
function listOf(payload: string | null, plural: string, singular: string): string {
  if (payload === null || !payload.includes(`"${singular}`)) return ''
  const value: unknown = JSON.parse(payload)
  if (typeof value !== 'object' || value === null) return ''
  const fields = value as Record<string, unknown>
  const items = Array.isArray(fields[plural])
    ? fields[plural]
    : isItem(fields[singular])
      ? [fields[singular]]
      : undefined
  return items === undefined ? '' : `,"${plural}":${JSON.stringify(items)}`
}

function isItem(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'type' in value && 'value' in value
}
