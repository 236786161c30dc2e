/**
 * Reads an opened answer to its end and shows it while it comes.
 *
 * Deltas of one read share an update; a change between thought and text, or the end of the read, sends it.
 * Invariant: an update is at most `maxUpdateChars` long, and the next read waits until the last update was taken.
 */
import { Answer } from './answer.ts'
import { isDone, parseChunk, toChunk } from './chunk.ts'
import type { Opened } from './completions.ts'
import type { Log } from './log.ts'

/** Where the answer is shown. */
export interface Sink {
  text(text: string): Promise<void>
  thought(text: string): Promise<void>
}

/** The answer, or the message with which the endpoint gave up inside it. */
export type Read = { readonly answer: Answer; readonly error: string | undefined }

export const maxUpdateChars = 64 * 1024
const maxComplaints = 3

export async function readAnswer(opened: Exclude<Opened, { kind: 'failed' }>, sink: Sink, log: Log): Promise<Read> {
  const reading = new Reading(sink, log)
  if (opened.kind === 'whole') {
    await reading.take(toChunk(opened.completion))
    return reading.end()
  }
  for await (const batch of opened.events) {
    if (await reading.takeBatch(batch)) break
  }
  return reading.end()
}

type Kind = 'text' | 'thought'

class Reading {
  readonly #answer = new Answer()
  readonly #sink: Sink
  readonly #log: Log
  #kind: Kind = 'text'
  #held = ''
  #error: string | undefined
  #complaints = 0

  constructor(sink: Sink, log: Log) {
    this.#sink = sink
    this.#log = log
  }

  /** Whether the answer is complete. */
  async takeBatch(batch: readonly string[]): Promise<boolean> {
    for (const data of batch) {
      if (isDone(data)) return true
      const chunk = parseChunk(data)
      if (chunk) await this.take(chunk)
      else this.#complain(data.length)
      if (this.#error !== undefined) return true
    }
    await this.#show()
    return false
  }

  async take(chunk: ReturnType<typeof toChunk>): Promise<void> {
    this.#error = chunk.error
    this.#answer.add(chunk)
    if (chunk.thought) await this.#hold('thought', chunk.thought)
    if (chunk.text) await this.#hold('text', chunk.text)
  }

  async end(): Promise<Read> {
    await this.#show()
    return { answer: this.#answer, error: this.#error }
  }

  async #hold(kind: Kind, piece: string): Promise<void> {
    if (kind !== this.#kind) await this.#show()
    this.#kind = kind
    this.#held += piece
  }

  async #show(): Promise<void> {
    const held = this.#held
    this.#held = ''
    for (const piece of split(held)) await this.#sink[this.#kind](piece)
  }

  #complain(chars: number): void {
    if (this.#complaints++ < maxComplaints) this.#log(`skipped an event of ${chars} characters that is no JSON object`)
  }
}

/** Cuts long text without cutting a character in two. */
export function* split(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + maxUpdateChars)
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end--
    yield text.slice(start, end)
    start = end
  }
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff
