/**
 * What can go wrong between a program and its bus, as types to catch and reasons to read.
 *
 * A failed connection is an error of one of these classes; a failed request is an ordinary JSON-RPC error whose
 * `data.reason` says why, whichever SDK carries it. No message here holds anything of a payload.
 */
import { CODE, type ErrorObject, errorLine } from '../wire/jsonrpc.ts'

export type BusErrorCode = 'bus_unavailable' | 'bus_untrusted' | 'bus_gone' | 'bus_refused' | 'closed'

/** The base of every error this library throws by itself. */
export class BusError extends Error {
  override readonly name: string = 'BusError'
  readonly code: BusErrorCode

  constructor(code: BusErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** No bus answers at the address: start one, or look at the address. */
export class BusUnavailable extends BusError {
  override readonly name = 'BusUnavailable'

  constructor(message: string, options?: ErrorOptions) {
    super('bus_unavailable', message, options)
  }
}

/** Somebody answers, and cannot prove to be the bus that was meant: its certificate does not hold. */
export class BusUntrusted extends BusError {
  override readonly name = 'BusUntrusted'

  constructor(message: string, options?: ErrorOptions) {
    super('bus_untrusted', message, options)
  }
}

/** The bus went away and did not come back in time. */
export class BusGone extends BusError {
  override readonly name = 'BusGone'

  constructor(message: string, options?: ErrorOptions) {
    super('bus_gone', message, options)
  }
}

/** The bus does not want this connection, and has said why: `reason` is one of its own, such as `unknown_pool`. */
export class BusRefused extends BusError {
  override readonly name = 'BusRefused'
  readonly reason: string
  /** The same may succeed later. */
  readonly isRetryable: boolean
  /** What the bus answered, when it was an answer. */
  readonly answer: ErrorObject | undefined

  constructor(reason: string, message: string, isRetryable = false, answer?: ErrorObject) {
    super('bus_refused', message)
    this.reason = reason
    this.isRetryable = isRetryable
    this.answer = answer
  }
}

/** This side has closed the connection. */
export class ConnectionClosed extends BusError {
  override readonly name = 'ConnectionClosed'

  constructor() {
    super('closed', 'the connection to the bus was closed by this program')
  }
}

export function lineTooLong(maxLineBytes: number): BusRefused {
  return new BusRefused('message_too_large', `a line is longer than ${maxLineBytes} bytes: raise maxLineBytes`)
}

export function didNotComeBack(awayMs: number, cause: unknown): BusGone {
  const why = cause instanceof Error ? `: ${cause.message}` : ''
  return new BusGone(`the bus has gone and did not come back within ${Math.round(awayMs / 1_000)} s${why}`, { cause })
}

const LOCAL_FAULTS = {
  bus_gone: { message: 'The bus went away before it answered.', retryable: true },
  too_many_pending: { message: 'Too many requests wait for an answer.', retryable: true },
  request_timeout: { message: 'The answer did not come before the connection had to end.', retryable: true },
  client_gone: { message: 'The client that this was put to has ended its input.', retryable: false },
} as const

export type LocalReason = keyof typeof LOCAL_FAULTS

/** The error line for a request that this end of the connection must answer itself. */
export function localFaultLine(idSpelling: string, reason: LocalReason): Buffer {
  const { message, retryable } = LOCAL_FAULTS[reason]
  const data = retryable ? { reason, retryable } : { reason }
  return errorLine(idSpelling, { code: CODE.internalError, message, data })
}

/** Why the bus refused or failed a request, from the error an SDK threw; undefined when a worker answered it so. */
export function reasonOf(error: unknown): string | undefined {
  const reason = dataOf(error)['reason']
  return typeof reason === 'string' ? reason : undefined
}

/** Whether the same request may succeed later, as far as the bus can tell. */
export function isRetryable(error: unknown): boolean {
  return dataOf(error)['retryable'] === true
}

function dataOf(error: unknown): Record<string, unknown> {
  if (typeof error !== 'object' || error === null || !('data' in error)) return {}
  return typeof error.data === 'object' && error.data !== null ? (error.data as Record<string, unknown>) : {}
}

export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}
