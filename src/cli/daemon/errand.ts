/**
 * An errand: this node asks the bus of a node something, as a client there, and goes (contract 14.6).
 *
 * Its end is either side of a stream, or a client of this bus itself; whatever is said beside the answers is not heard. It is
 * bounded: nobody is waited for beyond its time, and no more is kept of an answer than the bound.
 */
import type { StreamOwner } from '../../cluster/stream.ts'

/** How an errand speaks; undefined: the node is not there. */
export interface ErrandWay {
  send(bytes: Buffer): void
  leave(): void
}

export interface ErrandBounds {
  readonly waitMs: number
  readonly maxBytes: number
}

type Answer = Readonly<Record<string, unknown>>

const NEWLINE = 0x0a

export class Errand implements StreamOwner {
  readonly #maxBytes: number
  readonly #timer: NodeJS.Timeout
  #way: ErrandWay | undefined
  #held: Buffer[] = []
  #heldBytes = 0
  #lastId = 0
  #settle: ((answer: Answer | undefined) => void) | undefined
  #isOver = false

  constructor({ waitMs, maxBytes }: ErrandBounds) {
    this.#maxBytes = maxBytes
    this.#timer = setTimeout(() => this.end(), waitMs)
  }

  /** Whoever it speaks through. */
  set way(way: ErrandWay | undefined) {
    if (way === undefined) this.end()
    else if (this.#isOver) way.leave()
    else this.#way = way
  }

  /** The answer with its result or error; undefined: none has come in time. */
  ask(method: string, params: unknown): Promise<Answer | undefined> {
    if (this.#isOver || this.#way === undefined) return Promise.resolve(undefined)
    const line = JSON.stringify({ jsonrpc: '2.0', id: ++this.#lastId, method, params })
    return new Promise((resolve) => {
      this.#settle = resolve
      this.#way!.send(Buffer.from(`${line}\n`))
    })
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#held = []
    this.#way?.leave()
    this.#settle?.(undefined)
  }

  // ---- for its end ----

  received(bytes: Buffer): void {
    let from = 0
    for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, from)) {
      this.#keep(bytes.subarray(from, at))
      from = at + 1
      this.#take(Buffer.concat(this.#held.splice(0)))
      this.#heldBytes = 0
    }
    this.#keep(bytes.subarray(from))
  }

  drained(): void {}

  ended(): void {
    this.end()
  }

  #keep(bytes: Buffer): void {
    if (this.#isOver || bytes.length === 0) return
    this.#heldBytes += bytes.length
    if (this.#heldBytes > this.#maxBytes) return this.end()
    this.#held.push(Buffer.from(bytes))
  }

  #take(line: Buffer): void {
    const answer = this.#isOver ? undefined : readAnswer(line)
    if (answer?.['id'] !== this.#lastId) return
    const settle = this.#settle
    this.#settle = undefined
    settle?.(answer)
  }
}

function readAnswer(line: Buffer): Answer | undefined {
  try {
    const said: unknown = JSON.parse(line.toString('utf8'))
    if (typeof said !== 'object' || said === null || 'method' in said) return undefined
    return said as Answer
  } catch {
    return undefined
  }
}
