/**
 * `/api/events`: what changes, as it changes, to whoever looks (contract 15.19).
 *
 * A reader that lags is not queued for: above a bound it gets nothing more until it has read, then is told of the gap and given what
 * is now. With nobody looking nothing runs. Streams are bounded, all together and for each login.
 */
import { EventStream } from '../../web/event-stream.ts'
import { type ApiCall, ApiError, badParameter } from './api-call.ts'

const MAX_STREAMS = 64
const MAX_STREAMS_OF_LOGIN = 16
const MAX_TOPICS = 32
const MAX_UNSENT_BYTES = 256 * 1024
const MAX_LAG_MS = 60_000
const LOOK_MS = 1_000

/** Something that can be followed. */
export interface Topic {
  /**
   * Sends what is now, then whatever comes; what is returned ends that. A position is where to go on from, and `after` is one that
   * was sent before.
   */
  follow(call: ApiCall, send: (data: unknown, position?: string) => void, after?: string): () => void
}

/** The topic of a name, or nothing; it may refuse by throwing. */
export type Topics = (name: string, call: ApiCall) => Topic | undefined

export interface FeedOptions {
  readonly topics: Topics
  readonly stillHolds: (call: ApiCall) => boolean
}

export class Feed {
  readonly #options: FeedOptions
  readonly #readers = new Set<Reader>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: FeedOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#readers.size
  }

  /** Answers with a stream until its reader goes. */
  serve(call: ApiCall): void {
    const names = (call.query.get('topics') ?? '').split(',').filter(Boolean)
    if (names.length === 0 || names.length > MAX_TOPICS)
      throw badParameter('topics is a list of names with commas between.')
    if (this.#readers.size >= MAX_STREAMS || this.#countOf(call) >= MAX_STREAMS_OF_LOGIN)
      throw new ApiError(503, 'too_many_streams', 'As many streams are open as may be: close a tab.')
    const topics = new Map(names.map((name) => [name, this.#topic(name, call)]))
    const reader = new Reader(call, topics, () => this.#gone(reader))
    this.#readers.add(reader)
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS)
  }

  #topic(name: string, call: ApiCall): Topic {
    const topic = this.#options.topics(name, call)
    if (topic === undefined) throw badParameter(`There is no topic of the name ${JSON.stringify(name.slice(0, 64))}.`)
    return topic
  }

  #countOf({ login, admitted }: ApiCall): number {
    let count = 0
    for (const { call } of this.#readers) {
      if (login === undefined ? call.admitted.identity.principal === admitted.identity.principal : call.login === login)
        count++
    }
    return count
  }

  #gone(reader: Reader): void {
    this.#readers.delete(reader)
    if (this.#readers.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #look(): void {
    for (const reader of this.#readers) if (!this.#options.stillHolds(reader.call)) reader.end()
  }
}

class Reader {
  readonly call: ApiCall
  readonly #topics: ReadonlyMap<string, Topic>
  readonly #stream: EventStream
  readonly #gone: () => void
  readonly #ends = new Map<string, () => void>()
  /** Where each topic is, for a reader that comes again. */
  readonly #positions: Map<string, string>
  /** Topics of which something was not sent. */
  readonly #skipped = new Set<string>()
  #lag: NodeJS.Timeout | undefined

  constructor(call: ApiCall, topics: ReadonlyMap<string, Topic>, gone: () => void) {
    this.call = call
    this.#topics = topics
    this.#gone = gone
    this.#positions = positionsOf(call, topics)
    this.#stream = new EventStream(
      call.web,
      () => this.#leave(),
      () => this.#caughtUp(),
    )
    for (const name of topics.keys()) this.#follow(name)
  }

  end(): void {
    this.#stream.end()
    this.#leave()
  }

  #follow(name: string): void {
    this.#ends.get(name)?.()
    this.#ends.set(
      name,
      this.#topics
        .get(name)!
        .follow(this.call, (data, position) => this.#send(name, data, position), this.#positions.get(name)),
    )
  }

  #send(event: string, data: unknown, position?: string): void {
    if (this.#stream.isOver) return
    if (this.#stream.unsentBytes > MAX_UNSENT_BYTES) return this.#skip(event)
    if (position !== undefined) this.#positions.set(event, position)
    const id = position === undefined ? undefined : new URLSearchParams([...this.#positions]).toString()
    this.#stream.send(Buffer.from(JSON.stringify(data)), { event, id })
  }

  #skip(name: string): void {
    this.#skipped.add(name)
    this.#lag ??= setTimeout(() => this.#stream.destroy(), MAX_LAG_MS)
  }

  /** It has read everything: what it has missed it is told, and what is now. */
  #caughtUp(): void {
    if (this.#skipped.size === 0 || this.#stream.isOver) return
    const skipped = [...this.#skipped]
    this.#skipped.clear()
    clearTimeout(this.#lag)
    this.#lag = undefined
    this.#send('gap', { topics: skipped })
    for (const name of skipped) {
      // It gets what is now, not a queue.
      this.#positions.delete(name)
      this.#follow(name)
    }
  }

  #leave(): void {
    clearTimeout(this.#lag)
    for (const end of this.#ends.values()) end()
    this.#ends.clear()
    this.#gone()
  }
}

/** A browser says where it was by itself, or, where it opens another stream, by `after`. */
function positionsOf({ web, query }: ApiCall, topics: ReadonlyMap<string, Topic>): Map<string, string> {
  const given = new URLSearchParams(web.header('last-event-id') ?? query.get('after') ?? '')
  return new Map([...given].filter(([name]) => topics.has(name)))
}
