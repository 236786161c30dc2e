/**
 * Every refusal of the web doors: its status, and the JSON-RPC error in its body (contract 10.1 to 10.17).
 *
 * The reasons of the kernel have a status here and their sentence there; those that only HTTP knows have both here. A test keeps
 * the rows in step with `docs/errors.md`.
 */
import { FAULTS, faultOf, type Reason } from '../kernel/faults.ts'
import { CODE, type ErrorObject } from '../wire/jsonrpc.ts'
import { LOOP_STATUS } from '../wire/via.ts'

interface WebFaultRow {
  readonly status: number
  readonly code: number
  readonly message: string
  readonly retryable?: true
}

const invalid = CODE.invalidRequest

export const WEB_FAULTS = {
  not_found: { status: 404, code: CODE.methodNotFound, message: 'There is nothing at this path.' },
  wrong_method: { status: 405, code: invalid, message: 'This path does not take this method; see Allow.' },
  wrong_host: {
    status: 403,
    code: invalid,
    message: 'The Host is none of this door: add its name to "hosts", or set "public_url".',
  },
  wrong_origin: {
    status: 403,
    code: invalid,
    message: 'The Origin is not this door\'s: add it to "origins" to let its pages in.',
  },
  wrong_media_type: {
    status: 415,
    code: invalid,
    message: 'The body must be application/json in UTF-8, without a Content-Encoding.',
  },
  not_acceptable: {
    status: 406,
    code: invalid,
    message: 'The client must accept what this path answers with; see data.needs.',
  },
  tls_required: {
    status: 403,
    code: invalid,
    message: 'Others can reach this door: give it a certificate, or an https "public_url" behind a proxy.',
  },
  upgrade_required: { status: 426, code: invalid, message: 'This path is for WebSocket: ask for an upgrade.' },
  connection_required: {
    status: 400,
    code: invalid,
    message: 'Name the connection in Acp-Connection-Id, or open one with initialize.',
  },
  unknown_connection: { status: 404, code: invalid, message: 'There is no such connection: open one with initialize.' },
  initialized_before: { status: 400, code: invalid, message: 'This connection has been initialized.' },
  session_required: {
    status: 400,
    code: invalid,
    message: 'Name the session of the message in the header for it, or initialize first.',
  },
  no_batches: { status: 501, code: invalid, message: 'This protocol has no batches: send one message at a time.' },
  unknown_session: {
    status: 404,
    code: invalid,
    message: 'There is no such session for this caller at this path: initialize again.',
  },
  unknown_event: {
    status: 400,
    code: invalid,
    message: 'The stream cannot go on behind this event: it is not known, or what followed it is gone.',
  },
  unknown_version: {
    status: 400,
    code: -32022,
    message: 'This protocol version is not spoken here; see data.supported.',
  },
  header_mismatch: {
    status: 400,
    code: -32020,
    message: 'A header is missing or says something else than the body; see data.header.',
  },
  meta_required: {
    status: 400,
    code: CODE.invalidParams,
    message: 'A request of this revision carries its protocol version and client capabilities in _meta.',
  },
  no_stream: {
    status: 503,
    code: CODE.internalError,
    message: 'The client has no open stream on which it could be asked.',
  },
  body_timeout: { status: 408, code: invalid, message: 'The body did not come in time.', retryable: true },
  too_many_connections: {
    status: 503,
    code: CODE.internalError,
    message: 'The door has as many connections as max_connections allows.',
    retryable: true,
  },
} as const satisfies Record<string, WebFaultRow>

export type WebReason = keyof typeof WEB_FAULTS

/** How a reason of the kernel reads as a status, where an answer of the bus is not simply 200 (contract 9.4, 10.15). */
const STATUS: Partial<Record<Reason, number>> = {
  not_json: 400,
  bad_envelope: 400,
  pool_required: 400,
  agent_required: 400,
  aio_only: 400,
  protocol_mismatch: 400,
  bad_params: 400,
  bad_position: 400,
  bad_level: 400,
  bad_cursor: 400,
  message_too_large: 413,
  loop_detected: LOOP_STATUS,
  unauthenticated: 401,
  not_allowed: 403,
  unknown_pool: 404,
  unknown_agent: 404,
  unknown_method: 404,
  unknown_tool: 404,
  unknown_prompt: 404,
  unknown_resource: 404,
  tool_moved: 404,
  session_not_owned: 404,
  session_lost: 404,
  not_when_shared: 404,
  not_with_lease: 404,
  not_offered: 404,
  task_not_owned: 404,
  rate_limited: 429,
  too_many_clients: 429,
  too_many_sessions: 429,
  too_many_pending: 429,
  too_many_subscriptions: 429,
  worker_exited: 502,
  worker_stalled: 502,
  no_worker: 503,
  overloaded: 503,
  shutting_down: 503,
  keys_unavailable: 503,
  audit_unavailable: 503,
  request_timeout: 504,
}

export function isWebReason(reason: string): reason is WebReason {
  return Object.hasOwn(WEB_FAULTS, reason)
}

export function statusOf(reason: Reason | WebReason): number {
  if (isWebReason(reason)) return WEB_FAULTS[reason].status
  return STATUS[reason] ?? ('retryable' in FAULTS[reason] ? 503 : 500)
}

/** What only the gateway of agents says, and its code does not tell. */
const STATUS_OF_CALL: ReadonlyMap<string, number> = new Map([
  ['unknown_sampling', 404],
  ['payload_too_large', 413],
  ['too_many_agents', 429],
  ['sampling_limit', 429],
])

const STATUS_OF_CODE: ReadonlyMap<number, number> = new Map([
  [CODE.invalidRequest, 400],
  [CODE.invalidParams, 400],
  [CODE.methodNotFound, 404],
])

/** How the refusal of an `agent::method` call reads as a status (contract 10.15). */
export function statusOfCall(reason: string, code: number, isRetryable: boolean): number {
  const own = STATUS_OF_CALL.get(reason) ?? STATUS[reason as Reason]
  return own ?? STATUS_OF_CODE.get(code) ?? (isRetryable ? 503 : 500)
}

export function webFaultOf(reason: Reason | WebReason, detail: Record<string, unknown> = {}): ErrorObject {
  if (!isWebReason(reason)) return faultOf(reason, detail)
  const row: WebFaultRow = WEB_FAULTS[reason]
  const retryable = row.retryable === undefined ? {} : { retryable: true }
  return { code: row.code, message: row.message, data: { reason, ...retryable, ...detail } }
}
