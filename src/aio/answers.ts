/**
 * Reads what an agent says for a call: a partial, an answer in any of the spellings in use, or neither.
 *
 * Real agents answer with `output`, `outputs`, or a whole envelope inside `result`; a caller always gets `result` or
 * `error`. The envelope's id is not looked at: an answer belongs to the process or exchange it came from.
 */
import { CODE } from '../wire/jsonrpc.ts'
import { fault } from './faults.ts'
import { isObject, type JsonObject } from './json-object.ts'
import type { ErrorBody } from './port.ts'

export type Answer = { readonly result: unknown } | { readonly error: ErrorBody }

const NESTED_LEVELS = 4
const ENVELOPE_KEYS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'trace_id', 'call_id', 'partial'])
const ANSWER_KEYS = ['result', 'error', 'output', 'outputs'] as const

/** Whether the message claims to be an answer; a bare object does not. */
export function isAnswer(message: JsonObject): boolean {
  return ANSWER_KEYS.some((key) => message[key] !== undefined && (key !== 'error' || message[key] !== null))
}

/** The outputs of a partial; undefined: the message is not one. */
export function readPartial(message: JsonObject): readonly unknown[] | undefined {
  if (message['partial'] !== true) return undefined
  const result = message['result']
  const outputs = message['outputs'] ?? message['output'] ?? (isObject(result) ? result['outputs'] : undefined)
  return listOutputs(outputs)
}

/** undefined: not an answer. */
export function readAnswer(message: JsonObject): Answer | undefined {
  const envelope = unwrap(message)
  if (!isAnswer(envelope)) return undefined
  if (envelope['error'] !== undefined && envelope['error'] !== null) return { error: readError(envelope['error']) }
  if ('result' in envelope) return readResult(envelope['result'])
  const outputs = listOutputs(envelope['outputs'] ?? envelope['output'])
  const spoken = spokenError(outputs)
  if (spoken !== undefined) return { error: spoken }
  const rest = Object.entries(envelope).filter(([key]) => !ENVELOPE_KEYS.has(key) && key !== 'output')
  return { result: { ...Object.fromEntries(rest), outputs } }
}

/** The innermost envelope: some agents put a second one inside `result`. */
export function unwrap(message: JsonObject): JsonObject {
  let envelope = message
  for (let level = 0; level < NESTED_LEVELS; level++) {
    const inner = envelope['result']
    if (!isObject(inner) || inner['jsonrpc'] === undefined || !isAnswer(inner)) return envelope
    envelope = inner
  }
  return envelope
}

function readResult(result: unknown): Answer {
  if (!isObject(result)) return { result }
  const spoken = spokenError(listOutputs(result['output'] ?? result['outputs']))
  return spoken === undefined ? { result } : { error: spoken }
}

function readError(error: unknown): ErrorBody {
  if (!isObject(error)) return fault('agent_error', { message: typeof error === 'string' ? error : 'The agent failed' })
  const { code, message, data } = error
  return {
    code: Number.isInteger(code) ? (code as number) : CODE.internalError,
    message: typeof message === 'string' ? message : 'The agent failed',
    ...(data === undefined ? {} : { data }),
  }
}

function listOutputs(outputs: unknown): readonly unknown[] {
  if (outputs === undefined || outputs === null) return []
  const items = Array.isArray(outputs) ? outputs : [outputs]
  return items.map((item) => (typeof item === 'string' ? { type: 'text', value: item } : item))
}

/** An error that the agent dressed up as its only output. */
function spokenError(outputs: readonly unknown[]): ErrorBody | undefined {
  const [only, ...more] = outputs
  if (!isObject(only) || only['type'] !== 'error' || more.length > 0) return undefined
  const text = only['message'] ?? only['value']
  return fault('agent_error', {
    message: typeof text === 'string' ? text : 'The agent failed',
    error_code: only['error_code'],
  })
}
