/**
 * The streams of one MCP session: which one a message goes to, what can be resumed, and what waits (contract 10.9, 10.10). Pure:
 * it knows streams by number, lines as bytes and time as an argument; connections are for whoever uses it.
 *
 * Invariant: a message is given to one stream, once. Of a stream that can be resumed the reader gets every event after the last
 * one it has seen, in order, or is told that it cannot have them.
 */
import { KeptEvents } from './kept-events.ts'

export type StreamId = number

interface Stream {
  readonly id: StreamId
  readonly isPost: boolean
  isConnected: boolean
  /** Of its last event; 0: it has had none, but may have begun. */
  lastSequence: number
  /** Of the last event that is not kept any more. */
  goneSequence: number
  endedAtMs: number | undefined
}

/** A message that no stream could take. */
interface Held {
  readonly line: Buffer
  /** The worker waits for an answer: only so long. */
  readonly question: string | undefined
  readonly isForGet: boolean
  readonly sinceMs: number
}

export type Resumption =
  | { readonly outcome: 'unknown' }
  | { readonly outcome: 'over' }
  | {
      readonly outcome: 'resumed'
      readonly stream: StreamId
      readonly missed: readonly Event[]
      /** Nothing more will come. */
      readonly isEnded: boolean
    }

export interface Event {
  readonly id: string
  readonly line: Buffer
}

/** A message that a stream takes. */
export interface Placed extends Event {
  readonly stream: StreamId
}

export const MAX_HELD = 256
export const MAX_HELD_BYTES = 1024 * 1024
export const QUESTION_MS = 10_000
export const ENDED_MS = 60_000
const MAX_ENDED = 1_000

const EVENT_ID = /^([0-9a-z]{1,32})-(\d{1,15})-(\d{1,15})$/

export class SessionStreams {
  /** Begins every event id: so those of one session are good in no other. */
  readonly #tag: string
  readonly #streams = new Map<StreamId, Stream>()
  /** POSTs that are read now, the newest last. */
  readonly #posts = new Set<StreamId>()
  /** Oldest first. */
  readonly #ended = new Set<StreamId>()
  readonly #kept = new KeptEvents()
  #held: Held[] = []
  #heldBytes = 0
  #get: Stream | undefined
  #nextStream = 1
  /** Messages that were given up because nobody came for them. */
  droppedCount = 0

  constructor(tag: string) {
    this.#tag = tag
  }

  /** A POST that may become a stream. */
  openPost(): StreamId {
    return this.#open(true).id
  }

  /** The stream that belongs to no request; `ended`: the one before. */
  openGet(nowMs: number): { readonly stream: StreamId; readonly ended: StreamId | undefined } {
    const before = this.#get
    if (before !== undefined) this.end(before.id, nowMs)
    this.#get = this.#open(false)
    return { stream: this.#get.id, ended: before?.id }
  }

  #open(isPost: boolean): Stream {
    const id = this.#nextStream++
    const stream = { id, isPost, isConnected: true, lastSequence: 0, goneSequence: 0, endedAtMs: undefined }
    this.#streams.set(id, stream)
    if (isPost) this.#posts.add(id)
    return stream
  }

  /** Where the stream begins, before its first event. */
  startOf(stream: StreamId): string {
    return this.#idOf(stream, 0)
  }

  /** One more event of the stream; it is kept, whether or not anybody reads now. */
  append(id: StreamId, line: Buffer): Event {
    const stream = this.#streams.get(id)!
    const sequence = ++stream.lastSequence
    for (const gone of this.#kept.keep({ stream: id, sequence, line })) this.#lose(gone.stream, gone.sequence)
    return { id: this.#idOf(id, sequence), line }
  }

  /** The connection is gone, the stream is not. */
  lost(id: StreamId): void {
    const stream = this.#streams.get(id)
    if (stream !== undefined) this.#disconnect(stream)
  }

  /** Nothing more comes; what there was can still be asked for. */
  end(id: StreamId, nowMs: number): void {
    const stream = this.#streams.get(id)
    if (stream === undefined || stream.endedAtMs !== undefined) return
    this.#disconnect(stream)
    stream.endedAtMs = nowMs
    if (this.#get === stream) this.#get = undefined
    const isGone = stream.lastSequence > 0 && stream.goneSequence === stream.lastSequence
    if (isGone) return this.forget(id)
    this.#ended.add(id)
    if (this.#ended.size > MAX_ENDED) for (const oldest of this.#ended) return this.#forgetAll(new Set([oldest]))
  }

  #disconnect(stream: Stream): void {
    stream.isConnected = false
    this.#posts.delete(stream.id)
  }

  /** A POST that was no stream, or whose reader has seen nothing by which it could come back. */
  forget(id: StreamId): void {
    this.#streams.delete(id)
    this.#posts.delete(id)
    this.#ended.delete(id)
  }

  #forgetAll(streams: ReadonlySet<StreamId>): void {
    for (const id of streams) this.forget(id)
    this.#kept.forget(streams)
  }

  has(id: StreamId): boolean {
    return this.#streams.has(id)
  }

  /** Somebody has seen everything up to this event of a stream and wants the rest. */
  resume(eventId: string): Resumption {
    const [, tag, number, sequence] = EVENT_ID.exec(eventId) ?? []
    const stream = tag === this.#tag ? this.#streams.get(Number(number)) : undefined
    const seen = Number(sequence)
    if (stream === undefined || seen > stream.lastSequence || seen < stream.goneSequence) return { outcome: 'unknown' }
    const isEnded = stream.endedAtMs !== undefined
    if (isEnded && seen === stream.lastSequence) return { outcome: 'over' }
    if (!isEnded) this.#connect(stream)
    const missed = this.#kept
      .after(stream.id, seen)
      .map((event) => ({ id: this.#idOf(stream.id, event.sequence), line: event.line }))
    return { outcome: 'resumed', stream: stream.id, missed, isEnded }
  }

  #connect(stream: Stream): void {
    stream.isConnected = true
    if (stream.isPost) this.#posts.add(stream.id)
  }

  /** The stream of a message that answers nothing; undefined: there is none now. */
  choose(isForGet: boolean): StreamId | undefined {
    const get = this.#get?.isConnected ? this.#get.id : undefined
    if (isForGet) return get
    const newest = this.#posts.size === 0 ? undefined : [...this.#posts].at(-1)
    return this.#posts.size === 1 ? newest : (get ?? newest)
  }

  /** Waits for a stream; gives the ids of questions that had to give way. */
  hold(line: Buffer, how: { isForGet: boolean; question: string | undefined; nowMs: number }): string[] {
    const { isForGet, question, nowMs } = how
    this.#held.push({ line, question, isForGet, sinceMs: nowMs })
    this.#heldBytes += line.length
    let excess = 0
    while (this.#held.length - excess > MAX_HELD || this.#heldBytes > MAX_HELD_BYTES)
      this.#heldBytes -= this.#held[excess++]!.line.length
    return this.#giveUp(this.#held.splice(0, excess))
  }

  /** What waited and has a stream now, in order. */
  release(): Placed[] {
    const placed: Placed[] = []
    this.#keepHeld(({ line, isForGet }) => {
      const stream = this.choose(isForGet)
      if (stream !== undefined) placed.push({ stream, ...this.append(stream, line) })
      return stream === undefined
    })
    return placed
  }

  /** Time has passed: ended streams are forgotten, and questions that nobody came for given up; gives their ids. */
  expire(nowMs: number): string[] {
    const forgotten = new Set<StreamId>()
    for (const id of this.#ended) {
      if (nowMs - this.#streams.get(id)!.endedAtMs! < ENDED_MS) break
      forgotten.add(id)
    }
    if (forgotten.size > 0) this.#forgetAll(forgotten)
    const late: Held[] = []
    if (this.#held.length > 0)
      this.#keepHeld((held) => {
        const isLate = held.question !== undefined && nowMs - held.sinceMs >= QUESTION_MS
        if (isLate) late.push(held)
        return !isLate
      })
    return this.#giveUp(late)
  }

  /** Whether a reader is there. */
  get isRead(): boolean {
    return this.#posts.size > 0 || this.#get?.isConnected === true
  }

  get heldCount(): number {
    return this.#held.length
  }

  get keptBytes(): number {
    return this.#kept.bytes
  }

  /** Streams of which anything is known. */
  get size(): number {
    return this.#streams.size
  }

  #keepHeld(stays: (held: Held) => boolean): void {
    this.#held = this.#held.filter(stays)
    this.#heldBytes = this.#held.reduce((sum, { line }) => sum + line.length, 0)
  }

  #giveUp(held: readonly Held[]): string[] {
    this.droppedCount += held.length
    return held.flatMap(({ question }) => (question === undefined ? [] : [question]))
  }

  /** An event is kept no more; of an ended stream with none left nothing need be known. */
  #lose(id: StreamId, sequence: number): void {
    const stream = this.#streams.get(id)
    if (stream === undefined) return
    stream.goneSequence = sequence
    if (stream.endedAtMs !== undefined && sequence === stream.lastSequence) this.forget(id)
  }

  #idOf(stream: StreamId, sequence: number): string {
    return `${this.#tag}-${stream}-${sequence}`
  }
}
