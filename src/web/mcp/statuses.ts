/** Which status an answer to a message has (contract 10.8, 10.11). The worker's own words pass as they are, whatever the status. */
import type { Reason } from '../../kernel/faults.ts'
import { refusalOf } from '../rpc.ts'
import type { Refusal, WebRequest } from '../web-request.ts'

/**
 * What the bus refuses in terms of HTTP: credentials, rights, rates, what cannot be routed, the end of the bus. All its other
 * answers are 200, since clients lose the code of an error that comes with another status.
 */
const TOLD_BY_STATUS: ReadonlySet<Reason> = new Set<Reason>([
  'not_json',
  'bad_envelope',
  'message_too_large',
  'pool_required',
  'unknown_pool',
  'aio_only',
  'protocol_mismatch',
  'unauthenticated',
  'not_allowed',
  'rate_limited',
  'too_many_clients',
  'too_many_pending',
  'keys_unavailable',
  'audit_unavailable',
  'shutting_down',
])

/** What the bus says of a method that a stateless client asks for is said by the status too. */
const STATELESS_TOLD_BY_STATUS: ReadonlySet<Reason> = new Set<Reason>(['unknown_method'])

export type Era = 'handshake' | 'stateless'

/** The refusal that an answer of the bus's own is, for the one who asked with this id; undefined: it is an ordinary answer. */
export function refusalIn(line: Buffer, fault: Reason | undefined, era: Era, id: string): Refusal | undefined {
  if (fault === undefined) return undefined
  const isTold = TOLD_BY_STATUS.has(fault) || (era === 'stateless' && STATELESS_TOLD_BY_STATUS.has(fault))
  return isTold ? { ...refusalOf(line, fault), id } : undefined
}

const STATUS_OF_CODE: ReadonlyMap<unknown, number> = new Map([
  [-32601, 404],
  [-32020, 400],
  [-32021, 400],
  [-32022, 400],
])

/** Of a worker's answer in the stateless era, by the code of its error. */
export function statelessStatus(code: unknown): number {
  return STATUS_OF_CODE.get(code) ?? 200
}

/** A whole answer that is no stream. */
export function answerOnce(web: WebRequest, line: Buffer, refusal: Refusal | undefined, status = 200): void {
  if (refusal === undefined) web.answer(status, line)
  else web.refuse(refusal)
}
