/** Which statuses say that the upstream does not want us at all (contract 11.2): to ask again soon would be the same. */
import { LOOP, LOOP_STATUS } from '../../wire/via.ts'
import type { Outgoing } from './message.ts'

const OPENINGS: ReadonlySet<string> = new Set(['initialize', 'server/discover'])

/** Why, in words; undefined: the status concerns the one request. Later in a session 403 may be about one tool only. */
export function refusalOf(status: number, message?: Outgoing): string | undefined {
  if (status === LOOP_STATUS) return LOOP
  const isOpening = message !== undefined && OPENINGS.has(message.method)
  return status === 401 || status === 407 || (status === 403 && isOpening)
    ? `it refuses the credentials (HTTP ${status})`
    : undefined
}
