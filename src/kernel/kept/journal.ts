/**
 * What was said in one session, numbered from 1 (contract 12.8, 12.11).
 *
 * It touches no disk: it holds what nobody has written down yet, knows how much there is in all, and gives up the oldest
 * turns above its bound. Invariant: the entries that it holds are neighbours and end with the newest.
 */
import { FIXED } from '../limits.ts'

/** `fleeting` is of no use later; `prompt` was made by the bus of what a person said. */
export type EntryKind = 'update' | 'prompt' | 'fleeting' | 'event'

export interface Entry {
  readonly seq: number
  readonly kind: EntryKind
  /** A line with its newline. */
  readonly bytes: Buffer
}

/** Some entries that go together. */
interface Part {
  readonly from: number
  bytes: number
  /** A turn begins with it; else it goes on. */
  readonly isTurn: boolean
}

/** The newest state of its kind. */
export interface State {
  readonly seq: number
  readonly bytes: Buffer
}

const NO_ENTRIES: Entry[] = []
const NO_PARTS: Part[] = []
const NO_STATES: ReadonlyMap<string, State> = new Map()

export class Journal {
  /** The number of the newest entry, and of the oldest that there still is. */
  seq = 0
  firstSeq = 1
  /** Of all entries that there still are, and so much of them at a time is given up or kept. */
  bytes = 0
  partBytes: number = FIXED.maxPartBytes
  #held: Entry[] = NO_ENTRIES
  #parts: Part[] = NO_PARTS
  #states = NO_STATES

  /** The number of the oldest entry that is held here. */
  get heldFrom(): number {
    return this.seq - this.#held.length + 1
  }

  get held(): readonly Entry[] {
    return this.#held
  }

  get states(): ReadonlyMap<string, State> {
    return this.#states
  }

  at(seq: number): Entry | undefined {
    return this.#held[seq - this.heldFrom]
  }

  append(kind: EntryKind, bytes: Buffer, beginsTurn = false): Entry {
    const entry: Entry = { seq: ++this.seq, kind, bytes }
    if (this.#held === NO_ENTRIES) this.#held = []
    this.#held.push(entry)
    this.bytes += bytes.length
    this.#count(entry, beginsTurn)
    return entry
  }

  noteState(kind: string, { seq, bytes }: Entry): void {
    if (this.#states === NO_STATES) this.#states = new Map()
    ;(this.#states as Map<string, State>).set(kind, { seq, bytes })
  }

  /** Another process has written it: what it holds is in its hands. */
  adopt(seq: number, firstSeq: number, bytes: number): void {
    this.seq = seq
    this.firstSeq = firstSeq
    this.bytes = bytes
    this.#parts = bytes > 0 ? [{ from: firstSeq, bytes, isTurn: true }] : NO_PARTS
  }

  adoptStates(states: ReadonlyMap<string, State>): void {
    this.#states = states
  }

  /** All up to this number is written down elsewhere. */
  release(upTo: number): void {
    const count = upTo - this.heldFrom + 1
    if (count <= 0) return
    this.#held = count >= this.#held.length ? NO_ENTRIES : this.#held.slice(count)
  }

  /** Gives up the oldest turns until there is no more than `maxBytes`; true: some have gone. */
  trim(maxBytes: number): boolean {
    const { firstSeq } = this
    while (this.bytes > maxBytes && this.#parts.length > 1) this.#dropOldest()
    return this.firstSeq > firstSeq
  }

  /** What was said until now is of no use: what comes has the next numbers. */
  restart(): void {
    this.#held = NO_ENTRIES
    this.#parts = NO_PARTS
    this.#states = NO_STATES
    this.bytes = 0
    this.firstSeq = this.seq + 1
  }

  /** A turn goes whole, but for the last one, which may be too long by itself. */
  #dropOldest(): void {
    const nextTurn = this.#parts.findIndex((part, index) => index > 0 && part.isTurn)
    const dropped = this.#parts.splice(0, nextTurn === -1 ? 1 : nextTurn)
    for (const { bytes } of dropped) this.bytes -= bytes
    const { from } = this.#parts[0]!
    this.release(from - 1)
    this.firstSeq = from
  }

  #count({ seq, bytes }: Entry, beginsTurn: boolean): void {
    const last = this.#parts.at(-1)
    if (last !== undefined && !beginsTurn && last.bytes < this.partBytes) {
      last.bytes += bytes.length
      return
    }
    if (this.#parts === NO_PARTS) this.#parts = []
    this.#parts.push({ from: seq, bytes: bytes.length, isTurn: beginsTurn })
    if (this.#parts.length <= FIXED.maxJournalParts) return
    const [first, second] = this.#parts.splice(0, 2)
    this.#parts.unshift({ from: first!.from, bytes: first!.bytes + second!.bytes, isTurn: first!.isTurn })
  }
}
