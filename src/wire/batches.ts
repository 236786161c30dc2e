/**
 * Messages of a client that came in one array are answered in one (contract 4.3; JSON-RPC batches).
 *
 * The router never sees an array: its messages are taken one by one, and their answers wait here, at the client's door,
 * until the last has come. Nothing else waits: questions and notifications pass. Invariant: what waits is never more than
 * the client's queue may hold; beyond that the answers of an array leave in several.
 */
import { BAD_PARAMS_SESSION, Envelope, type IdKey, SHAPE } from './envelope.ts'
import { FIELD } from './fields.ts'
import { elementsOf } from './json-array.ts'

const NEWLINE = Buffer.from('\n')
const OPEN = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from(']\n')

interface Batch {
  owedCount: number
  answers: Buffer[]
}

const reader = new Envelope()

/** The messages of the array at hand, each as a line of its own. */
export function messagesIn({ bytes, start, end }: Envelope, atMost = Number.POSITIVE_INFINITY): Buffer[] {
  const lines: Buffer[] = []
  for (const element of elementsOf(bytes, start, end)) {
    lines.push(Buffer.concat([bytes.subarray(element.start, element.end), NEWLINE]))
    if (lines.length >= atMost) break
  }
  return lines
}

interface Unpacked {
  readonly lines: readonly Buffer[]
  /** The ids of the requests among them. */
  readonly keys: IdKey[]
  /** Why none of them is taken. */
  readonly problem?: string
}

/** The messages of a client's array; all of them must be sound. */
export function unpack(envelope: Envelope, maxMessages: number): Unpacked {
  const lines = messagesIn(envelope, maxMessages + 1)
  const keys: IdKey[] = []
  if (lines.length === 0 || lines.length > maxMessages)
    return { lines, keys, problem: `an array holds 1 to ${maxMessages} messages` }
  for (const line of lines) {
    const shape = envelope.read(line, 0, line.length - 1)
    if (shape === SHAPE.bad) return { lines, keys, problem: envelope.problem }
    if (shape !== SHAPE.response && envelope.hasBadParamsSession) return { lines, keys, problem: BAD_PARAMS_SESSION }
    if (shape === SHAPE.request) keys.push(envelope.key(FIELD.id)!)
  }
  return { lines, keys }
}

export class Batches {
  /** Who waits for an answer with this id, first come first served. */
  readonly #owed = new Map<IdKey, Batch[]>()
  /** Of all the answers that wait. */
  bytes = 0

  get isEmpty(): boolean {
    return this.#owed.size === 0
  }

  /** Requests with these ids have come in one array. */
  open(keys: readonly IdKey[]): void {
    const batch = { owedCount: keys.length, answers: [] }
    for (const key of keys) {
      const waiting = this.#owed.get(key)
      if (waiting === undefined) this.#owed.set(key, [batch])
      else waiting.push(batch)
    }
  }

  /**
   * The line `bytes[start, end)`, newline included, is on its way to the client. Undefined: it passes. Else it is kept, and
   * the lines that are due now are given, if any.
   */
  keep(bytes: Buffer, start: number, end: number, limitBytes: number): readonly Buffer[] | undefined {
    if (reader.read(bytes, start, end - 1) !== SHAPE.response) return undefined
    const key = reader.key(FIELD.id)
    const batch = key === undefined ? undefined : this.#strike(key)
    if (batch === undefined) return undefined
    batch.answers.push(Buffer.from(bytes.subarray(start, end - 1)))
    this.bytes += end - 1 - start
    return batch.owedCount === 0 || this.bytes > limitBytes ? this.#release(batch) : []
  }

  /** There will be no answer to a request with this id; gives the lines that waited for it alone. */
  excuse(key: IdKey): readonly Buffer[] {
    const batch = this.#strike(key)
    return batch === undefined || batch.owedCount > 0 ? [] : this.#release(batch)
  }

  #strike(key: IdKey): Batch | undefined {
    const waiting = this.#owed.get(key)
    if (waiting === undefined) return undefined
    const batch = waiting.shift()!
    if (waiting.length === 0) this.#owed.delete(key)
    batch.owedCount--
    return batch
  }

  #release(batch: Batch): readonly Buffer[] {
    const { answers } = batch
    if (answers.length === 0) return []
    batch.answers = []
    for (const answer of answers) this.bytes -= answer.length
    const parts = answers.flatMap((answer, index) => [index === 0 ? OPEN : COMMA, answer])
    return [Buffer.concat([...parts, CLOSE])]
  }
}
