/**
 * Finds the JSON objects in a byte stream, however many lines each of them takes, and does nothing else.
 *
 * For agents that print their answers indented. An object begins with `{` as the first character of a line or right
 * after another object, and must go on with a key or end; all else is noise and skipped,
 * and so is an object with a line break inside a string. What is handed on is one line:
 * line breaks between tokens become spaces, inside strings JSON has none. Only an unfinished object is held, up to
 * `maxObjectBytes`; after `overflowed` the caller must close the peer and push no more.
 */
const OPEN = 0x7b
const CLOSE = 0x7d
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const QUOTE = 0x22
const BACKSLASH = 0x5c
const NEWLINE = 0x0a
const RETURN = 0x0d
const SPACE = 0x20
const TAB = 0x09

type State = 'between' | 'noise' | 'opened' | 'inside' | 'string' | 'escape'
/** `broken`: what was begun is no JSON, the next line may be. */
type Step = State | 'broken'

const isBlank = (byte: number): boolean => byte === SPACE || byte === TAB || byte === RETURN || byte === NEWLINE

export class JsonObjectSplitter {
  overflowed = false
  readonly maxObjectBytes: number
  #state: State = 'between'
  #depth = 0
  #held = Buffer.alloc(0)
  #heldBytes = 0

  constructor(maxObjectBytes: number) {
    this.maxObjectBytes = maxObjectBytes
  }

  /** An object has begun and not ended. */
  get unfinished(): boolean {
    return this.#state !== 'between' && this.#state !== 'noise'
  }

  /** Hands `onObject` every object that `chunk` completes, in order, each on one line without a newline. */
  push(chunk: Uint8Array, onObject: (object: Buffer) => void): void {
    let start = 0
    for (let at = 0; at < chunk.length && !this.overflowed; at++) {
      const wasUnfinished = this.unfinished
      const step = this.#steps[this.#state](chunk[at]!)
      this.#state = step === 'broken' ? 'between' : step
      if (!wasUnfinished && step === 'opened') start = at
      if (!wasUnfinished || this.unfinished) continue
      if (step === 'between') this.#complete(chunk.subarray(start, at + 1), onObject)
      else this.#heldBytes = 0
    }
    if (this.unfinished && !this.overflowed) this.#hold(chunk.subarray(start))
  }

  readonly #steps: Readonly<Record<State, (byte: number) => Step>> = {
    between: (byte) => {
      if (isBlank(byte)) return 'between'
      this.#depth = 1
      return byte === OPEN ? 'opened' : 'noise'
    },
    noise: (byte) => (byte === NEWLINE ? 'between' : 'noise'),
    opened: (byte) => {
      if (isBlank(byte)) return 'opened'
      if (byte === QUOTE) return 'string'
      return byte === CLOSE ? 'between' : 'noise'
    },
    inside: (byte) => {
      if (byte === QUOTE) return 'string'
      if (byte === OPEN || byte === OPEN_ARRAY) this.#depth += 1
      else if (byte === CLOSE || byte === CLOSE_ARRAY) this.#depth -= 1
      return this.#depth === 0 ? 'between' : 'inside'
    },
    string: (byte) => {
      if (byte === QUOTE) return 'inside'
      if (byte === NEWLINE) return 'broken'
      return byte === BACKSLASH ? 'escape' : 'string'
    },
    escape: (byte) => (byte === NEWLINE ? 'broken' : 'string'),
  }

  #complete(part: Uint8Array, onObject: (object: Buffer) => void): void {
    this.#hold(part)
    if (this.overflowed) return
    const object = this.#held.subarray(0, this.#heldBytes)
    this.#held = Buffer.alloc(0)
    this.#heldBytes = 0
    for (let at = 0; at < object.length; at++) {
      if (object[at] === NEWLINE || object[at] === RETURN) object[at] = SPACE
    }
    onObject(object)
  }

  #hold(part: Uint8Array): void {
    const bytes = this.#heldBytes + part.length
    this.overflowed = bytes > this.maxObjectBytes
    if (this.overflowed) return
    if (bytes > this.#held.length) {
      const grown = Buffer.alloc(Math.min(this.maxObjectBytes, Math.max(bytes, this.#held.length * 2)))
      this.#held.copy(grown, 0, 0, this.#heldBytes)
      this.#held = grown
    }
    this.#held.set(part, this.#heldBytes)
    this.#heldBytes = bytes
  }
}
