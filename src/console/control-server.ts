/**
 * Answers questions about the bus on its control socket: one JSON-RPC request per line, one answer per line.
 *
 * It knows no method by itself; a method that follows something emits notifications until the asker leaves. The socket is
 * the user's own (mode 0600), so whoever can connect may ask. Lines are short; a long one closes the connection.
 */
import type { Duplex } from 'node:stream'
import { LineSplitter } from '../wire/frame.ts'
import { CODE, errorLine, notificationLine, resultLine } from '../wire/jsonrpc.ts'

const MAX_LINE_BYTES = 64 * 1024

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

  constructor(message: string, data?: unknown) {
    super(message)
    this.data = data
  }
}

export type ControlMethods = Readonly<Record<string, (call: ControlCall) => unknown>>

/** Serves one connection until it ends. */
export function serveControl(socket: Duplex, methods: ControlMethods): void {
  const splitter = new LineSplitter(MAX_LINE_BYTES)
  socket.on('error', () => socket.destroy())
  socket.on('end', () => socket.end())
  socket.on('data', (chunk: Buffer) => {
    splitter.push(chunk, 0, (bytes, start, end) => {
      void answer(socket, bytes.utf8Slice(start, end), methods)
      return true
    })
    if (splitter.overflowed) socket.destroy()
  })
}

async function answer(socket: Duplex, text: string, methods: ControlMethods): Promise<void> {
  let id = 'null'
  try {
    const request = JSON.parse(text) as { id?: unknown; method?: unknown; params?: Record<string, unknown> }
    id = JSON.stringify(request.id ?? null)
    const method =
      typeof request.method === 'string' && Object.hasOwn(methods, request.method) ? methods[request.method] : undefined
    if (method === undefined)
      return send(
        socket,
        errorLine(id, { code: CODE.methodNotFound, message: `no method ${JSON.stringify(request.method)}` }),
      )
    const result = await method({
      params: request.params ?? {},
      emit: (item) => send(socket, notificationLine('item', item)),
      onLeave: (callback) => void socket.once('close', callback),
    })
    send(socket, resultLine(id, result ?? null))
  } catch (error) {
    if (!(error instanceof ControlError || error instanceof SyntaxError)) throw error
    const data = error instanceof ControlError && error.data !== undefined ? { data: error.data } : {}
    send(socket, errorLine(id, { code: CODE.invalidRequest, message: error.message, ...data }))
  }
}

function send(socket: Duplex, line: Buffer): void {
  // A follower that does not read is let go: the bus keeps nothing for it.
  if (socket.writableLength > 4 * 1024 * 1024) socket.destroy()
  else if (!socket.writableEnded) socket.write(line)
}
