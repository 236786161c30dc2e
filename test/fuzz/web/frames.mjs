/** Frames of WebSocket: those of a client, sound and unsound, and a strict reader of those of a server (RFC 6455). */
export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 }
const KNOWN = new Set(Object.values(OPCODE))
const KEY = Buffer.from([0x5a, 0x00, 0xff, 0x13])

/** One frame of a client; `length` is what it says of itself. */
export function frame(opcode, payload, { isFinal = true, isMasked = true, reserved = 0, length } = {}) {
  const bytes = Buffer.from(payload)
  const size = length ?? bytes.length
  const head = [(isFinal ? 0x80 : 0) | (reserved << 4) | opcode]
  const mask = isMasked ? 0x80 : 0
  if (size < 126) head.push(mask | size)
  else if (size < 65_536) head.push(mask | 126, size >> 8, size & 255)
  else head.push(mask | 127, 0, 0, 0, 0, (size >>> 24) & 255, (size >> 16) & 255, (size >> 8) & 255, size & 255)
  if (isMasked) for (let i = 0; i < bytes.length; i++) bytes[i] ^= KEY[i & 3]
  return Buffer.concat([Buffer.from(head), isMasked ? KEY : Buffer.alloc(0), bytes])
}

export function closeFrame(code, text = '') {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(code)
  return frame(OPCODE.close, Buffer.concat([bytes, Buffer.from(text)]))
}

/** What a server has said: texts, pongs, and how it has closed. */
export class FrameReader {
  texts = []
  pongs = 0
  closed
  garbage
  #held = Buffer.alloc(0)

  take(chunk) {
    this.#held = Buffer.concat([this.#held, chunk])
    while (this.garbage === undefined && this.#readOne()) {}
  }

  #readOne() {
    const held = this.#held
    if (held.length < 2) return false
    const short = held[1] & 0x7f
    const start = short === 126 ? 4 : short === 127 ? 10 : 2
    if (held.length < start) return false
    const size = short === 126 ? held.readUInt16BE(2) : short === 127 ? Number(held.readBigUInt64BE(2)) : short
    if (held.length < start + size) return false
    this.#held = held.subarray(start + size)
    return this.#read(held[0], held[1], held.subarray(start, start + size))
  }

  #read(first, second, payload) {
    const opcode = first & 15
    if (this.closed !== undefined) this.garbage = 'a frame behind the close'
    else if (second & 0x80 || first & 0x70 || !(first & 0x80) || !KNOWN.has(opcode))
      this.garbage = `a frame ${first} ${second}`
    else if (opcode === OPCODE.text) this.texts.push(payload.toString())
    else if (opcode === OPCODE.pong) this.pongs++
    else if (opcode === OPCODE.close)
      this.closed = {
        code: payload.length < 2 ? 1005 : payload.readUInt16BE(0),
        reason: payload.subarray(2).toString(),
      }
    return true
  }
}
