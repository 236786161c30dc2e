/**
 * The bounded queue towards one peer, in the bytes it really retains (contract 8.3).
 *
 * Lines that are neighbours in one chunk leave as one slice, uncopied. Everything else is copied into blocks of the
 * queue's own, so that a short line never keeps the chunk it came in alive. The queue refuses nothing: it says `isFull`,
 * and whoever fills it pauses its sources; its bound is the limit plus one line per source and the reserved error lines.
 */
import type { Envelope } from '../wire/envelope.ts'
import { claimLineBuffer, returnLineBuffer } from '../wire/line-buffers.ts'
import { type Edit, mostBytesOf, splice, writeEdited } from '../wire/splice.ts'

const BLOCK_BYTES = 16 * 1024
/** A longer line gets a buffer of its own size: blocks waste at most a quarter. */
const MAX_BLOCK_LINE_BYTES = 4 * 1024
/** What is handed to the system at once when the peer is slow: small enough to see it move. */
const PORTION_BYTES = 256 * 1024
const MAX_SPARE_BLOCKS = 64

/** Blocks whose bytes have left; all queues share them, so an idle peer holds none. */
const spareBlocks: Buffer[] = []

export class Outbox {
  readonly limitBytes: number
  /** Since when the peer's clock runs; see `flow.ts`. */
  fullSinceMs: number | undefined
  #queue: Buffer[] = []
  /** Retained by `#queue`: finished blocks count whole. */
  #queuedBytes = 0
  /** Handed to the system and not gone yet. */
  #pendingBytes = 0
  #run: Buffer | undefined
  #runStart = 0
  #runEnd = 0
  #tail: Buffer | undefined
  #tailBytes = 0
  #handed: Buffer[] = []

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  get retainedBytes(): number {
    return this.#queuedBytes + this.#tailBytes + this.#pendingBytes + this.#runEnd - this.#runStart
  }

  get isFull(): boolean {
    return this.retainedBytes > this.limitBytes
  }

  get isReleased(): boolean {
    const retainedBytes = this.retainedBytes
    return retainedBytes * 2 < this.limitBytes || retainedBytes === 0
  }

  get isEmpty(): boolean {
    return this.#run === undefined && this.#queue.length === 0 && this.#tail === undefined && this.#pendingBytes === 0
  }

  /** The system still holds what it was given: nothing more is handed over until it says so. */
  get isStalled(): boolean {
    return this.#pendingBytes > 0
  }

  /** Queues `bytes[start, end)`, its newline included. */
  append(bytes: Buffer, start: number, end: number): void {
    if (this.#run === bytes && this.#runEnd === start) {
      this.#runEnd = end
      return
    }
    claimLineBuffer(bytes, this)
    if (this.#run === undefined && this.#tail === undefined && this.#queue.length === 0 && this.#pendingBytes === 0) {
      this.#run = bytes
      this.#runStart = start
      this.#runEnd = end
      return
    }
    this.#settleRun()
    this.#copy(bytes, start, end)
  }

  /** Queues the line at hand with edits made, its newline included. */
  appendEdited(envelope: Envelope, edits: readonly Edit[]): void {
    const mostBytes = mostBytesOf(envelope, edits)
    if (mostBytes > MAX_BLOCK_LINE_BYTES) {
      const line = splice(envelope, edits)
      return this.append(line, 0, line.length)
    }
    this.#settleRun()
    this.#tailBytes = writeEdited(this.#tailFor(mostBytes), this.#tailBytes, envelope, edits)
  }

  /** What is to be handed to the system now, in order. Call `wrote` afterwards. */
  take(): readonly Buffer[] {
    if (this.#run !== undefined && 2 * (this.#runEnd - this.#runStart) >= this.#run.buffer.byteLength) {
      this.#handed = [this.#run.subarray(this.#runStart, this.#runEnd)]
      this.#dropRun()
      return this.#handed
    }
    this.#settleRun()
    this.#handed = []
    let bytes = 0
    while (bytes < PORTION_BYTES && this.#queue.length > 0) {
      const block = this.#queue.shift()!
      this.#queuedBytes -= block.buffer.byteLength
      bytes += block.length
      this.#handed.push(block)
    }
    if (bytes < PORTION_BYTES && this.#tail !== undefined) this.#handed.push(this.#releaseTail())
    return this.#handed
  }

  /** The system has taken what `take` gave and still holds `pendingBytes` of it. */
  wrote(pendingBytes: number): void {
    this.#pendingBytes = pendingBytes
    if (pendingBytes > 0) return
    for (const { buffer } of this.#handed) {
      if (blocks.has(buffer)) recycle(buffer)
      else returnLineBuffer(buffer, this, true)
    }
    this.#handed = []
  }

  /** Everything not yet with the system is forgotten: the peer is gone. */
  clear(): void {
    for (const { buffer } of [...this.#handed, ...this.#queue]) returnLineBuffer(buffer, this, false)
    if (this.#run !== undefined) returnLineBuffer(this.#run.buffer, this, false)
    this.#handed = []
    this.#queue = []
    this.#queuedBytes = 0
    this.#tail = undefined
    this.#tailBytes = 0
    this.#pendingBytes = 0
    this.#dropRun()
  }

  #dropRun(): void {
    this.#run = undefined
    this.#runStart = 0
    this.#runEnd = 0
  }

  /** A run that will not leave at once, or not alone, gives its chunk back. */
  #settleRun(): void {
    const run = this.#run
    if (run === undefined) return
    const start = this.#runStart
    const end = this.#runEnd
    this.#dropRun()
    this.#copy(run, start, end)
  }

  #copy(bytes: Buffer, start: number, end: number): void {
    const length = end - start
    if (length > MAX_BLOCK_LINE_BYTES) return this.#copyLong(bytes, start, end)
    const tail = this.#tailFor(length)
    bytes.copy(tail, this.#tailBytes, start, end)
    this.#tailBytes += length
    returnLineBuffer(bytes.buffer, this, false)
  }

  /** A block with room for `bytes` more. */
  #tailFor(bytes: number): Buffer {
    if (this.#tail !== undefined && this.#tailBytes + bytes > BLOCK_BYTES) this.#enqueue(this.#releaseTail())
    this.#tail ??= spareBlocks.pop() ?? makeBlock()
    return this.#tail
  }

  #copyLong(bytes: Buffer, start: number, end: number): void {
    if (this.#tail !== undefined) this.#enqueue(this.#releaseTail())
    // Most of its chunk is this line: keeping the chunk costs less than a copy.
    if (2 * (end - start) >= bytes.buffer.byteLength) return this.#enqueue(bytes.subarray(start, end))
    returnLineBuffer(bytes.buffer, this, false)
    const own = Buffer.allocUnsafeSlow(end - start)
    bytes.copy(own, 0, start, end)
    this.#enqueue(own)
  }

  #enqueue(block: Buffer): void {
    this.#queue.push(block)
    this.#queuedBytes += block.buffer.byteLength
  }

  #releaseTail(): Buffer {
    const block = this.#tail!.subarray(0, this.#tailBytes)
    this.#tail = undefined
    this.#tailBytes = 0
    return block
  }
}

/** The memory of all blocks, to tell them from chunks of the same size. */
const blocks = new WeakSet<ArrayBufferLike>()

function makeBlock(): Buffer {
  const block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
  blocks.add(block.buffer)
  return block
}

function recycle(memory: ArrayBufferLike): void {
  if (spareBlocks.length < MAX_SPARE_BLOCKS) spareBlocks.push(Buffer.from(memory as ArrayBuffer))
}
