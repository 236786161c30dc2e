/** Clients of plain lines, over the Unix door and as frames at /ws: the same messages, so many in flight, each answer checked off. */
import { connect } from 'node:net'

const IN_FLIGHT = 16
/** A frame with a head of so many bytes, whose mask changes nothing. */
const HEAD_BYTES = 8
const REST = `"method":"echo","params":{"text":"${'x'.repeat(90)}"}}`
const ANSWER = /^\{"jsonrpc":"2.0","id":(\d+),"result":\{"ok":true\}\}$/

class Lane {
  answered = 0
  wrong = 0
  #open = new Set()
  #asked = []
  #id = 0
  #isOn = false
  #stopped

  start() {
    this.#isOn = true
    while (this.#open.size < IN_FLIGHT) this.#ask()
    this.flush()
  }

  /** Settles when nothing is in flight. */
  stop() {
    this.#isOn = false
    return new Promise((resolve) => {
      this.#stopped = resolve
    })
  }

  #ask() {
    const id = ++this.#id
    this.#open.add(id)
    this.#asked.push(`{"jsonrpc":"2.0","id":${id},${REST}`)
  }

  /** What is asked in one turn leaves together: the generator is not what is measured. */
  flush() {
    if (this.#asked.length > 0) this.socket.write(this.spell(this.#asked))
    this.#asked = []
  }

  take(text) {
    const id = ANSWER.exec(text)?.[1]
    if (!this.#open.delete(Number(id))) this.wrong++
    this.answered++
    if (this.#isOn) this.#ask()
    else if (this.#open.size === 0) this.#stopped?.()
  }

  close() {
    this.socket.destroy()
  }
}

export class LineLane extends Lane {
  #held = ''

  constructor({ unix }) {
    super()
    this.socket = connect(unix)
    this.socket.setEncoding('utf8').on('data', (text) => this.#read(text))
    this.opened = new Promise((resolve) => this.socket.once('connect', resolve))
  }

  spell(texts) {
    return `${texts.join('\n')}\n`
  }

  #read(text) {
    const lines = (this.#held + text).split('\n')
    this.#held = lines.pop()
    for (const line of lines) this.take(line)
    this.flush()
  }
}

export class FrameLane extends Lane {
  #held = Buffer.alloc(0)
  #isUp = false

  constructor({ url }) {
    super()
    const { hostname, port, host } = new URL(url)
    this.socket = connect({ host: hostname, port: Number(port), noDelay: true })
    this.opened = new Promise((resolve) => {
      this.socket.on('data', (chunk) => this.#read(chunk, resolve))
    })
    this.socket.write(
      `GET /ws HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n',
    )
  }

  spell(texts) {
    const frames = Buffer.alloc(texts.reduce((sum, { length }) => sum + HEAD_BYTES + length, 0))
    let at = 0
    for (const text of texts) {
      frames.writeUInt16BE(0x8180 | 126, at)
      frames.writeUInt16BE(text.length, at + 2)
      at += HEAD_BYTES
      at += frames.write(text, at, 'latin1')
    }
    return frames
  }

  #read(chunk, up) {
    let held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    if (!this.#isUp) {
      const end = held.indexOf('\r\n\r\n')
      if (end === -1) return
      this.#isUp = true
      held = held.subarray(end + 4)
      up()
    }
    for (;;) {
      const short = held.length < 2 ? 0 : held[1] & 127
      const start = short === 126 ? 4 : 2
      if (held.length < start) break
      const size = short === 126 ? held.readUInt16BE(2) : short
      if (held.length < start + size) break
      if ((held[0] & 15) === 1) this.take(held.toString('utf8', start, start + size))
      held = held.subarray(start + size)
    }
    this.#held = held
    this.flush()
  }
}
