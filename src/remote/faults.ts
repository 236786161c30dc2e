/**
 * What a request to an upstream over HTTP can end with when the upstream itself gives no answer (contract 11.4).
 *
 * Each of these is made at this end for one request while the others go on, so it stands here and not among the kernel's
 * faults; the two that both have mean the same. `docs/errors.md` explains each row; a test keeps the two in step.
 */
import { CODE, errorLine } from '../wire/jsonrpc.ts'

interface RemoteFaultRow {
  readonly code: number
  readonly message: string
  /** The same request may succeed later, unchanged: always, or as the status says. */
  readonly retryable?: true | 'by-status'
}

const code = CODE.internalError

export const REMOTE_FAULTS = {
  no_worker: { code, message: 'No worker of the pool is available.', retryable: true },
  worker_exited: { code, message: 'The worker ended before it answered.', retryable: true },
  upstream_failed: { code, message: 'The upstream answered with a status of failure.', retryable: 'by-status' },
  upstream_bad_response: { code, message: 'The upstream answered with something that is no answer to the request.' },
  upstream_too_large: { code, message: 'The upstream answered with more than max_input_buffer allows.' },
} as const satisfies Record<string, RemoteFaultRow>

export type RemoteReason = keyof typeof REMOTE_FAULTS

/** Why a request gets no answer of its upstream. */
export class RemoteFault extends Error {
  override readonly name = 'RemoteFault'
  readonly reason: RemoteReason
  readonly detail: Readonly<Record<string, unknown>>

  constructor(reason: RemoteReason, detail: Readonly<Record<string, unknown>> = {}) {
    super(reason)
    this.reason = reason
    this.detail = detail
  }

  /** The answer for the request with this id. */
  line(idSpelling: string): Buffer {
    const { code, message, ...row }: RemoteFaultRow = REMOTE_FAULTS[this.reason]
    const retryable = row.retryable === true ? { retryable: true } : {}
    return errorLine(idSpelling, { code, message, data: { reason: this.reason, ...retryable, ...this.detail } })
  }
}
