/**
 * Every fault of a peer and every refusal of the bus: its reason, code and sentence, in one table.
 *
 * `docs/errors.md` explains each row to users; a test keeps the two in step. A fault is a value: whoever meets one answers
 * the peer with it, counts it, and closes the peer only where the row says so. Failures of the world and mistakes of our
 * own do not belong here.
 */
import { CODE, type ErrorObject } from '../wire/jsonrpc.ts'

interface FaultRow {
  readonly code: number
  readonly message: string
  /** The same request may succeed later, unchanged. */
  readonly retryable?: true
  /** The peer is closed once it has been told. */
  readonly closes?: true
}

const internal = CODE.internalError

export const FAULTS = {
  not_json: {
    code: CODE.parseError,
    message: 'The line is not JSON in UTF-8; the connection is closed.',
    closes: true,
  },
  bad_envelope: {
    code: CODE.invalidRequest,
    message: 'The message cannot be routed; the connection is closed.',
    closes: true,
  },
  message_too_large: {
    code: CODE.invalidRequest,
    message: 'The line is longer than max_input_buffer allows; the connection is closed.',
    closes: true,
  },
  pool_required: {
    code: CODE.invalidRequest,
    message: 'Several pools are configured: name one in "pool", or set default_pool.',
  },
  aio_only: {
    code: CODE.invalidRequest,
    message: 'The processes of this pool live for one call each: call it as AGENT::METHOD.',
  },
  agent_required: {
    code: CODE.invalidRequest,
    message: 'Several agents are offered: name one in "agentId".',
  },
  unknown_agent: { code: CODE.methodNotFound, message: 'No agent has this id.' },
  unknown_pool: { code: CODE.methodNotFound, message: 'No pool has this name.' },
  unknown_method: { code: CODE.methodNotFound, message: 'The bus has no method of this name.' },
  session_not_owned: { code: CODE.sessionNotFound, message: 'The session belongs to another client.' },
  session_lost: {
    code: CODE.sessionNotFound,
    message: 'The worker of this session has ended; load, resume or start a session.',
  },
  session_busy: {
    code: internal,
    message: 'The session is busy with other clients; try again.',
    retryable: true,
  },
  unknown_session: { code: CODE.sessionNotFound, message: 'There is no such session.' },
  bad_position: { code: CODE.invalidParams, message: 'The session has not come to this number yet.' },
  bad_params: { code: CODE.invalidParams, message: 'The parameters are not those of the method.' },
  session_id_conflict: {
    code: internal,
    message: 'The session id is already in use by this client on another worker.',
  },
  too_many_clients: {
    code: internal,
    message: 'There are as many clients as max_clients allows, or as one session may have.',
    retryable: true,
    closes: true,
  },
  too_many_sessions: {
    code: internal,
    message: 'The client has as many sessions as max_sessions_per_client allows.',
    retryable: true,
  },
  too_many_pending: {
    code: internal,
    message: 'The client has as many unanswered requests as max_pending_per_client allows.',
    retryable: true,
  },
  request_timeout: {
    code: internal,
    message: 'The worker did not answer within request_timeout_sec.',
    retryable: true,
  },
  worker_exited: { code: internal, message: 'The worker ended before it answered.', retryable: true },
  worker_stalled: {
    code: internal,
    message: 'The worker stopped reading or answering and was ended.',
    retryable: true,
  },
  no_worker: { code: internal, message: 'No worker of the pool is available.', retryable: true },
  overloaded: { code: internal, message: 'The pool is busy and the request has waited too long.', retryable: true },
  shutting_down: { code: internal, message: 'The bus is shutting down.', retryable: true },
  protocol_mismatch: {
    code: CODE.invalidRequest,
    message:
      'The worker of this pool already speaks another protocol or another era of it; set protocol or era in the pool.',
  },
  not_when_shared: {
    code: CODE.methodNotFound,
    message: 'This cannot be told apart for several clients of one worker; use sharing isolated.',
  },
  not_with_lease: {
    code: CODE.methodNotFound,
    message: 'A subscription would hold the lease for ever; use sharing shared or isolated.',
  },
  task_not_owned: { code: CODE.invalidParams, message: 'The task belongs to another client, or is not known.' },
  too_many_subscriptions: {
    code: internal,
    message: 'The client has subscribed to as many resources as it may.',
    retryable: true,
  },
  not_offered: { code: CODE.methodNotFound, message: 'The client that holds the lease has not offered this.' },
  unauthenticated: {
    code: CODE.invalidRequest,
    message: 'Who is calling is not proved: show a token that holds, in bus::open or as Authorization: Bearer.',
    closes: true,
  },
  not_allowed: { code: CODE.invalidRequest, message: 'The caller has no right to this.' },
  rate_limited: { code: internal, message: 'The caller has sent as much as its rate allows.', retryable: true },
  keys_unavailable: {
    code: internal,
    message: 'The keys of the issuer cannot be had now, so the token cannot be judged.',
    retryable: true,
  },
  audit_unavailable: { code: internal, message: 'The audit log cannot be written.', retryable: true },
  bad_list: { code: internal, message: 'The worker answered with a list that cannot be shown in part.' },
  unknown_tool: { code: CODE.invalidParams, message: 'No tool is listed under this name.' },
  unknown_prompt: { code: CODE.invalidParams, message: 'No prompt is listed under this name.' },
  unknown_resource: { code: CODE.sessionNotFound, message: 'No member of the aggregate has this resource.' },
  tool_moved: {
    code: CODE.invalidParams,
    message: 'The name belongs to another member since the tools were last listed: list them again.',
  },
  bad_level: { code: CODE.invalidParams, message: 'There is no such log level.' },
  bad_cursor: { code: CODE.invalidParams, message: 'The cursor is none, or the list has changed since it was given.' },
  no_member: { code: internal, message: 'None of the members could be listed.', retryable: true },
  input_required: { code: internal, message: 'The tool wants to know more than this client can be asked.' },
  loop_detected: {
    code: CODE.invalidRequest,
    message: 'This has passed through this bus before, or through too many buses: the pools of some lead in a circle.',
    closes: true,
  },
  node_lost: { code: internal, message: 'The node whose worker this was for is lost.', retryable: true },
  directory_unavailable: {
    code: internal,
    message: 'Where the session lives cannot be looked up now.',
    retryable: true,
  },
  client_gone: { code: internal, message: 'The client that this was put to has gone.' },
  no_client: { code: internal, message: 'No client can be told this was meant for; name its session.' },
} as const satisfies Record<string, FaultRow>

export type Reason = keyof typeof FAULTS

export function isReason(word: string): word is Reason {
  return Object.hasOwn(FAULTS, word)
}

export function faultOf(reason: Reason, detail: Record<string, unknown> = {}): ErrorObject {
  const row: FaultRow = FAULTS[reason]
  const retryable = row.retryable === undefined ? {} : { retryable: true }
  return { code: row.code, message: row.message, data: { reason, ...retryable, ...detail } }
}

/** The error of every fault as JSON, up to where the detail begins. */
const HEADS = new Map<Reason, string>()

/** A client can have itself refused as fast as it writes: only what differs is spelled anew. */
export function faultLine(idSpelling: string, reason: Reason, detail?: Record<string, unknown>): Buffer {
  const head = HEADS.get(reason) ?? spellHead(reason)
  const more = detail === undefined ? '' : JSON.stringify(detail).slice(1, -1)
  return Buffer.from(`{"jsonrpc":"2.0","id":${idSpelling},"error":${head}${more === '' ? '' : ','}${more}}}}\n`)
}

function spellHead(reason: Reason): string {
  const head = JSON.stringify(faultOf(reason)).slice(0, -2)
  HEADS.set(reason, head)
  return head
}

/** Why a message that nobody is owed an answer for was dropped (contract: counted by reason). */
export type DropReason =
  | Reason
  | 'client_stuck'
  | 'junk_line'
  | 'unknown_answer'
  | 'late_answer'
  | 'unasked_answer'
  | 'null_id_error'
  | 'unroutable'
  | 'unknown_session'
  | 'session_held_too_long'
  | 'worker_bad_envelope'
  | 'cancel_for_nothing'
  | 'late_progress'
  | 'unattributable'
  | 'session_client_dropped'
