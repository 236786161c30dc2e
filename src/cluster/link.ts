/**
 * What passes between this node and one other: streams, with credit, receipts, resending and epochs (contract 14.5).
 *
 * A pure state machine: it is told what has come and what time it is, and says what is to be sent. Invariants: a byte of a
 * stream is handed on once and in order, or the stream has ended; no more is kept of a stream than its window, no more is
 * under way to the other node than it allows; nothing of an older epoch, or of another run, is believed.
 */
import { LOST, writeEnding } from './ending.ts'
import { Gaps } from './gaps.ts'
import { CLUSTER } from './limits.ts'
import {
  FRAME,
  FRAME_HEAD_BYTES,
  type Frame,
  type FrameType,
  HEAD_BYTES,
  MAX_EPOCH,
  PROTOCOL,
  readHead,
  readLimit,
  readMessage,
  writeFrameHead,
  writeHead,
  writeLimit,
} from './message.ts'
import { Stream } from './stream.ts'

export interface LinkPort {
  /** Hands a message to the broker; false: it cannot now, and will be told again. */
  send(message: Buffer): boolean
  /** Something waits to be sent with the rest of this turn. */
  flushSoon(): void
  /** One more stream of another node can be kept, if only to be refused. */
  hasRoom(): boolean
  /** The other node has begun a stream; whoever takes it sets its owner. */
  opened(stream: Stream, opening: Buffer): void
}

export interface LinkCounts {
  bytesSent: number
  bytesReceived: number
  framesSent: number
  framesReceived: number
  resent: number
  stalled: number
  junk: number
}

const NOTHING = Buffer.alloc(0)
const LIMIT_BYTES = 6
const MAX_MET = 8

export class Link {
  readonly node: string
  /** Of this node, and of the other as far as it is known. */
  readonly #ownRun: number
  run = 0
  epoch = 0
  /** Runs of the other before this one, and how far their epochs went. */
  readonly #met = new Map<number, number>()
  /** The version that both speak. */
  version: number = PROTOCOL.highest
  rttMs: number | undefined
  maxMessageBytes: number = CLUSTER.maxMessageBytes
  /** What the other may have under way to us. */
  share: number = CLUSTER.leastShareBytes
  readonly counts: LinkCounts
  readonly #port: LinkPort
  #nowMs = 0
  #nextStream = 1
  readonly #ours = new Map<number, Stream>()
  readonly #theirs = new Map<number, Stream>()
  #highestOfTheirs = 0
  /** Streams of the other that were begun before others that have come. */
  readonly #missing = new Gaps(CLUSTER.maxGaps)
  /** Streams that were given up, until the other side knows it. */
  readonly #tombs = new Map<string, { readonly frame: Frame; sentMs: number }>()
  /** Streams that have something to send and had no credit. */
  readonly #blocked = new Set<Stream>()
  /** Streams that owe a receipt, and those that wait for one. */
  readonly #owing = new Set<Stream>()
  readonly #unquiet = new Set<Stream>()
  #parts: Buffer[] = []
  #partBytes = 0
  /** How much was sent, how much of it was read, how far it may go. */
  #sent = 0
  #readByOther = 0
  #credit: number = CLUSTER.leastShareBytes
  #read = 0
  #readTold = 0
  #pingedMs = Number.NEGATIVE_INFINITY
  #askedMs = Number.NEGATIVE_INFINITY
  isConnected = false

  constructor(node: string, ownRun: number, counts: LinkCounts, port: LinkPort) {
    this.node = node
    this.#ownRun = ownRun
    this.counts = counts
    this.#port = port
  }

  get streams(): number {
    return this.#ours.size + this.#theirs.size
  }

  /** Of the other node's, those that are open here. */
  get guests(): number {
    return this.#theirs.size
  }

  /** Whether anything is owed that its receiver does not have. */
  get isQuiet(): boolean {
    return this.#unquiet.size === 0 && this.#blocked.size === 0
  }

  // ---- streams of this side ----

  open(opening: Buffer, nowMs: number): Stream {
    this.#nowMs = nowMs
    const stream = new Stream(this.#nextStream++, true, this)
    stream.opening = opening
    this.#ours.set(stream.number, stream)
    return stream
  }

  /** For streams. */
  wants(stream: Stream): void {
    if (stream.in.received !== stream.in.ackedAt || stream.in.limit !== stream.in.limitTold) this.#owe(stream)
    this.#settle(stream)
    this.#port.flushSoon()
  }

  fill(stream: Stream): void {
    if (!this.isConnected) {
      if (stream.out.isWilling) this.#blocked.add(stream)
      return
    }
    while (stream.out.isWilling) {
      if (!this.#mayLeave(stream)) break
      const isFirst = stream.opening !== undefined && stream.out.isAtStart
      const room = this.#room(isFirst ? stream.opening!.length : 0)
      if (room <= 0) {
        if (this.#partBytes === 0) break
        this.#send()
        continue
      }
      const piece = stream.out.next(room, this.#nowMs)
      if (piece === undefined) break
      if (isFirst) this.#add({ ...frameOf(stream, FRAME.open), bytes: stream.opening! })
      this.#add({ ...frameOf(stream, piece.isEnd ? FRAME.end : FRAME.data), offset: piece.offset, bytes: piece.bytes })
      this.#unquiet.add(stream)
    }
    if (stream.out.isWilling) this.#block(stream)
    else this.#blocked.delete(stream)
    this.#port.flushSoon()
  }

  #block(stream: Stream): void {
    if (!this.#blocked.has(stream)) this.counts.stalled++
    this.#blocked.add(stream)
  }

  #mayLeave({ out }: Stream): boolean {
    return this.#sent + this.#partBytes - this.#readByOther < this.#credit || out.isNextEnd
  }

  // ---- what leaves ----

  /** Everything of this turn leaves. */
  flush(nowMs: number): void {
    this.#nowMs = nowMs
    if (!this.isConnected) return
    const isGoing = this.#partBytes > 0
    for (const stream of this.#owing) {
      if (isGoing || stream.in.isAckUrgent || nowMs - stream.owesAckSinceMs! >= CLUSTER.ackDelayMs)
        this.#acknowledge(stream)
    }
    // What was read is given back in time.
    if (this.#partBytes > 0 || (this.#read - this.#readTold) * 4 >= this.share) this.#send()
  }

  #acknowledge(stream: Stream): void {
    if (this.#room(0) < LIMIT_BYTES) this.#send()
    stream.in.ackedAt = stream.in.received
    stream.in.limitTold = stream.in.limit
    stream.owesAckSinceMs = undefined
    this.#owing.delete(stream)
    this.#add({ ...frameOf(stream, FRAME.ack), offset: stream.in.received, bytes: writeLimit(stream.in.limit) })
  }

  #room(besides: number): number {
    const used = this.#partBytes + (besides === 0 ? 0 : besides + FRAME_HEAD_BYTES)
    return this.maxMessageBytes - HEAD_BYTES - used - FRAME_HEAD_BYTES
  }

  #add(frame: Frame): void {
    if (this.#partBytes + FRAME_HEAD_BYTES + frame.bytes.length > this.maxMessageBytes - HEAD_BYTES) this.#send()
    this.#parts.push(writeFrameHead(frame))
    if (frame.bytes.length > 0) this.#parts.push(frame.bytes)
    this.#partBytes += FRAME_HEAD_BYTES + frame.bytes.length
    this.counts.framesSent++
  }

  #send(): void {
    const head = writeHead({
      version: this.version,
      fromRun: this.#ownRun,
      toRun: this.run,
      epoch: this.epoch,
      position: this.#sent,
      read: this.#read,
      share: this.share,
    })
    const message = Buffer.concat([head, ...this.#parts], HEAD_BYTES + this.#partBytes)
    this.#parts = []
    this.#partBytes = 0
    // What cannot leave is sent again when it can.
    if (!this.#port.send(message)) return
    this.#readTold = this.#read
    this.#sent += message.length
    this.counts.bytesSent += message.length
  }

  // ---- the clock ----

  tick(nowMs: number, lostAfterMs: number): void {
    this.#nowMs = nowMs
    if (!this.isConnected) return
    for (const stream of this.#unquiet) this.#watch(stream, lostAfterMs)
    for (const tomb of this.#tombs.values()) {
      if (nowMs - tomb.sentMs < CLUSTER.resendAfterMs) continue
      tomb.sentMs = nowMs
      this.#add(tomb.frame)
    }
    const isBusy = this.#unquiet.size > 0 || this.#blocked.size > 0
    if (nowMs - this.#pingedMs >= (isBusy ? CLUSTER.pingEveryMs : CLUSTER.pingIdleEveryMs)) this.ping()
    this.flush(nowMs)
  }

  ping(): void {
    if (!this.isConnected) return
    this.#pingedMs = this.#nowMs
    this.#add({
      type: FRAME.ping,
      isReceivers: false,
      stream: 0,
      offset: Math.floor(this.#nowMs * 1_000),
      bytes: NOTHING,
    })
    this.#send()
  }

  #watch(stream: Stream, lostAfterMs: number): void {
    const { out } = stream
    if (out.isQuiet) return void this.#unquiet.delete(stream)
    const waitedMs = this.#nowMs - out.sinceMs
    if (waitedMs >= Math.max(lostAfterMs, 2 * CLUSTER.resendAfterMs)) return this.#giveUpStream(stream)
    if (this.#nowMs - out.resentMs < CLUSTER.resendAfterMs || waitedMs < CLUSTER.resendAfterMs) return
    this.#resend(stream)
  }

  #resend(stream: Stream): void {
    stream.out.resentMs = this.#nowMs
    this.counts.resent += stream.out.resend()
    this.#goOn(stream)
  }

  /** Nothing is heard of it although the node lives; of so many: the node is given up. */
  #giveUpStream(stream: Stream): void {
    if (this.#tombs.size >= CLUSTER.maxTombs) return this.giveUp()
    const frame = frameOf(stream, FRAME.gone)
    this.#tombs.set(keyOf(frame.isReceivers, stream.number), { frame, sentMs: Number.NEGATIVE_INFINITY })
    this.#drop(stream)
  }

  // ---- connection, epochs and runs ----

  connected(nowMs: number): void {
    this.#nowMs = nowMs
    this.isConnected = true
    for (const stream of this.#streams()) {
      if (stream.out.isQuiet) continue
      // Time in which nothing could be sent counts against nobody.
      stream.out.sinceMs = nowMs
      this.#resend(stream)
    }
    for (const stream of [...this.#blocked]) this.#goOn(stream)
    this.ping()
  }

  disconnected(): void {
    this.isConnected = false
    this.#parts = []
    this.#partBytes = 0
  }

  /** The other node is given up: all streams end, and nothing that it sent before is believed any more. */
  giveUp(): void {
    this.#begin(this.epoch + 1)
  }

  /** The other has begun anew: another run, or a newer epoch. */
  #begin(epoch: number): void {
    const streams = [...this.#streams()]
    this.epoch = Math.min(epoch, MAX_EPOCH)
    this.#nextStream = 1
    this.#highestOfTheirs = 0
    for (const table of [this.#ours, this.#theirs, this.#tombs]) table.clear()
    for (const set of [this.#missing, this.#blocked, this.#owing, this.#unquiet]) set.clear()
    this.#parts = []
    this.#partBytes = 0
    this.#sent = this.#readByOther = this.#read = this.#readTold = 0
    this.#credit = CLUSTER.leastShareBytes
    for (const stream of streams) {
      stream.out.forget()
      stream.tellEnd(LOST)
    }
  }

  /**
   * The run of the other node is this from now on; what was begun with another is over. Who was taken for another in between
   * does not know that it was given up: it finds a new epoch.
   */
  meet(run: number): void {
    if (this.run === run) return
    const before = this.#met.get(run)
    this.#met.set(this.run, this.epoch)
    if (this.#met.size > MAX_MET) this.#met.delete(this.#met.keys().next().value!)
    this.run = run
    this.#begin(before === undefined ? 0 : before + 1)
  }

  *#streams(): Generator<Stream> {
    yield* this.#ours.values()
    yield* this.#theirs.values()
  }

  // ---- what comes ----

  /** It was read before: each message of an epoch is further on than the one before it. */
  isCopy(message: Buffer): boolean {
    const { fromRun, toRun, epoch, position } = readHead(message)
    return fromRun === this.run && toRun === this.#ownRun && epoch === this.epoch && position < this.#read
  }

  /** False: it was no message of ours, or not for us. */
  receive(message: Buffer, nowMs: number): boolean {
    this.#nowMs = nowMs
    const read = readMessage(message)
    if (read === undefined || read.head.version < PROTOCOL.lowest || read.head.version > PROTOCOL.highest) return false
    const { head, frames } = read
    // It has not heard of this run, or of this epoch: it is told, and what it says is not believed.
    if (head.toRun !== this.#ownRun || head.fromRun !== this.run || head.epoch < this.epoch) {
      if (head.toRun === 0 || head.fromRun === this.run) this.#tellEpoch()
      return true
    }
    if (head.epoch > this.epoch) this.#begin(head.epoch)
    this.counts.bytesReceived += message.length
    this.#read = Math.max(this.#read, head.position + message.length)
    this.#credit = head.share
    if (head.read <= this.#sent) this.#readByOther = Math.max(this.#readByOther, head.read)
    for (const frame of frames) {
      this.counts.framesReceived++
      this.#take(frame)
      // What one of them brought may have ended it all.
      if (head.epoch !== this.epoch) return true
    }
    if (this.#blocked.size > 0) for (const stream of [...this.#blocked]) this.#goOn(stream)
    this.#port.flushSoon()
    return true
  }

  #tellEpoch(): void {
    if (this.#nowMs - this.#pingedMs >= CLUSTER.askAgainMs) this.ping()
  }

  #goOn(stream: Stream): void {
    if (!this.isConnected) return
    this.fill(stream)
    stream.moved()
  }

  #take(frame: Frame): void {
    if (frame.type === FRAME.ping) return this.#pong(frame)
    if (frame.type === FRAME.pong) return this.#measure(frame)
    if (frame.type === FRAME.gone) return this.#gone(frame)
    if (frame.type === FRAME.open) return this.#takeOpening(frame)
    const stream = (frame.isReceivers ? this.#ours : this.#theirs).get(frame.stream)
    if (stream === undefined) return this.#takeStray(frame)
    if (frame.type === FRAME.data) this.#takeData(stream, frame)
    else if (frame.type === FRAME.end) this.#takeEnd(stream, frame)
    else this.#takeReceipt(stream, frame)
    this.#settle(stream)
  }

  #pong({ offset }: Frame): void {
    this.#add({ type: FRAME.pong, isReceivers: false, stream: 0, offset, bytes: NOTHING })
  }

  #measure({ offset }: Frame): void {
    const rttMs = this.#nowMs - offset / 1_000
    if (rttMs >= 0 && rttMs < CLUSTER.rememberLostMs) this.rttMs = Math.round(rttMs * 1_000) / 1_000
  }

  #takeOpening({ isReceivers, stream: number, bytes }: Frame): void {
    if (isReceivers || number === 0 || bytes.length > CLUSTER.maxOpeningBytes) return void this.counts.junk++
    if (this.#theirs.has(number)) return
    if (!this.#isNext(number)) return
    if (!this.#port.hasRoom()) return this.#sayGone({ isReceivers, stream: number })
    const stream = new Stream(number, false, this)
    this.#theirs.set(number, stream)
    this.#port.opened(stream, Buffer.from(bytes))
  }

  /** A number that was not there before; those that it passes over may still come. */
  #isNext(number: number): boolean {
    const missing = this.#missing
    if (number <= this.#highestOfTheirs) return missing.take(number)
    if (missing.isFull || number - this.#highestOfTheirs + missing.count > CLUSTER.maxMissingStreams) {
      this.counts.junk++
      return false
    }
    missing.add(this.#highestOfTheirs + 1, number - 1)
    this.#highestOfTheirs = number
    return true
  }

  /** There is no such stream here: so its other end goes too. */
  #sayGone({ isReceivers, stream }: Pick<Frame, 'isReceivers' | 'stream'>): void {
    this.#add({ type: FRAME.gone, isReceivers: !isReceivers, stream, offset: 0, bytes: NOTHING })
  }

  /** Of a stream that is not open: it is over, or its beginning was lost. */
  #takeStray(frame: Frame): void {
    const { isReceivers, stream: number, type } = frame
    const isOver = isReceivers
      ? number < this.#nextStream
      : number <= this.#highestOfTheirs && !this.#missing.has(number)
    if (type !== FRAME.data && type !== FRAME.end) return
    if (isOver) return this.#sayGone(frame)
    if (isReceivers || this.#nowMs - this.#askedMs < CLUSTER.askAgainMs) return
    this.#askedMs = this.#nowMs
    this.#add({
      type: FRAME.again,
      isReceivers: true,
      stream: number,
      offset: 0,
      bytes: writeLimit(CLUSTER.windowBytes),
    })
  }

  #takeData(stream: Stream, { offset, bytes }: Frame): void {
    const arrival = stream.in.take(offset, bytes, (fresh) => stream.owner?.received(fresh))
    if (arrival === 'beyond') this.counts.junk++
    else if (arrival === 'early') this.#askAgain(stream)
    else this.#owe(stream)
  }

  #takeEnd(stream: Stream, { offset, bytes }: Frame): void {
    if (bytes.length > CLUSTER.maxReasonBytes) return void this.counts.junk++
    const arrival = stream.in.end(offset, bytes)
    if (arrival === 'early') return this.#askAgain(stream)
    this.#owe(stream)
    if (arrival === 'new') stream.tellEnd()
  }

  #takeReceipt(stream: Stream, { type, offset, bytes }: Frame): void {
    const limit = readLimit(bytes)
    if (limit === undefined || !stream.out.acknowledge(offset, limit, this.#nowMs)) return void this.counts.junk++
    if (type === FRAME.ack) stream.opening = undefined
    else if (this.#nowMs - stream.out.resentMs >= CLUSTER.askAgainMs) this.#resend(stream)
    if (stream.out.isQuiet) this.#unquiet.delete(stream)
    if (stream.out.waitingBytes > 0) this.#goOn(stream)
  }

  #gone({ isReceivers, stream: number, offset }: Frame): void {
    if (offset === 1) return void this.#tombs.delete(keyOf(!isReceivers, number))
    const stream = (isReceivers ? this.#ours : this.#theirs).get(number)
    if (stream !== undefined) this.#drop(stream)
    this.#add({ type: FRAME.gone, isReceivers: !isReceivers, stream: number, offset: 1, bytes: NOTHING })
  }

  #askAgain(stream: Stream): void {
    if (this.#nowMs - stream.in.askedAgainMs < CLUSTER.askAgainMs) return
    stream.in.askedAgainMs = this.#nowMs
    this.#add({ ...frameOf(stream, FRAME.again), offset: stream.in.received, bytes: writeLimit(stream.in.limit) })
  }

  #owe(stream: Stream): void {
    if (stream.owesAckSinceMs !== undefined) return
    stream.owesAckSinceMs = this.#nowMs
    this.#owing.add(stream)
  }

  /** When a receipt is due that nothing else has taken along; undefined: none is. */
  get receiptDueMs(): number | undefined {
    for (const { owesAckSinceMs } of this.#owing) return owesAckSinceMs! + CLUSTER.ackDelayMs
    return undefined
  }

  /** Both directions have ended: its last receipt leaves, and it is forgotten. */
  #settle(stream: Stream): void {
    if (!stream.isOver) return
    if (this.isConnected && this.#owing.has(stream)) this.#acknowledge(stream)
    this.#forget(stream)
  }

  #drop(stream: Stream): void {
    this.#forget(stream)
    stream.out.forget()
    stream.tellEnd(LOST)
  }

  #forget(stream: Stream): void {
    ;(stream.isOurs ? this.#ours : this.#theirs).delete(stream.number)
    for (const set of [this.#blocked, this.#owing, this.#unquiet]) set.delete(stream)
  }
}

function frameOf({ number, isOurs }: Stream, type: FrameType): Frame {
  return { type, isReceivers: !isOurs, stream: number, offset: 0, bytes: NOTHING }
}

function keyOf(isReceivers: boolean, stream: number): string {
  return `${isReceivers ? 'theirs' : 'ours'} ${stream}`
}

export function newCounts(): LinkCounts {
  return { bytesSent: 0, bytesReceived: 0, framesSent: 0, framesReceived: 0, resent: 0, stalled: 0, junk: 0 }
}

/** What a stream is refused with by whoever cannot take it. */
export function refuse(stream: Stream, why: string): void {
  stream.out.end(writeEnding({ reason: 'refused', why }), true)
}
