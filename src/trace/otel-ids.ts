/**
 * The W3C ids of traces and calls, derived and never drawn: the same call has the same span id in every export (spec T7).
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

function digest(text: string): string {
  return hash('sha256', text, 'hex')
}
