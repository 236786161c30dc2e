/**
 * A line on its way to an MCP server: its bytes, and the little that the way depends on.
 *
 * Which era a message belongs to it says itself: a request with a protocol version in `_meta` is of the stateless one.
 */
import { messagesIn } from '../../wire/batches.ts'
import { Envelope, type IdKey, SHAPE } from '../../wire/envelope.ts'
import { FIELD } from '../../wire/fields.ts'

export interface Outgoing {
  /** Without its newline; a copy. */
  readonly body: Buffer
  readonly kind: 'request' | 'notification' | 'response'
  readonly method: string
  readonly id: IdKey | undefined
  readonly idSpelling: string
  /** The version in `_meta`; undefined: the handshake has said it. */
  readonly version: string | undefined
  /** What a cancel is about. */
  readonly cancels: IdKey | undefined
  readonly uri: string | undefined
  readonly taskId: string | undefined
}

const KINDS = {
  [SHAPE.request]: 'request',
  [SHAPE.notification]: 'notification',
  [SHAPE.response]: 'response',
} as const

const LINE_END = Buffer.from('\n')
/** Messages in one array, where the protocol allows that. */
const MAX_BATCH = 1_024

const reader = new Envelope()

/** Undefined: the line is no message. */
export function readOutgoing(bytes: Buffer, start: number, end: number): Outgoing | undefined {
  const shape = reader.read(bytes, start, end)
  if (shape === SHAPE.notJson || shape === SHAPE.bad) return undefined
  return {
    body: Buffer.from(bytes.subarray(start, end)),
    kind: KINDS[shape],
    method: reader.text(FIELD.method) ?? '',
    id: reader.key(FIELD.id),
    idSpelling: reader.idSpelling(),
    version: reader.text(FIELD.metaProtocolVersion),
    cancels: reader.key(FIELD.requestId),
    uri: reader.text(FIELD.uri),
    taskId: reader.text(FIELD.taskId),
  }
}

/** A line that came from the server, and what it is to the request it came for. */
export interface Incoming {
  /** With its newline. */
  readonly line: Buffer
  readonly kind: 'answer' | 'other-answer' | 'message' | 'junk'
  /** Whose answer it is, if it is one. */
  readonly id: IdKey | undefined
  readonly isResult: boolean
  /** The version that a welcome names. */
  readonly version: string | undefined
  readonly errorCode: number | undefined
}

/** Judges `bytes`, a line without its newline, for the request with this id. */
export function readIncoming(bytes: Buffer, asked: Pick<Outgoing, 'id' | 'idSpelling'> | undefined): Incoming {
  const shape = reader.read(bytes, 0, bytes.length)
  const isAnswer = shape === SHAPE.response
  const id = isAnswer ? reader.key(FIELD.id) : undefined
  const errorCode = reader.key(FIELD.errorCode)
  const common = {
    id,
    isResult: isAnswer && reader.has(FIELD.result),
    version: isAnswer ? reader.text(FIELD.resultProtocolVersion) : undefined,
    errorCode: isAnswer && typeof errorCode === 'number' ? errorCode : undefined,
  }
  if (shape === SHAPE.request || shape === SHAPE.notification)
    return { ...common, kind: 'message', line: lineOf(bytes) }
  if (isAnswer && id !== undefined) {
    const kind = asked !== undefined && id === asked.id ? 'answer' : 'other-answer'
    return { ...common, kind, line: lineOf(bytes) }
  }
  // An error that could not be told whose it is belongs to whoever asked here.
  const error = asked === undefined ? undefined : errorWithoutId(bytes)
  if (error === undefined) return { ...common, kind: 'junk', line: bytes }
  return {
    ...common,
    kind: 'answer',
    line: Buffer.from(`{"jsonrpc":"2.0","id":${asked!.idSpelling},"error":${error}}\n`),
  }
}

/** The members of an array of messages, or the one message there is; undefined: it is no JSON. */
export function messagesOf(bytes: Buffer): readonly Buffer[] {
  const shape = reader.read(bytes, 0, bytes.length)
  if (shape !== SHAPE.bad || !reader.isArray) return [bytes]
  return messagesIn(reader, MAX_BATCH).map((line) => line.subarray(0, -1))
}

function errorWithoutId(bytes: Buffer): string | undefined {
  let value: { error?: unknown; id?: unknown } | null
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || (value.id !== undefined && value.id !== null)) return undefined
  const { error } = value
  if (typeof error !== 'object' || error === null || typeof (error as { code?: unknown }).code !== 'number')
    return undefined
  return JSON.stringify(error)
}

function lineOf(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, LINE_END])
}
