/**
 * Asks the bus: JSON in, JSON out, and failures as values with a reason and a sentence (contract 15.18).
 *
 * It remembers who is logged in and shows the token of the page with every write. Whoever is not logged in any more is sent to log in.
 */
import { effect, signal } from '@preact/signals'

export interface Me {
  readonly name: string
  readonly role: 'user' | 'observer' | 'admin'
  readonly pools: readonly string[]
  readonly csrf: string | null
  readonly version: string
  readonly expires_at: string | null
}

/** undefined: not known yet; null: nobody is logged in. */
export const me = signal<Me | null | undefined>(undefined)
/** Another version of the bus answers than the one that served this page. */
export const isOutdated = signal(false)

export class ApiFailure extends Error {
  readonly status: number
  readonly reason: string

  constructor(status: number, reason: string, message: string) {
    super(message)
    this.status = status
    this.reason = reason
  }
}

const UNREACHABLE = new ApiFailure(0, 'unreachable', 'The bus cannot be reached.')

export async function ask<T>(
  path: string,
  options: { method?: string; body?: unknown; signal?: AbortSignal } = {},
): Promise<T> {
  const { method = options.body === undefined ? 'GET' : 'POST', body, signal: abort } = options
  const headers: Record<string, string> = {}
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (method !== 'GET' && me.value?.csrf) headers['x-csrf-token'] = me.value.csrf
  const init: RequestInit = { method, headers, credentials: 'same-origin', redirect: 'error' }
  if (body !== undefined) init.body = JSON.stringify(body)
  if (abort !== undefined) init.signal = abort
  const response = await fetch(`/api/${path}`, init).catch((cause) => {
    if (abort?.aborted) throw cause
    throw UNREACHABLE
  })
  const text = await response.text()
  const value = text === '' ? {} : JSON.parse(text)
  if (response.ok) return value as T
  if (response.status === 401 && path !== 'login') me.value = null
  throw new ApiFailure(
    response.status,
    value.error?.reason ?? 'unknown',
    value.error?.message ?? `Status ${response.status}.`,
  )
}

let firstVersion: string | undefined

// Whoever had to log in anew, because the bus was restarted, has another bus before it perhaps.
effect(() => {
  const version = me.value?.version
  firstVersion ??= version
  if (version !== undefined && version !== firstVersion) isOutdated.value = true
})

export async function learnMe(): Promise<void> {
  try {
    me.value = await ask<Me>('me')
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 401) me.value = null
    else throw error
  }
}

export function may(...roles: readonly Me['role'][]): boolean {
  return me.value != null && roles.includes(me.value.role)
}
