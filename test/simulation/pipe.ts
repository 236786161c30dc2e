/**
 * One direction of a connection, from the bus to a peer: what the system holds, what the peer has not read.
 *
 * Like the real thing it takes a part and keeps the rest pending. Buffers that are pending are kept as they are, not as
 * copies: whoever changes one too early changes what the peer reads.
 */
export class Pipe {
  readonly capacityBytes: number
  #unread = ''
  #pending: Buffer[] = []
  pendingBytes = 0
  isClosed = false
  /** How long something has been pending while the clock ran. */
  fullMs = 0
  /** Everything that was pending has gone and nobody has been told yet. */
  isDrainDue = false

  constructor(capacityBytes: number) {
    this.capacityBytes = capacityBytes
  }

  get isIdle(): boolean {
    return this.#unread === '' && this.pendingBytes === 0
  }

  get hasUnread(): boolean {
    return this.#unread !== ''
  }

  /** Returns what is still pending, as a channel does. */
  write(buffers: readonly Buffer[]): number {
    if (this.isClosed) return 0
    let bytes = 0
    for (const buffer of buffers) bytes += buffer.length
    if (this.#unread.length + bytes <= this.capacityBytes) {
      for (const buffer of buffers) this.#unread += buffer.latin1Slice()
      return 0
    }
    this.#pending.push(...buffers)
    this.pendingBytes = bytes
    this.#fill()
    return this.pendingBytes
  }

  read(bytes: number): string {
    const wasPending = this.pendingBytes > 0
    let text = ''
    while (this.#unread !== '' && text.length < bytes) {
      const part = this.#unread.slice(0, bytes - text.length)
      text += part
      this.#unread = this.#unread.slice(part.length)
      this.#fill()
    }
    if (wasPending && this.pendingBytes === 0) this.isDrainDue = true
    return text
  }

  /** Time goes by. */
  age(ms: number, isFlushed: boolean, isRunning: boolean): void {
    if (this.pendingBytes === 0 && isFlushed) this.fullMs = 0
    else if (isRunning) this.fullMs += ms
  }

  /** What has not been read. */
  get rest(): string {
    return this.#unread + this.#pending.map((buffer) => buffer.latin1Slice()).join('')
  }

  close(): void {
    this.isClosed = true
    this.#pending = []
    this.pendingBytes = 0
    this.isDrainDue = false
  }

  #fill(): void {
    while (this.#pending.length > 0) {
      const room = this.capacityBytes - this.#unread.length
      if (room <= 0) return
      const first = this.#pending[0]!
      const taken = Math.min(room, first.length)
      this.#unread += first.latin1Slice(0, taken)
      this.pendingBytes -= taken
      if (taken === first.length) this.#pending.shift()
      else this.#pending[0] = first.subarray(taken)
    }
  }
}

/** What a peer is about to send, in the order it was written, cut anywhere on its way. */
export class Sending {
  #text = ''
  /** All that has ever been handed over, in bytes. */
  sentBytes = 0

  get length(): number {
    return this.#text.length
  }

  add(text: string): number {
    this.#text += text
    return this.sentBytes + this.#text.length
  }

  take(bytes: number): Buffer {
    const text = this.#text.slice(0, bytes)
    this.#text = this.#text.slice(bytes)
    this.sentBytes += text.length
    // A buffer of its own, as a read gives one: slices of a shared one are treated otherwise by the queues.
    const chunk = Buffer.allocUnsafeSlow(text.length)
    chunk.write(text, 'latin1')
    return chunk
  }

  /** It dies in the middle: what is behind is never sent. */
  cutAfter(bytes: number): void {
    this.#text = this.#text.slice(0, bytes)
  }
}

/** Puts lines together again from what was read. */
export class LineReader {
  #part = ''

  get part(): string {
    return this.#part
  }

  /** True while the beginning of a line is held. */
  get isInside(): boolean {
    return this.#part !== ''
  }

  push(text: string): readonly string[] {
    const lines = (this.#part + text).split('\n')
    this.#part = lines.pop()!
    // A carriage return at the end belongs to nobody's message.
    return lines.map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line))
  }
}
