/**
 * A call while the bus knows it: opened by its start, completed by its end, shared by the queue and the recent memory.
 *
 * Payloads become text here, at once, so nobody can change them later and their size is known.
 */
import type { CallEnd, CallError, CallPartial, CallStart } from './call.ts'
import { encodePayload } from './payload.ts'
import type { CallRow, ChangeKind } from './row.ts'
import { FLAG, STATUS } from './schema.ts'

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

export interface CallRecord {
  readonly traceId: string
  readonly otelTraceId: string | null
  readonly row: Mutable<CallRow>
  /** The database has the row. */
  stored: boolean
  /** What the next batch must say of it. */
  queued: ChangeKind | undefined
  /** Something of it was lost, and its trace has been charged for it. */
  isCharged: boolean
  /** What the queue and the memory count it as; undefined: the memory has let it go. */
  queuedBytes: number
  rememberedBytes: number | undefined
  /** Payloads the memory has let go of although the database has them, as bits of FLAG. */
  forgotten: number
}

const MAX_ERROR_MESSAGE = 4_096

export function openRecord(call: CallStart): CallRecord {
  return {
    traceId: call.traceId,
    otelTraceId: call.otelTraceId ?? null,
    row: rowOf(call),
    stored: false,
    queued: undefined,
    isCharged: false,
    queuedBytes: 0,
    rememberedBytes: undefined,
    forgotten: 0,
  }
}

function rowOf(call: CallStart): Mutable<CallRow> {
  return {
    id: call.callId,
    parent_id: call.parentId,
    request_id: call.requestId === null ? null : JSON.stringify(call.requestId),
    protocol: call.protocol,
    type: call.type,
    agent: call.agent,
    worker: call.worker,
    method: call.method,
    native_method: call.nativeMethod ?? null,
    target: call.target ?? null,
    status: STATUS.pending,
    error: null,
    partials: 0,
    first_partial_at: null,
    bytes_in: call.bytesIn,
    bytes_out: 0,
    started_at: call.startedAtMs,
    ended_at: null,
    flags: 0,
    caller: call.caller === undefined ? null : JSON.stringify(call.caller),
    input: encodePayload(call.input) ?? null,
    output: null,
  }
}

export function countPartial(record: CallRecord, partial: CallPartial): void {
  record.row.partials += 1
  record.row.first_partial_at ??= partial.atMs
}

export function closeRecord(record: CallRecord, call: CallEnd): void {
  const { row } = record
  row.status = STATUS[call.status]
  row.error = call.error === undefined ? null : encodeError(call.error)
  row.output = encodePayload(call.output) ?? null
  row.bytes_out = call.bytesOut
  row.partials = Math.max(row.partials, call.partials)
  row.first_partial_at ??= call.firstPartialAtMs ?? null
  row.ended_at = Math.max(call.endedAtMs, row.started_at)
  row.native_method = call.nativeMethod ?? row.native_method
  row.target = call.target ?? row.target
  row.worker = call.worker ?? row.worker
}

/** Gives up a payload for good. */
export function losePayload(record: CallRecord, which: 'input' | 'output'): void {
  if (record.row[which] === null) return
  record.row[which] = null
  record.row.flags |= which === 'input' ? FLAG.inputLost : FLAG.outputLost
}

/** Lets go of payloads too large to be remembered beside the database. */
export function forgetLarge(record: CallRecord, maxBytes: number): void {
  for (const which of ['input', 'output'] as const) {
    if ((record.row[which]?.length ?? 0) <= maxBytes) continue
    record.row[which] = null
    record.forgotten |= which === 'input' ? FLAG.inputLost : FLAG.outputLost
  }
}

export function payloadLength(record: CallRecord): number {
  return (record.row.input?.length ?? 0) + (record.row.output?.length ?? 0)
}

function encodeError(error: CallError): string {
  const { code, message, data, type } = error
  // An agent may have put anything where a message belongs.
  const kept = { code, message: String(message).slice(0, MAX_ERROR_MESSAGE), type }
  const text = data === undefined ? undefined : encodePayload(data)
  const head = JSON.stringify(kept)
  return text === undefined ? head : `${head.slice(0, -1)},"data":${text}}`
}
