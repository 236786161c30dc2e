/**
 * Every refusal of the gateway in one table: its reason, its code and the sentence that says what to do.
 *
 * No other file writes an error code. Only the five codes of JSON-RPC occur; what tells two faults apart is the stable
 * `data.reason` (spec N). Text of peers is quoted, escaped and cut before it enters a sentence.
 */
import { CODE } from '../wire/jsonrpc.ts'
import { printable } from '../wire/printable.ts'
import type { ErrorBody } from './port.ts'

type Detail = Readonly<Record<string, unknown>>

interface Row {
  readonly code: number
  readonly retryable?: boolean
  readonly say: (detail: Detail) => string
}

const QUOTED_CHARACTERS = 80
const ECHOED_CHARACTERS = 256

/** Text of a peer as it may stand in a sentence. */
export function quote(text: unknown): string {
  const spelled = typeof text === 'string' ? text : (JSON.stringify(text) ?? 'nothing')
  return printable(
    JSON.stringify(spelled.length > QUOTED_CHARACTERS ? `${spelled.slice(0, QUOTED_CHARACTERS)}...` : spelled),
  )
}

const list = (names: unknown): string => (Array.isArray(names) && names.length > 0 ? names.join(', ') : 'none')

const request = (say: Row['say']): Row => ({ code: CODE.invalidRequest, say })
const method = (say: Row['say']): Row => ({ code: CODE.methodNotFound, say })
const params = (say: Row['say']): Row => ({ code: CODE.invalidParams, say })
const failure = (retryable: boolean, say: Row['say']): Row => ({ code: CODE.internalError, retryable, say })

const AGENT_NAME = '1 to 64 letters, digits, ".", "_", "-", beginning with a letter or digit'

const FAULTS = {
  bad_jsonrpc: request((d) => `"jsonrpc" is ${quote(d['found'])}; it must be "2.0" or left out`),
  bad_name: request((d) =>
    'name' in d
      ? `${quote(d['name'])} is no name for an agent; it is ${AGENT_NAME}, and not "bus"`
      : `${quote(d['method'])} is not AGENT::METHOD; an agent is ${AGENT_NAME}, a method is letters, digits, "_", ".", not beginning with a digit or "."`,
  ),
  bad_trace_id: request(
    () =>
      '"trace_id" must be 1 to 128 printable ASCII characters without spaces or "#"; leave it out to have one issued',
  ),
  not_allowed: request((d) =>
    d['tool'] === undefined
      ? `You may not use agent ${quote(d['agent'])}`
      : `You may not use ${quote(d['tool'])} of agent ${quote(d['agent'])}`,
  ),
  too_nested: request((d) => `The message is nested deeper than ${d['limit']} levels; send such data as text`),
  aio_only: request((d) => `Pool ${quote(d['pool'])} takes AGENT::METHOD calls only`),

  unknown_agent: method((d) => `There is no agent ${quote(d['agent'])}; known: ${list(d['known'])}`),
  unknown_method: method(
    (d) => `Agent ${quote(d['agent'])} has no method ${quote(d['method'])}; it has: ${list(d['methods'])}`,
  ),
  module_disabled: method(
    (d) => `Agent ${quote(d['agent'])} does not offer the module ${quote(d['module'])}; it has: ${list(d['methods'])}`,
  ),
  input_not_available_on_mcp: method(
    (d) => `Agent ${quote(d['agent'])} is an MCP server and has no "input"; use one of: ${list(d['methods'])}`,
  ),
  sampling_unsupported: method(
    (d) =>
      `Agent ${quote(d['agent'])} does not do sampling; name one of its tools as "sampling": {"tool": ...} in the configuration`,
  ),
  remote_queries_off: method(
    (d) =>
      `${quote(d['method'])} is answered on Unix and stdio doors only; set "remote_queries": true under "aio" to allow it here`,
  ),

  missing_inputs: params(() => 'Send "params": {"inputs": [{"type": ..., "value": ...}]} with at least one item'),
  invalid_input: params((d) => `Input ${d['index']} must be an object with "type" and "value"`),
  unknown_modality: params((d) => `Input ${d['index']} has the type ${quote(d['got'])}; known: ${list(d['known'])}`),
  unsupported_modality: params(
    (d) => `Input ${d['index']} is ${quote(d['got'])}; the agent accepts: ${list(d['accepts'])}`,
  ),
  invalid_value: params((d) => `The value of input ${d['index']} must be ${d['expected']}`),
  missing_param: params((d) => `"params" needs ${list(d['expected'])}`),
  invalid_param: params((d) => `"params.${d['param']}" must be ${d['expected']}`),
  payload_too_large: params(
    (d) =>
      `The request has ${d['bytes']} bytes, the agent takes ${d['limit']}; raise "max_payload_bytes" or send a URL`,
  ),
  unknown_sampling: params(
    (d) => `There is no sampling ${quote(d['sampling_id'])} of yours at this agent; begin with sampling.start`,
  ),

  name_taken: params((d) => `The name ${quote(d['name'])} belongs to a pool, an agent or another program`),
  too_many_agents: failure(false, (d) => `There are ${d['limit']} agents of programs already`),
  agent_gone: failure(true, (d) => `The program that is agent ${quote(d['agent'])} has gone`),
  agent_auth_required: failure(
    false,
    (d) => `Agent ${quote(d['agent'])} wants a login, which a call cannot give: log in with its own program first`,
  ),
  sampling_limit: failure(false, (d) => `One call may ask a model ${d['limit']} times`),

  agent_timeout: failure(
    false,
    (d) =>
      `Agent ${quote(d['agent'])} did not answer within ${d['timeout_ms']} ms; raise "timeout_ms" if it needs longer`,
  ),
  agent_unreachable: failure(true, (d) => `Agent ${quote(d['agent'])} cannot be reached: ${d['cause']}`),
  agent_unauthorized: failure(
    false,
    (d) => `Agent ${quote(d['agent'])} does not take the credentials it was sent; look at its "headers"`,
  ),
  agent_http_error: failure(false, (d) => `Agent ${quote(d['agent'])} answered with HTTP status ${d['http_status']}`),
  agent_redirect: failure(
    false,
    (d) =>
      `Agent ${quote(d['agent'])} redirects away from its endpoint, which is not followed; put the new address in the configuration`,
  ),
  agent_invalid_response: failure(false, (d) => `Agent ${quote(d['agent'])} gave no usable answer: ${d['cause']}`),
  bad_list: failure(false, (d) => `Agent ${quote(d['agent'])} gave no list of tools, and you may not see all of them`),
  agent_error: failure(false, (d) => String(d['message'])),
  worker_exited: failure(
    false,
    (d) => `The process of agent ${quote(d['agent'])} ended before it answered (${d['how']})`,
  ),
  no_worker: failure(true, (d) => `No worker of agent ${quote(d['agent'])} is available`),
  overloaded: failure(
    true,
    (d) => `Agent ${quote(d['agent'])} is busy and too many calls wait for it; try again later`,
  ),
  too_many_pending: failure(
    true,
    (d) => `${d['limit']} calls of this connection are open; wait for answers before sending more`,
  ),
  too_deep: failure(
    false,
    (d) => `Agents call each other more than ${d['limit']} levels deep; look for a loop in the trace`,
  ),
  trace_query_failed: failure(true, () => 'The trace store could not answer; the log of the bus says why'),
  internal_error: failure(false, () => 'The bus failed at this call; its log says why'),
  cancelled: failure(false, () => 'The caller cancelled the call'),
  parent_gone: failure(false, () => 'Nobody waits any more for what this worker was asked to do; the call is given up'),
  caller_gone: failure(false, () => 'The caller went away before the answer came'),
  shutting_down: failure(true, () => 'The bus is shutting down'),
} satisfies Record<string, Row>

export type Reason = keyof typeof FAULTS

/** Details that only fill the sentence; everything else is part of `data`. */
const SENTENCE_ONLY: ReadonlySet<string> = new Set(['message', 'how', 'expected', 'cause', 'found'])

export function fault(reason: Reason, detail: Detail = {}): ErrorBody {
  const row: Row = FAULTS[reason]
  const data: Record<string, unknown> = { reason }
  if (row.retryable !== undefined) data['retryable'] = row.retryable
  for (const [key, value] of Object.entries(detail)) {
    if (!SENTENCE_ONLY.has(key) && value !== undefined) data[key] = cut(value)
  }
  const body = { code: row.code, message: row.say(detail), data }
  return reason === 'agent_error' ? body : ofTheBus(body)
}

/** Agents may use the words of the bus: what is the bus's own is known by its object. */
const OF_THE_BUS = new WeakSet<object>()

export function ofTheBus<Body extends ErrorBody>(error: Body): Body {
  OF_THE_BUS.add(error)
  return error
}

/** Why the bus refuses; undefined: it is what an agent says. */
export function reasonOfTheBus(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !OF_THE_BUS.has(error)) return undefined
  const { reason } = ((error as ErrorBody).data ?? {}) as { reason?: unknown }
  return typeof reason === 'string' ? reason : undefined
}

/** A peer that sends a megabyte as a name does not get it back. */
function cut(value: unknown): unknown {
  return typeof value === 'string' && value.length > ECHOED_CHARACTERS ? value.slice(0, ECHOED_CHARACTERS) : value
}

/** Every reason with its code, for the documentation test. */
export const FAULT_CODES: Readonly<Record<Reason, number>> = Object.fromEntries(
  Object.entries(FAULTS).map(([reason, row]) => [reason, row.code]),
) as Record<Reason, number>

export interface Refusal {
  readonly fault: ErrorBody
}

export function refuse(reason: Reason, detail: Detail = {}): Refusal {
  return { fault: fault(reason, detail) }
}

export function isRefusal(value: unknown): value is Refusal {
  return typeof value === 'object' && value !== null && 'fault' in value
}
