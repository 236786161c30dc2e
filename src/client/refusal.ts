/**
 * Reads an error line of the bus as the reason why it wants no connection.
 *
 * Every other error line is somebody's answer and none of our business. Text of a peer is cut and escaped before it is
 * shown.
 */
import { CODE } from '../wire/jsonrpc.ts'
import { printable } from '../wire/printable.ts'
import { BusRefused } from './errors.ts'

/** After these the bus closes the connection, and would do so again. */
const FINAL_REASONS: ReadonlySet<string> = new Set(['not_json', 'bad_envelope', 'message_too_large'])
const MAX_SHOWN = 300

/** `isFinal`: to come back would end the same way. */
export type Refusal = BusRefused & { readonly isFinal: boolean }

/** Undefined when the line holds no error. */
export function readRefusal(line: Buffer): Refusal | undefined {
  const { error } = JSON.parse(line.toString('utf8')) as { error?: unknown }
  if (typeof error !== 'object' || error === null) return undefined
  const { code, message, data } = error as { code?: unknown; message?: unknown; data?: unknown }
  const { reason, retryable, pools } = (typeof data === 'object' && data !== null ? data : {}) as Record<
    string,
    unknown
  >
  const said = typeof message === 'string' ? message : 'it gave no reason'
  const choice = Array.isArray(pools) ? ` It has: ${pools.join(', ')}.` : ''
  const text = `the bus refuses this connection: ${printable((said + choice).slice(0, MAX_SHOWN))}`
  const answer = { code: typeof code === 'number' ? code : CODE.internalError, message: said, data }
  const refusal = new BusRefused(typeof reason === 'string' ? reason : 'unknown', text, retryable === true, answer)
  return Object.assign(refusal, { isFinal: FINAL_REASONS.has(refusal.reason) })
}
