/** A trace and its calls as the API tells them (contract 15.18), and the words in which they are shown. */
import { brief, duration } from '../text.ts'

export type TraceStatus = 'active' | 'error' | 'completed'

export interface Summary {
  readonly trace_id: string
  readonly status: TraceStatus
  readonly started_at: string
  readonly ended_at: string | null
  readonly n_calls: number
  readonly n_errors: number
  readonly agents: readonly string[]
  readonly agent?: string
  readonly method?: string
  readonly target?: string
  readonly prompt?: string
}

export interface CallFault {
  readonly code?: number
  readonly message?: string
  readonly type?: string
  readonly data?: unknown
}

export interface Call {
  readonly id: number
  readonly agent: string
  readonly method: string
  readonly target?: string
  readonly native_method?: string
  readonly status: 'pending' | 'ok' | 'error'
  readonly protocol: string
  readonly type: string
  readonly parent_id: number | null
  readonly worker: string | null
  readonly caller?: { readonly principal: string; readonly agent?: string; readonly name?: string }
  readonly error?: CallFault
  readonly partials: number
  readonly bytes_in: number
  readonly bytes_out: number
  readonly started_at: string
  readonly duration_ms: number | null
  readonly truncated?: readonly Side[]
  readonly lost?: readonly Side[]
}

export type Side = 'input' | 'output'

export interface WholeCall extends Call {
  readonly input: unknown
  readonly output: unknown
  readonly request_id: string | number | null
  readonly span_id: string
}

export interface Trace {
  readonly trace_id: string
  readonly status: TraceStatus
  readonly started_at: string
  readonly ended_at: string | null
  readonly n_calls: number
  /** Calls of which something could not be kept. */
  readonly missing: number
  readonly calls: readonly Call[]
  /** So many calls are not told. */
  readonly left_off?: number
}

/** More than a colour says how something ended. */
export const MARKS = { active: '◌', pending: '◌', error: '✗', completed: '✓', ok: '✓' } as const

export function nameOf({ agent, method }: { readonly agent?: string; readonly method?: string }): string {
  return brief(`${agent ?? '?'}::${method ?? '?'}`)
}

/** Why a call failed, in one line. */
export function errorLine({ error }: Pick<Call, 'error'>): string {
  const { code, message = 'failed', data, type } = error ?? {}
  const reason = (data as { reason?: unknown } | null | undefined)?.reason
  const label = [code, typeof reason === 'string' ? reason : type].filter((part) => part !== undefined).join(' ')
  return brief(label === '' ? message : `${label}: ${message}`, 300)
}

export function tookOf({ duration_ms }: Pick<Call, 'duration_ms'>): string {
  return duration_ms === null ? 'open' : duration(duration_ms)
}

/** How long it took; an open one has not yet. */
export function spanMs({ started_at, ended_at }: Pick<Summary, 'started_at' | 'ended_at'>): number | null {
  return ended_at === null ? null : Date.parse(ended_at) - Date.parse(started_at)
}

export function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}
