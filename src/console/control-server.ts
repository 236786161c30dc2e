/**
 * Answers questions about the bus on its control socket: one JSON-RPC request per line, one answer per line.
 *
 * It knows no method by itself; a method that follows something emits notifications until the asker leaves. The socket is
 * the user's own (mode 0600), so whoever can connect may ask. Lines are short; a long one closes the connection. Whatever
 * is asked is answered, an exception of a method too: it is told to `onTrouble` and ends nothing.
 */
import type { Duplex } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { LineSplitter } from '../wire/frame.ts'
import { CODE, type ErrorObject, errorLine, notificationLine, resultLine } from '../wire/jsonrpc.ts'

const MAX_LINE_BYTES = 64 * 1024
const LEAVE_MS = 1_000

export interface ControlCall {
  readonly params: Readonly<Record<string, unknown>>
  /** One item of something that is followed. */
  emit(item: unknown): void
  /** Called when the asker leaves. */
  onLeave(callback: () => void): void
}

/** A mistake of the asker's, or something that cannot be done now; the message says what. */
export class ControlError extends Error {
  readonly data: unknown
  readonly code: number

  constructor(message: string, data?: unknown, code: number = CODE.invalidRequest) {
    super(message)
    this.data = data
    this.code = code
  }
}

export type ControlMethods = Readonly<Record<string, (call: ControlCall) => unknown>>

/** Told of an exception that is neither the asker's mistake nor a refusal. */
export type OnTrouble = (error: unknown) => void

/** What the asker hears of an exception: the log of the bus has the rest. */
const OWN_FAILURE = {
  code: CODE.internalError,
  message: 'The bus failed to answer this; its log says why',
  data: { reason: 'internal_error' },
} as const

/**
 * Serves one connection until it ends. Nothing that is said or thrown here leaves it. One question is answered at a time,
 * and everybody else has a turn before the next; whoever asks more waits, and whoever does not read is not read.
 */
export function serveControl(socket: Duplex, methods: ControlMethods, onTrouble: OnTrouble = () => {}): void {
  const splitter = new LineSplitter(MAX_LINE_BYTES)
  const asked: string[] = []
  let isAnswering = false
  const answerAll = async (): Promise<void> => {
    isAnswering = true
    socket.pause()
    for (let text = asked.shift(); text !== undefined && !socket.destroyed; text = asked.shift()) {
      await answer(socket, text, methods, onTrouble)
      await mayGoOn(socket)
    }
    isAnswering = false
    if (splitter.overflowed) refuseLine(socket)
    else if (socket.readableEnded) socket.end()
    socket.resume()
  }
  socket.on('error', () => socket.destroy())
  socket.on('end', () => {
    if (!isAnswering) socket.end()
  })
  socket.on('data', (chunk: Buffer) => {
    if (splitter.overflowed) return
    splitter.push(chunk, 0, (bytes, start, end) => {
      asked.push(bytes.utf8Slice(start, end))
      return true
    })
    if (asked.length > 0 || splitter.overflowed) void answerAll()
  })
}

/** What was said is on its way, and others had their turn. */
async function mayGoOn(socket: Duplex): Promise<void> {
  if (socket.writableNeedDrain) await new Promise<void>((resolve) => onDrain(socket, resolve))
  await nextTurn()
}

function onDrain(socket: Duplex, then: () => void): void {
  const done = (): void => {
    socket.off('drain', done).off('close', done)
    then()
  }
  socket.on('drain', done).on('close', done)
}

/** The rest of the line is read for a moment and thrown away: whoever is cut off in the middle does not hear why. */
function refuseLine(socket: Duplex): void {
  const message = `a request is a line of at most ${MAX_LINE_BYTES / 1024} KiB`
  socket.end(errorLine('null', { code: CODE.invalidRequest, message, data: { reason: 'message_too_large' } }))
  setTimeout(() => socket.destroy(), LEAVE_MS).unref()
}

interface ControlRequest {
  /** As JSON. */
  readonly id: string
  readonly method: unknown
  readonly params: Readonly<Record<string, unknown>>
}

async function answer(socket: Duplex, text: string, methods: ControlMethods, onTrouble: OnTrouble): Promise<void> {
  let id = 'null'
  try {
    const request = readRequest(text)
    id = request.id
    const result = await perform(socket, request, methods)
    send(socket, resultLine(id, result ?? null))
  } catch (error) {
    if (error instanceof ControlError) return send(socket, errorLine(id, refusalOf(error)))
    onTrouble(error)
    send(socket, errorLine(id, OWN_FAILURE))
  }
}

function readRequest(text: string): ControlRequest {
  const value = parse(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ControlError('a request is an object with "method"')
  const { id, method, params } = value as { id?: unknown; method?: unknown; params?: unknown }
  if (typeof id === 'object' && id !== null) throw new ControlError('"id" must be a string or a number')
  return { id: JSON.stringify(id ?? null), method, params: (params ?? {}) as Record<string, unknown> }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new ControlError('a request is one line of JSON')
  }
}

function perform(socket: Duplex, { method, params }: ControlRequest, methods: ControlMethods): unknown {
  const act = typeof method === 'string' && Object.hasOwn(methods, method) ? methods[method] : undefined
  if (act === undefined) throw new ControlError(noMethod(method), undefined, CODE.methodNotFound)
  return act({
    params,
    emit: (item) => send(socket, notificationLine('item', item)),
    onLeave: (callback) => void socket.once('close', callback),
  })
}

function noMethod(method: unknown): string {
  return typeof method === 'string' ? `no method ${JSON.stringify(method)}` : '"method" must be a string'
}

function refusalOf({ code, message, data }: ControlError): ErrorObject {
  return { code, message, ...(data === undefined ? {} : { data }) }
}

function send(socket: Duplex, line: Buffer): void {
  // A follower that does not read is let go: the bus keeps nothing for it.
  if (socket.writableLength > 4 * 1024 * 1024) socket.destroy()
  else if (!socket.writableEnded) socket.write(line)
}
