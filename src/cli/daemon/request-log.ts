/**
 * The access log: a line at level debug for every request of a client that has ended (contract 8.5).
 *
 * Who asked what of whom, how it ended and how long it took; nothing of what was said.
 */
import type { Action } from '../../kernel/events.ts'
import type { Log } from './log.ts'

const MAX_TEXT = 256

export function logRequest(log: Log, done: Extract<Action, { do: 'audit' }>): void {
  if (!log.isWritten('debug')) return
  const { event, client, pool, method, tool, outcome, durationMs } = done
  const about = { client, pool, method: method.slice(0, MAX_TEXT), tool: tool?.slice(0, MAX_TEXT), outcome }
  log.write('debug', event === 'denied' ? 'denied' : 'answered', { ...about, ms: Math.round(durationMs * 1000) / 1000 })
}
