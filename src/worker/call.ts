/** A message to a worker as its method sees it. */
import type { IdKey } from '../wire/envelope.ts'

/** What it returns, or resolves with, is the result; what it throws is the error. A notification is owed neither. */
// biome-ignore lint/suspicious/noExplicitAny: what parameters are is for the method to know
export type Method = (params: any, call: Call) => unknown
export type Methods = Readonly<Record<string, Method>>

export interface Call {
  readonly method: string
  readonly isNotification: boolean
  /** The session it belongs to, if it names one. */
  readonly sessionId: string | undefined
  /** The whole message, for fields that only some protocols have. */
  readonly message: Readonly<Record<string, unknown>>
  /** Aborts when the caller cancels, and when the worker is told to end. */
  readonly signal: AbortSignal
  /** Says something on the way to whoever asked, in its session. */
  notify(method: string, params?: object): void
}

/** A call under way. */
export interface Running {
  /** As it was spelled; undefined for a notification. */
  readonly id: string | undefined
  readonly key: IdKey | undefined
  readonly sessionId: string | undefined
  readonly abort: AbortController
}

/** Where a message names its session: plain clients at its top, protocols in its parameters. */
export function sessionOf(message: Readonly<Record<string, unknown>>): { id?: string; place?: 'top' | 'params' } {
  const { sessionId, params } = message
  if (typeof sessionId === 'string') return { id: sessionId, place: 'top' }
  const named = (params as { sessionId?: unknown } | null | undefined)?.sessionId
  return typeof named === 'string' ? { id: named, place: 'params' } : {}
}
