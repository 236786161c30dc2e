/**
 * One connection of the load generator: keeps a fixed number of requests in flight and checks every answer off by its id.
 *
 * Lines are built before the run and sent from a ring; reading goes into one buffer shared by all clients. Per line it parses ten
 * digits and touches one slot; per chunk it makes one write and looks at the clock once. An answer that is not the answer to an open
 * request of this client, byte lengths included, ends the run with an error.
 */
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { headBytes, ID_AT, ID_DIGITS, idOf, NEWLINE, slotOf, tailBytes } from './line.mjs'

const READ_BUFFER = Buffer.allocUnsafe(256 * 1024)
const ZERO = 48
/** Above this a line is sent as head and shared tail instead of from one contiguous ring. */
const MAX_RING_LINE_BYTES = 4096
/** Several times what is in flight: answers of several workers overtake each other, and a slot must be free to be sent again. */
const ringSlots = (inFlight) => Math.max(4 * inFlight, 64)

export class LoadClient {
  answered = 0

  constructor(index, { lineBytes, shape = 'flat', asks, inFlight, sessions, ring, greeting }, samples) {
    this.index = index
    this.lineBytes = lineBytes
    this.inFlight = inFlight
    this.samples = samples
    this.slots = ring ?? ringSlots(inFlight)
    this.open = new Uint8Array(this.slots)
    this.sentAt = new Float64Array(this.slots)
    this.next = 0
    this.due = 0
    this.phase = 0
    this.id = 0
    this.sending = false
    this.greeting = greeting
    this.#build({ lineBytes, shape, asks }, sessions)
  }

  #build(layout, sessions) {
    const heads = Array.from({ length: this.slots }, (_, slot) => headBytes(idOf(this.index, slot, this.slots)))
    if (layout.lineBytes > MAX_RING_LINE_BYTES) {
      this.heads = heads
      this.tail = tailBytes(layout)
      return
    }
    const tails = Array.from({ length: sessions ?? 1 }, (_, session) =>
      tailBytes({ ...layout, session: sessions && session }),
    )
    this.ring = Buffer.concat(heads.flatMap((head, slot) => [head, tails[slot % tails.length]]))
  }

  connect(address) {
    const callback = (length) => (this.greeting === undefined ? this.#read(length) : this.#greeted(length))
    const options = { ...address, onread: { buffer: READ_BUFFER, callback }, noDelay: true }
    this.socket = address.ca ? connectTls({ ...options, ca: readFileSync(address.ca) }) : connect(options)
    return new Promise((resolve, reject) => {
      this.ready = resolve
      this.socket.once(address.ca ? 'secureConnect' : 'connect', () =>
        this.greeting === undefined ? resolve() : this.socket.write(this.greeting),
      )
      this.socket.on('error', reject)
      this.closed = new Promise((_, fail) => {
        this.fail = (message) => fail(new Error(`client ${this.index}: ${message}`))
        this.socket.on(
          'close',
          () => this.outstanding > 0 && this.fail(`closed with ${this.outstanding} requests unanswered`),
        )
      })
      this.closed.catch(() => this.socket.destroy())
    })
  }

  start() {
    this.sending = true
    this.due = this.inFlight
    this.#send(performance.now())
  }

  stop() {
    this.sending = false
  }

  get outstanding() {
    return this.open.reduce((sum, open) => sum + open, 0)
  }

  close() {
    this.socket.destroy()
  }

  /** Nothing else is under way: the answer is one line, and a result, or this client measures refusals. */
  #greeted(length) {
    const text = READ_BUFFER.latin1Slice(0, length)
    if (!text.includes('"result"')) return this.#refuse(0, length)
    if (!text.endsWith('\n')) return true
    this.greeting = undefined
    this.ready()
    return true
  }

  #read(length) {
    const now = performance.now()
    let start = -this.phase
    for (; start < length; start += this.lineBytes) {
      const from = Math.max(0, start + ID_AT)
      const to = Math.min(length, start + ID_AT + ID_DIGITS)
      for (let at = from; at < to; at++) this.id = this.id * 10 + READ_BUFFER[at] - ZERO
      const end = start + this.lineBytes - 1
      if (end >= length) break
      if (READ_BUFFER[end] !== NEWLINE || !this.#checkOff(now)) return this.#refuse(start, length)
    }
    this.phase = length - start
    if (this.sending) this.#send(performance.now())
    return true
  }

  #checkOff(now) {
    const slot = slotOf(this.id, this.index, this.slots)
    this.id = 0
    if (this.open[slot] !== 1) return false
    this.open[slot] = 0
    this.answered++
    this.due++
    this.samples.add(now - this.sentAt[slot])
    return true
  }

  #refuse(start, length) {
    const text = READ_BUFFER.latin1Slice(Math.max(0, start), Math.min(length, start + 300))
    this.fail(`not an answer to an open request: ${JSON.stringify(text)}`)
    return false
  }

  /** Sends as many of the due requests as have a free slot, as one write (two where the ring ends). */
  #send(now) {
    while (this.due > 0) {
      const first = this.next
      const last = Math.min(first + this.due, this.slots)
      let slot = first
      for (; slot < last && this.open[slot] === 0; slot++) {
        this.open[slot] = 1
        this.sentAt[slot] = now
      }
      if (slot === first) return
      this.#write(first, slot)
      this.due -= slot - first
      this.next = slot === this.slots ? 0 : slot
    }
  }

  #write(first, last) {
    if (this.ring) {
      this.socket.write(this.ring.subarray(first * this.lineBytes, last * this.lineBytes))
      return
    }
    this.socket.cork()
    for (let slot = first; slot < last; slot++) {
      this.socket.write(this.heads[slot])
      this.socket.write(this.tail)
    }
    this.socket.uncork()
  }
}

/** Latencies in milliseconds, one in `stride`, the oldest overwritten when there are too many. */
export class Samples {
  #values = new Float64Array(200_000)
  #seen = 0
  #kept = 0

  constructor(stride) {
    this.stride = stride
  }

  add(value) {
    if (this.#seen++ % this.stride !== 0) return
    this.#values[this.#kept++ % this.#values.length] = value
  }

  clear() {
    this.#seen = 0
    this.#kept = 0
  }

  /** The given quantiles in microseconds. */
  quantilesUs(...quantiles) {
    const sorted = this.#values.slice(0, Math.min(this.#kept, this.#values.length)).sort()
    return quantiles.map((q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] * 1000)
  }
}
