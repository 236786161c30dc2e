/**
 * Reads what is needed of a line that was observed; the bus has proved that it is JSON, and nothing more is taken for granted.
 *
 * Long lines are not parsed, since that would keep others waiting: they are recorded with less detail.
 */
import { JsonText } from '../wire/ready-json.ts'
import type { CallError } from './call.ts'

export type JsonRecord = Readonly<Record<string, unknown>>

const TRACEPARENT = /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/

const MAX_PARSED_BYTES = 64 * 1024

/** Nothing of a long line. */
export function readShort(line: Buffer): JsonRecord {
  if (line.length > MAX_PARSED_BYTES) return {}
  const message: unknown = JSON.parse(line.toString())
  return isRecord(message) ? message : {}
}

export function readParams(line: Buffer): JsonRecord {
  const { params } = readShort(line)
  return isRecord(params) ? params : {}
}

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise
}

/** The OpenTelemetry trace that the caller says it is part of. */
export function otelTraceOf(params: JsonRecord): string | undefined {
  const meta = isRecord(params['_meta']) ? params['_meta'] : {}
  return TRACEPARENT.exec(textOr(meta['traceparent'], ''))?.[1]
}

/** An answer as it came; it is looked into only where it may be an error. */
export function readAnswer(line: Buffer, body: Buffer | undefined): { output: unknown; error?: CallError } {
  if (body === undefined || line.includes('"error"') || body.includes('"isError"')) {
    const { output, error } = readOutcome(readShort(line))
    if (error !== undefined) return { output, error }
  }
  if (body === undefined) return { output: null, error: { message: 'The worker failed, at length.' } }
  return { output: new JsonText(body.toString()) }
}

/** An answer as it stands in a trace; a result with `isError` is an error (spec N8). */
export function readOutcome(message: JsonRecord): { output: unknown; error?: CallError } {
  const { error, result } = message
  if (error !== undefined && error !== null) return { output: null, error: readError(error) }
  const isToolError = isRecord(result) && result['isError'] === true
  return isToolError
    ? { output: result, error: { message: toolMessage(result), type: 'tool_error' } }
    : { output: result }
}

function readError(error: unknown): CallError {
  if (!isRecord(error)) return { message: textOr(error, 'The worker failed.') }
  const { code, message, data } = error
  return { ...(typeof code === 'number' ? { code } : {}), message: textOr(message, 'The worker failed.'), data }
}

function toolMessage({ content }: JsonRecord): string {
  const [first] = Array.isArray(content) ? content : []
  return isRecord(first) ? textOr(first['text'], 'The tool failed.') : 'The tool failed.'
}
