/**
 * How frames travel between two nodes: several in one message, which says whose it is and in which epoch it was sent.
 *
 * It packs and unpacks and knows no stream. A message that is not exactly one of ours is undefined, whoever has sent it: no
 * length in it is believed before it is seen to fit (contract 14.5, 14.9).
 */

/** The versions of the protocol that this release speaks: its own, and the one before (contract 14.11). */
export const PROTOCOL = { lowest: 1, highest: 1 } as const

export const FRAME = {
  /** A stream begins; the bytes say for whom (`opening.ts`). */
  open: 1,
  data: 2,
  /** The sender has no more, from this offset on; the bytes say why. */
  end: 3,
  /** Up to this offset it has come, and up to the limit in the bytes more may be sent. */
  ack: 4,
  /** The same, and what follows it is missing. */
  again: 5,
  ping: 6,
  pong: 7,
  /** No such stream is open any more. */
  gone: 8,
} as const

export type FrameType = (typeof FRAME)[keyof typeof FRAME]

export interface Frame {
  readonly type: FrameType
  /** The receiver of the frame has opened the stream; else its sender. */
  readonly isReceivers: boolean
  readonly stream: number
  readonly offset: number
  readonly bytes: Buffer
}

/** What stands before the frames of a message. */
export interface Head {
  readonly version: number
  /** Of the run that sends it, and of the one that it is meant for. */
  readonly fromRun: number
  readonly toRun: number
  readonly epoch: number
  /** How many bytes the sender had sent to this node before, and how many it has read from it. */
  readonly position: number
  readonly read: number
  /** So many bytes may be under way to the sender. */
  readonly share: number
}

export const HEAD_BYTES = 33
export const FRAME_HEAD_BYTES = 15
/** Runs and epochs go to here. */
export const MAX_EPOCH = 2 ** 32 - 1
const RECEIVERS = 0x80
const MOST_TYPE = FRAME.gone
/** Offsets within a stream count to here; no stream lasts so long. What two nodes have sent each other goes further. */
const OFFSET_BYTES = 6

export function writeHead(head: Head): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD_BYTES)
  bytes.writeUInt8(head.version, 0)
  bytes.writeUInt32BE(head.fromRun, 1)
  bytes.writeUInt32BE(head.toRun, 5)
  bytes.writeUInt32BE(head.epoch, 9)
  bytes.writeDoubleBE(head.position, 13)
  bytes.writeDoubleBE(head.read, 21)
  bytes.writeUInt32BE(head.share, 29)
  return bytes
}

export function writeFrameHead({ type, isReceivers, stream, offset, bytes }: Frame): Buffer {
  const head = Buffer.allocUnsafe(FRAME_HEAD_BYTES)
  head.writeUInt8(isReceivers ? type | RECEIVERS : type, 0)
  head.writeUInt32BE(stream, 1)
  head.writeUIntBE(offset, 5, OFFSET_BYTES)
  head.writeUInt32BE(bytes.length, 11)
  return head
}

/** The limit that an acknowledgement carries. */
export function writeLimit(limit: number): Buffer {
  const bytes = Buffer.allocUnsafe(OFFSET_BYTES)
  bytes.writeUIntBE(limit, 0, OFFSET_BYTES)
  return bytes
}

export function readLimit(bytes: Buffer): number | undefined {
  return bytes.length === OFFSET_BYTES ? bytes.readUIntBE(0, OFFSET_BYTES) : undefined
}

/** Undefined: it is no message of ours. The bytes of the frames are those of the message. */
export function readMessage(message: Buffer): { readonly head: Head; readonly frames: readonly Frame[] } | undefined {
  if (message.length < HEAD_BYTES) return undefined
  const head = readHead(message)
  if (![head.position, head.position + message.length, head.read].every(isCount)) return undefined
  const frames: Frame[] = []
  for (let at = HEAD_BYTES; at < message.length; ) {
    const frame = readFrame(message, at)
    if (frame === undefined) return undefined
    frames.push(frame)
    at += FRAME_HEAD_BYTES + frame.bytes.length
  }
  return { head, frames }
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

/** Of a message that is at least as long; what it counts may be no numbers. */
export function readHead(message: Buffer): Head {
  return {
    version: message.readUInt8(0),
    fromRun: message.readUInt32BE(1),
    toRun: message.readUInt32BE(5),
    epoch: message.readUInt32BE(9),
    position: message.readDoubleBE(13),
    read: message.readDoubleBE(21),
    share: message.readUInt32BE(29),
  }
}

function readFrame(message: Buffer, at: number): Frame | undefined {
  const start = at + FRAME_HEAD_BYTES
  if (start > message.length) return undefined
  const type = message.readUInt8(at)
  const length = message.readUInt32BE(at + 11)
  const kind = type & ~RECEIVERS
  if (kind === 0 || kind > MOST_TYPE || start + length > message.length) return undefined
  return {
    type: kind as FrameType,
    isReceivers: (type & RECEIVERS) !== 0,
    stream: message.readUInt32BE(at + 1),
    offset: message.readUIntBE(at + 5, OFFSET_BYTES),
    bytes: message.subarray(start, start + length),
  }
}
