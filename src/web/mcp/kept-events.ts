/**
 * The last events of a session's streams, for readers that lost their connection (contract 10.10). Pure.
 *
 * They are kept in the order in which they came, over all streams, and the oldest go first: so what is kept of a stream is always
 * the end of it, and it is known whether anything is missing.
 */
export interface KeptEvent {
  readonly stream: number
  readonly sequence: number
  readonly line: Buffer
}

export const MAX_KEPT_EVENTS = 1_000
export const MAX_KEPT_BYTES = 4 * 1024 * 1024

export class KeptEvents {
  #events: KeptEvent[] = []
  /** Of those in the list, so many are gone already. */
  #gone = 0
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  get count(): number {
    return this.#events.length - this.#gone
  }

  /** Keeps an event; gives those that had to go for it, which may be itself. */
  keep(event: KeptEvent): readonly KeptEvent[] {
    this.#events.push(event)
    this.#bytes += event.line.length
    const dropped: KeptEvent[] = []
    while (this.count > MAX_KEPT_EVENTS || this.#bytes > MAX_KEPT_BYTES) dropped.push(this.#shift())
    return dropped
  }

  /** What the stream has said after this event. */
  after(stream: number, sequence: number): KeptEvent[] {
    return this.#events.slice(this.#gone).filter((event) => event.stream === stream && event.sequence > sequence)
  }

  forget(streams: ReadonlySet<number>): void {
    if (streams.size === 0) return
    this.#events = this.#events.slice(this.#gone).filter(({ stream }) => !streams.has(stream))
    this.#gone = 0
    this.#bytes = this.#events.reduce((sum, { line }) => sum + line.length, 0)
  }

  #shift(): KeptEvent {
    const event = this.#events[this.#gone++]!
    this.#bytes -= event.line.length
    if (this.#gone > MAX_KEPT_EVENTS) {
      this.#events = this.#events.slice(this.#gone)
      this.#gone = 0
    }
    return event
  }
}
