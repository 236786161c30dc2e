/**
 * Below the stream layer, and nothing else is: a socket is read into memory that all sockets share, and written without
 * the queue of a stream in between.
 *
 * It leans on the handle that the runtime's own sockets have. A stream that has none, or one of another shape, is used as
 * any stream is: `readLent` and `writerOf` then do the same by events and callbacks. What is read is lent: it is
 * overwritten by the next read of anybody.
 */
import { Socket } from 'node:net'
import type { Duplex, Readable, Writable } from 'node:stream'
import { getSystemErrorName } from 'node:util'
import { makeReadMemory } from '../../wire/scanner.ts'

const memory = makeReadMemory()

/** So much is read at once at the most; a chunk of this size says that more is waiting. */
export const READ_BYTES = memory.length

interface Handle {
  readonly writeQueueSize: number
  useUserBuffer(buffer: Uint8Array): void
  writeBuffer(request: WriteRequest, buffer: Uint8Array): number
  writev(request: WriteRequest, buffers: readonly Uint8Array[], areBuffers: true): number
}

/** The runtime's own; it lives until the system has taken everything. */
interface WriteRequest {
  handle: Handle
  oncomplete: (status: number) => void
  /** Kept from the collector while the system reads them. */
  buffers?: readonly Buffer[]
}

/** What the runtime's types do not tell of its sockets. */
type Inner = Socket & { _handle: Handle | null; server?: unknown; _server?: unknown; readonly allowHalfOpen: boolean }

/** The same of its TLS sockets: whether the handshake is done, and the handle below, which holds what was encrypted. */
interface InnerTls {
  readonly _secureEstablished?: boolean
  readonly _handle?: { readonly _parent?: { readonly writeQueueSize?: number } | null } | null
}

/**
 * From `resume` on `take` is given what comes, until `pause`. The stream that is returned takes the place of the given one,
 * which is of no use any more if they differ.
 */
export function readLent(stream: Duplex | Socket, take: (chunk: Buffer) => void): Duplex {
  const socket = handleOf(stream) === undefined || isInUse(stream) ? undefined : (stream as Inner)
  return socket === undefined ? readByEvents(stream, take) : adopt(socket, take)
}

export function readByEvents<Stream extends Readable>(stream: Stream, take: (chunk: Buffer) => void): Stream {
  return stream.on('data', take).pause()
}

/** Hands buffers to the system and returns how many bytes of them it has not taken yet; then `onTaken` tells of the rest. */
export type Writer = (buffers: readonly Buffer[]) => number

export function writerOf(stream: Writable, onTaken: () => void): Writer {
  const handle = handleOf(stream)
  return handle === undefined || Request === undefined
    ? writeByStream(stream, onTaken, () => hasSystemAll(stream))
    : writeByHandle(stream as Inner, handle, onTaken)
}

/** `hasAll`: a write that nobody was waiting before has reached the system, though the stream says so only later. */
export function writeByStream(stream: Writable, onTaken: () => void, hasAll = (): boolean => false): Writer {
  let isBehind = false
  // One function for all writes: the runtime then batches its calls.
  const written = (): void => {
    if (!isBehind || stream.writableLength > 0) return
    isBehind = false
    onTaken()
  }
  return (buffers) => {
    if (stream.destroyed || stream.writableEnded) return 0
    const isFirst = stream.writableLength === 0
    if (buffers.length === 1) stream.write(buffers[0], written)
    else {
      stream.cork()
      for (const buffer of buffers) stream.write(buffer, written)
      stream.uncork()
    }
    if (isFirst && hasAll()) return 0
    isBehind = stream.writableLength > 0
    return stream.writableLength
  }
}

/** A TLS stream tells of every write a turn later; what it has given on without a rest is known at once. */
function hasSystemAll(stream: Writable): boolean {
  const { _secureEstablished: isSecured, _handle: handle } = stream as unknown as InnerTls
  return isSecured === true && handle?._parent?.writeQueueSize === 0
}

/** The stream decrypts another one: what that has read at once comes in records, each by itself. */
export function isSecured(stream: Duplex): boolean {
  return (stream as { readonly encrypted?: boolean }).encrypted === true
}

function handleOf(stream: Duplex | Writable): Handle | undefined {
  // Not one that is derived from a socket: it may change the bytes on their way.
  if (!(stream instanceof Socket) || stream.constructor !== Socket) return undefined
  const handle = (stream as Inner)._handle
  if (typeof handle?.useUserBuffer !== 'function' || typeof handle.writeBuffer !== 'function') return undefined
  return typeof handle.writev === 'function' && typeof handle.writeQueueSize === 'number' ? handle : undefined
}

/** Something has been read already, or somebody reads. */
function isInUse(stream: Readable): boolean {
  return stream.readableLength > 0 || stream.readableEnded || stream.readableFlowing !== null
}

/** A handle is told at the birth of its socket where reads go, so it gets a new one. */
function adopt(socket: Inner, take: (chunk: Buffer) => void): Socket {
  const { allowHalfOpen, readable, writable, _handle: handle, _server: server } = socket
  const callback = (count: number): boolean => {
    take(memory.subarray(0, count))
    return true
  }
  const options = { handle, allowHalfOpen, readable, writable, manualStart: true, onread: { buffer: memory, callback } }
  const heir = new Socket(options as object) as Inner
  // The door goes on counting its connections.
  heir.server = heir._server = server
  socket._server = null
  socket._handle = null
  socket.destroy()
  return heir.pause()
}

function writeByHandle(socket: Inner, handle: Handle, onTaken: () => void): Writer {
  const written = (status: number): void => {
    if (status < 0) return fail(socket, status)
    if (!isBehind || handle.writeQueueSize > 0) return
    isBehind = false
    onTaken()
  }
  let isBehind = false
  return (buffers) => {
    if (socket.destroyed || socket.writableEnded || socket._handle !== handle) return 0
    const request = new Request!()
    request.handle = handle
    request.oncomplete = written
    const status =
      buffers.length === 1 ? handle.writeBuffer(request, buffers[0]!) : handle.writev(request, buffers, true)
    if (status < 0) {
      fail(socket, status)
      return 0
    }
    const pendingBytes = handle.writeQueueSize
    if (pendingBytes === 0) return 0
    isBehind = true
    request.buffers = buffers
    return pendingBytes
  }
}

function fail(socket: Socket, status: number): void {
  const code = getSystemErrorName(status)
  socket.destroy(Object.assign(new Error(`write ${code}`), { code, errno: status, syscall: 'write' }))
}

const Request = learnRequest()

/** The class of write requests is not to be had by name: a socket is watched as it uses one. */
function learnRequest(): (new () => WriteRequest) | undefined {
  let seen: WriteRequest | undefined
  const handle = {
    readStart: () => 0,
    readStop: () => 0,
    writeBuffer(request: WriteRequest): number {
      seen = request
      return 0
    },
    close: (then?: () => void) => then?.(),
  }
  try {
    const socket = new Socket({ handle, manualStart: true } as object)
    socket.on('error', () => {})
    socket.write(Buffer.from('x'))
    socket.destroy()
  } catch {
    return undefined
  }
  return seen?.constructor as (new () => WriteRequest) | undefined
}
