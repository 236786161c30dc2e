/**
 * The W3C ids of traces and calls, derived and never drawn: the same call has the same span id in every export (aio.md 3.7).
 */
import { hash } from 'node:crypto'

/** The id of the span that stands for the whole trace. */
export const ROOT_CALL = 0

export function otelTraceId(busInstance: string, traceId: string): string {
  return digest(`${busInstance}|${traceId}`).slice(0, 32)
}

export function spanId(busInstance: string, traceId: string, callId: number): string {
  return digest(`${busInstance}|${traceId}#${callId}`).slice(0, 16)
}

/** The header that tells an agent which call it serves. */
export function traceparent(otelTrace: string, span: string): string {
  return `00-${otelTrace}-${span}-01`
}

export interface Traceparent {
  readonly otelTraceId: string
  readonly spanId: string
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/

/** Reads a `traceparent`; undefined for anything that W3C calls invalid. */
export function parseTraceparent(value: unknown): Traceparent | undefined {
  if (typeof value !== 'string' || value.length > 256) return undefined
  const [, version, trace = '', span = '', rest] = TRACEPARENT.exec(value) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined
  if (/^0+$/.test(trace) || /^0+$/.test(span)) return undefined
  return { otelTraceId: trace, spanId: span }
}

function digest(text: string): string {
  return hash('sha256', text, 'hex')
}
