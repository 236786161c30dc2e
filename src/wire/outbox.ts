/**
 * The bounded queue towards one peer, in the bytes it really retains (contract 8.3).
 *
 * Lines that are neighbours in one chunk are one run, copied at once when the chunk is given back, into blocks of the
 * queue's own; a long line in memory that is nobody else's leaves uncopied. So the queue never reads what it was lent after
 * `settleLentRuns`, and a short line keeps nothing alive. It refuses nothing: it says `isFull`, and whoever fills it pauses
 * its sources; its bound is the limit plus one line per source and the reserved error lines.
 */
import type { Envelope } from './envelope.ts'
import { borrowLineBuffer, claimLineBuffer, LEAST_LINE_BYTES, ownLineBuffer, returnLineBuffer } from './line-buffers.ts'
import { isLent } from './scanner.ts'
import { type Edit, mostBytesOf, splice, writeEdited } from './splice.ts'

const BLOCK_BYTES = 16 * 1024
/** What is longer is not written into a block with its edits, and is not copied when its memory is its own. */
const MAX_BLOCK_LINE_BYTES = 4 * 1024
/** What is handed to the system at once when the peer is slow: small enough to see it move. */
const PORTION_BYTES = 256 * 1024
const MAX_SPARE_BLOCKS = 256
const NOTHING: Buffer[] = []

/** Blocks whose bytes have left; all queues share them, so an idle peer holds none. */
const spareBlocks: Buffer[] = []

/** Queues whose run lies in a chunk that is lent. */
const lentRuns: Outbox[] = []

/** What was lent is given back: nothing of it is read any more. */
export function settleLentRuns(): void {
  while (lentRuns.length > 0) lentRuns.pop()!.settle()
}

export class Outbox {
  readonly limitBytes: number
  #queue: Buffer[] = []
  /** Retained by `#queue`: finished blocks count whole. */
  #queuedBytes = 0
  /** Handed to the system and not gone yet. */
  #pendingBytes = 0
  #run: Buffer | undefined
  #runStart = 0
  #runEnd = 0
  #isRunLent = false
  #tail: Buffer | undefined
  #tailBytes = 0
  #handed: Buffer[] = NOTHING

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
      this.#isRunLent = isLent(bytes)
      if (this.#isRunLent) lentRuns.push(this)
      return
    }
    this.settle()
    this.#copy(bytes, start, end, isLent(bytes))
  }

  /** Queues the line at hand with edits made, its newline included. */
  appendEdited(envelope: Envelope, edits: readonly Edit[]): void {
    const mostBytes = mostBytesOf(envelope, edits)
    if (mostBytes > MAX_BLOCK_LINE_BYTES) {
      const line = splice(envelope, edits)
      return this.append(line, 0, line.length)
    }
    this.settle()
    this.#tailBytes = writeEdited(this.#tailFor(mostBytes), this.#tailBytes, envelope, edits)
  }

  /** What `take` gave, until the system has it. */
  get handed(): readonly Buffer[] {
    return this.#handed
  }

  /** What is to be handed to the system now, in order: it is pending until `wrote` says otherwise. */
  take(): readonly Buffer[] {
    if (this.#run !== undefined && 2 * (this.#runEnd - this.#runStart) >= this.#run.buffer.byteLength) {
      this.#handed = [this.#run.subarray(this.#runStart, this.#runEnd)]
      this.#pendingBytes = this.#runEnd - this.#runStart
      this.#dropRun()
      return this.#handed
    }
    this.settle()
    this.#handed = []
    let bytes = 0
    while (bytes < PORTION_BYTES && this.#queue.length > 0) {
      const block = this.#queue.shift()!
      this.#queuedBytes -= block.buffer.byteLength
      bytes += block.length
      this.#handed.push(block)
    }
    if (bytes < PORTION_BYTES && this.#tail !== undefined) {
      bytes += this.#tailBytes
      this.#handed.push(this.#releaseTail())
    }
    this.#pendingBytes = bytes
    return this.#handed
  }

  /** The system has taken what `take` gave and still holds `pendingBytes` of it. */
  wrote(pendingBytes: number): void {
    this.#pendingBytes = pendingBytes
    if (pendingBytes > 0) return
    for (const { buffer } of this.#handed) {
      const block = blocks.get(buffer)
      if (block === undefined) returnLineBuffer(buffer, this, true)
      else if (spareBlocks.length < MAX_SPARE_BLOCKS) spareBlocks.push(block)
    }
    this.#handed = NOTHING
  }

  /** Everything not yet with the system is forgotten: the peer is gone. */
  clear(): void {
    for (const { buffer } of [...this.#handed, ...this.#queue]) returnLineBuffer(buffer, this, false)
    if (this.#run !== undefined) returnLineBuffer(this.#run.buffer, this, false)
    this.#handed = NOTHING
    this.#queue = []
    this.#queuedBytes = 0
    this.#tail = undefined
    this.#tailBytes = 0
    this.#pendingBytes = 0
    this.#dropRun()
  }

  /** A run that will not leave at once, or not alone, gives its chunk back. */
  settle(): void {
    const run = this.#run
    if (run === undefined) return
    const start = this.#runStart
    const end = this.#runEnd
    this.#dropRun()
    this.#copy(run, start, end, this.#isRunLent)
  }

  #dropRun(): void {
    this.#run = undefined
    this.#runStart = 0
    this.#runEnd = 0
  }

  #copy(bytes: Buffer, start: number, end: number, isLent: boolean): void {
    const length = end - start
    // Most of its memory is this line: keeping it costs less than a copy.
    const isKept = !isLent && length > MAX_BLOCK_LINE_BYTES && 2 * length >= bytes.buffer.byteLength
    if (isKept || length >= LEAST_LINE_BYTES) {
      if (this.#tail !== undefined) this.#enqueue(this.#releaseTail())
      this.#enqueue(isKept ? bytes.subarray(start, end) : this.#copyLong(bytes, start, end))
    } else this.#spread(bytes, start, end)
    if (!isKept) returnLineBuffer(bytes.buffer, this, false)
  }

  #copyLong(bytes: Buffer, start: number, end: number): Buffer {
    const own = borrowLineBuffer(end - start, end - start)
    bytes.copy(own, 0, start, end)
    ownLineBuffer(own, this)
    return own.subarray(0, end - start)
  }

  /** Over as many blocks as it takes, so that they are filled whole. */
  #spread(bytes: Buffer, start: number, end: number): void {
    for (let at = start; at < end; ) {
      const tail = this.#tailFor(1)
      const copied = bytes.copy(tail, this.#tailBytes, at, end)
      this.#tailBytes += copied
      at += copied
    }
  }

  /** A block with room for `bytes` more. */
  #tailFor(bytes: number): Buffer {
    if (this.#tail !== undefined && this.#tailBytes + bytes > BLOCK_BYTES) this.#enqueue(this.#releaseTail())
    this.#tail ??= spareBlocks.pop() ?? makeBlock()
    return this.#tail
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

/** All blocks by their memory, to tell them from chunks of the same size. */
const blocks = new WeakMap<ArrayBufferLike, Buffer>()

function makeBlock(): Buffer {
  const block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
  blocks.set(block.buffer, block)
  return block
}
