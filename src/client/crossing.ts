/**
 * Looks at every line that crosses between this side and the bus, and keeps the books: what is owed in both directions,
 * and how this side introduced itself.
 *
 * It carries no bytes and opens nothing. A line goes on untouched, except: answers to questions of a lost bus, answers to
 * the connection's own requests, and the few ids that had to be replaced (see `questions.ts`). What is not a message at
 * all goes on as well; to judge it is the bus's right (contract 4.3). Messages in one array are in the books like any others.
 */
import { messagesIn } from '../wire/batches.ts'
import { Envelope, type IdKey, SHAPE, type Shape } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { localFaultLine } from './errors.ts'
import { Introduction } from './introduction.ts'
import { Questions } from './questions.ts'
import { type Refusal, readRefusal } from './refusal.ts'
import { Requests } from './requests.ts'
import { spliced } from './splice.ts'

/** What becomes of a line: on as it is, nowhere, on in other words, or an answer back to where it came from. */
export type Verdict = 'pass' | 'swallow' | { readonly on: Buffer } | { readonly back: Buffer }

/** Takes the answer to one of the connection's own requests. */
export type OwnAnswer = (line: Buffer) => void

const CANCEL_WITHOUT_ANSWER = 'notifications/cancelled'
const CANCEL_WITH_ANSWER = '$/cancel_request'
/** A subscription is answered when it ends: the end of input does not wait for that. */
const SUBSCRIPTION = 'subscriptions/listen'
const MAX_REFUSAL_BYTES = 16_384

export class Crossing {
  readonly requests = new Requests()
  readonly questions = new Questions()
  readonly introduction = new Introduction()
  readonly own = new Map<IdKey, OwnAnswer>()
  /** This side has ended its input and can answer nothing more. */
  isDeaf = false
  /** The last error line, if nothing came after it: it may be why a connection did not open. */
  lastWord: Refusal | undefined
  /** The bus has said that it closes this connection for a fault of ours. */
  refusal: Refusal | undefined
  readonly #envelope = new Envelope()

  readonly #outward: Readonly<Partial<Record<Shape, () => Verdict>>> = {
    [SHAPE.request]: () => this.#request(),
    [SHAPE.notification]: () => this.#notice(),
    [SHAPE.response]: () => this.#reply(),
  }
  readonly #inward: Readonly<Partial<Record<Shape, () => Verdict>>> = {
    [SHAPE.request]: () => this.#question(),
    [SHAPE.notification]: () => this.#news(),
    [SHAPE.response]: () => this.#answer(),
  }

  /** A line from this side; `bytes[end]` is its newline. */
  outward(bytes: Buffer, start: number, end: number): Verdict {
    const shape = this.#envelope.read(bytes, start, end)
    if (shape === SHAPE.bad && this.#envelope.isArray) return this.#several()
    return this.#outward[shape]?.() ?? 'pass'
  }

  /** A line from the bus. */
  inward(bytes: Buffer, start: number, end: number): Verdict {
    this.lastWord = undefined
    const shape = this.#envelope.read(bytes, start, end)
    if (shape === SHAPE.bad && this.#envelope.isArray) return this.#answers()
    return this.#inward[shape]?.() ?? 'pass'
  }

  /** The bus has gone: gives the spelling of every id that will get no answer from it. */
  lose(): string[] {
    this.questions.lose()
    this.introduction.lose()
    return this.requests.takeAll()
  }

  /** Messages in one array: they stay together, but for answers that the bus cannot want. */
  #several(): Verdict {
    const lines = messagesIn(this.#envelope)
    const verdicts = lines.map((line) => this.#outward[this.#envelope.read(line, 0, line.length - 1)]?.() ?? 'pass')
    const on = lines.flatMap((line, index) => {
      const verdict = verdicts[index]!
      if (verdict === 'swallow') return []
      return typeof verdict === 'object' && 'on' in verdict ? verdict.on : line
    })
    if (on.every((line, index) => line === lines[index]) && on.length === lines.length) return 'pass'
    return on.length === 0 ? 'swallow' : { on: Buffer.from(`[${on.map((line) => line.toString().trim())}]\n`) }
  }

  /** What the bus sends in one array are answers. */
  #answers(): Verdict {
    for (const line of messagesIn(this.#envelope)) {
      const shape = this.#envelope.read(line, 0, line.length - 1)
      const key = shape === SHAPE.response ? this.#envelope.key(FIELD.id) : undefined
      if (key !== undefined) this.requests.answer(key)
    }
    return 'pass'
  }

  #request(): Verdict {
    const envelope = this.#envelope
    if (this.requests.isFull) return { back: localFaultLine(envelope.idSpelling(), 'too_many_pending') }
    const key = envelope.key(FIELD.id)!
    const method = envelope.text(FIELD.method)
    this.requests.add(key, envelope.idSpelling(), method !== SUBSCRIPTION)
    if (method === 'initialize') this.introduction.ask(this.#said(key))
    return 'pass'
  }

  #said(key: IdKey) {
    const envelope = this.#envelope
    const { start } = envelope
    const idStart = envelope.startOf(FIELD.id) - start
    return { key, line: this.#copy(), idStart, idEnd: envelope.endOf(FIELD.id) - start }
  }

  #notice(): Verdict {
    const envelope = this.#envelope
    const method = envelope.text(FIELD.method)
    if (method === 'notifications/initialized') this.introduction.confirm(this.#copy())
    const key = envelope.key(FIELD.requestId)
    if (key === undefined) return 'pass'
    if (method === CANCEL_WITHOUT_ANSWER) this.requests.answer(key)
    if (method === CANCEL_WITH_ANSWER) this.requests.forgo(key)
    return 'pass'
  }

  #reply(): Verdict {
    const key = this.#envelope.key(FIELD.id)
    if (key === undefined) return 'pass'
    const question = this.questions.answer(key)
    if (question === 'stale') return 'swallow'
    return question?.isAliased ? this.#with(FIELD.id, question.spelling) : 'pass'
  }

  #question(): Verdict {
    const envelope = this.#envelope
    const spelling = envelope.idSpelling()
    if (this.isDeaf) return { back: localFaultLine(spelling, 'client_gone') }
    if (this.questions.isFull) return { back: localFaultLine(spelling, 'too_many_pending') }
    const alias = this.questions.ask(envelope.key(FIELD.id)!, spelling)
    return alias === undefined ? 'pass' : this.#with(FIELD.id, alias)
  }

  #news(): Verdict {
    const envelope = this.#envelope
    const key = envelope.key(FIELD.requestId)
    const alias = key === undefined ? undefined : this.questions.aliasOf(key)
    if (alias === undefined) return 'pass'
    const method = envelope.text(FIELD.method)
    const isCancel = method === CANCEL_WITHOUT_ANSWER || method === CANCEL_WITH_ANSWER
    return isCancel ? this.#with(FIELD.requestId, alias) : 'pass'
  }

  #answer(): Verdict {
    const envelope = this.#envelope
    const isError = envelope.has(FIELD.error) && envelope.typeOf(FIELD.error) !== 'null'
    if (isError && envelope.end - envelope.start <= MAX_REFUSAL_BYTES) this.#noteError()
    const key = envelope.key(FIELD.id)
    // While our own request is on its way, an error without an id is about the connection.
    if (key === undefined) return this.own.size > 0 ? 'swallow' : 'pass'
    const own = this.own.get(key)
    if (own !== undefined) {
      this.own.delete(key)
      own(this.#copy())
      return 'swallow'
    }
    this.requests.answer(key)
    this.introduction.answer(key, !isError)
    return 'pass'
  }

  #noteError(): void {
    this.lastWord = readRefusal(this.#copy())
    if (this.lastWord?.isFinal) this.refusal = this.lastWord
  }

  /** The line, copied, with its newline. */
  #copy(): Buffer {
    const { bytes, start, end } = this.#envelope
    return Buffer.from(bytes.subarray(start, end + 1))
  }

  #with(field: (typeof FIELD)['id'], replacement: string): Verdict {
    const envelope = this.#envelope
    const { bytes, start, end } = envelope
    return { on: spliced(bytes, start, end + 1, envelope.startOf(field), envelope.endOf(field), replacement) }
  }
}
