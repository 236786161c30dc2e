/**
 * Buffers for long lines that come in several reads, used again and again.
 *
 * Allocating one per line makes the runtime collect garbage all the time. A buffer that a splitter has released belongs to
 * the one queue that took its line, and comes back when the line has left. If a second queue takes the same line, nobody
 * owns it and it is left to the garbage collector: a buffer is never filled again while anybody may still read it.
 */
const SMALLEST_BYTES = 64 * 1024
/** At least so much of a buffer is used. */
export const LEAST_LINE_BYTES = SMALLEST_BYTES / 2
const LARGEST_BYTES = 4 * 1024 * 1024
const MAX_SPARE_BYTES = 8 * 1024 * 1024

const spares = new Map<number, Buffer[]>()
let spareBytes = 0

/** Who took the line in a buffer; `null`: more than one did. */
const owners = new Map<ArrayBufferLike, object | null>()
/** The buffer whose line is being handed out now. */
let released: ArrayBufferLike | undefined

/** A buffer of at least `bytes`; `mostBytes` bounds what is added for the next read. */
export function borrowLineBuffer(bytes: number, mostBytes: number): Buffer {
  if (bytes > LARGEST_BYTES || Math.max(2 * bytes, mostBytes) < SMALLEST_BYTES) return Buffer.allocUnsafeSlow(mostBytes)
  let size = SMALLEST_BYTES
  while (size < bytes) size *= 2
  const spare = spares.get(size)?.pop()
  if (spare === undefined) return Buffer.allocUnsafeSlow(size)
  spareBytes -= size
  return spare
}

/** Hands out the line in `buffer`: whoever claims it meanwhile owns the buffer, else it is free again at once. */
export function handOut<Result>(buffer: Buffer, use: () => Result): Result {
  if (!isKept(buffer.buffer)) return use()
  const before = released
  released = buffer.buffer
  const result = use()
  // What one line sets free may hand out another in between.
  released = before
  if (!owners.has(buffer.buffer)) keep(buffer.buffer)
  return result
}

/** A queue keeps a reference to the bytes of a line. */
export function claimLineBuffer(bytes: Buffer, owner: object): void {
  if (released === undefined || bytes.buffer !== released) return
  const before = owners.get(bytes.buffer)
  owners.set(bytes.buffer, before === undefined || before === owner ? owner : null)
}

/** A queue has filled a buffer that it borrowed itself. */
export function ownLineBuffer(buffer: Buffer, owner: object): void {
  if (isKept(buffer.buffer)) owners.set(buffer.buffer, owner)
}

/** The bytes have left, or are forgotten; `isFree` when nothing of the system still reads them. */
export function returnLineBuffer(buffer: ArrayBufferLike, owner: object, isFree: boolean): void {
  if (owners.size === 0) return
  const known = owners.get(buffer)
  if (known === undefined) return
  owners.delete(buffer)
  if (known === owner && isFree) keep(buffer)
}

function isKept(buffer: ArrayBufferLike): boolean {
  const { byteLength } = buffer
  return byteLength >= SMALLEST_BYTES && byteLength <= LARGEST_BYTES && (byteLength & (byteLength - 1)) === 0
}

function keep(buffer: ArrayBufferLike): void {
  const size = buffer.byteLength
  if (spareBytes + size > MAX_SPARE_BYTES) return
  spareBytes += size
  const same = spares.get(size)
  if (same === undefined) spares.set(size, [Buffer.from(buffer as ArrayBuffer)])
  else same.push(Buffer.from(buffer as ArrayBuffer))
}
