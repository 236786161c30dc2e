/** Messages as the text frames of a server, one behind the other in one piece (RFC 6455, 5.2): whole, unmasked, uncompressed. */
const TEXT = 0x81
const SHORT = 126
const LONG = 65_536

export function textFrames(lines: readonly Buffer[]): Buffer {
  let bytes = 0
  for (const { length } of lines) bytes += headBytes(length) + length
  const frames = Buffer.allocUnsafe(bytes)
  let at = 0
  for (const line of lines) {
    at = writeHead(frames, at, line.length)
    at += line.copy(frames, at)
  }
  return frames
}

function headBytes(length: number): number {
  return length < SHORT ? 2 : length < LONG ? 4 : 10
}

/** Gives the offset behind it. */
function writeHead(frames: Buffer, at: number, length: number): number {
  frames[at] = TEXT
  if (length < SHORT) {
    frames[at + 1] = length
    return at + 2
  }
  frames[at + 1] = length < LONG ? SHORT : SHORT + 1
  return length < LONG ? frames.writeUInt16BE(length, at + 2) : frames.writeBigUInt64BE(BigInt(length), at + 2)
}
