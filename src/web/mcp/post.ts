/** What one POST has asked and how it is answered: one request, or several in an array whose answers leave together (contract 10.12). */
import type { Reply } from './reply.ts'
import type { StreamId } from './session-streams.ts'

/** Beyond this the answers of an array leave in several. */
const MAX_COLLECTED_BYTES = 4 * 1024 * 1024
const OPEN = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from(']')

export class Post {
  readonly reply: Reply
  /** Left out: the handshake, to whose answer nothing else belongs. */
  readonly stream: StreamId | undefined
  readonly #isArray: boolean
  #owed: number
  #answers: Buffer[] = []
  #answerBytes = 0

  constructor(reply: Reply, stream: StreamId | undefined, { isArray, owed }: { isArray: boolean; owed: number }) {
    this.reply = reply
    this.stream = stream
    this.#isArray = isArray
    this.#owed = owed
  }

  get isAnswered(): boolean {
    return this.#owed === 0
  }

  get isArray(): boolean {
    return this.#isArray
  }

  /** One of its requests is answered; gives what is to be sent now. */
  take(answer: Buffer): Buffer | undefined {
    this.#owed--
    if (!this.#isArray) return answer
    this.#answers.push(answer)
    this.#answerBytes += answer.length
    return this.isAnswered || this.#answerBytes > MAX_COLLECTED_BYTES ? this.#collected() : undefined
  }

  /** One of its requests will not be answered; gives what waited for it. */
  excuse(): Buffer | undefined {
    this.#owed--
    return this.isAnswered && this.#answers.length > 0 ? this.#collected() : undefined
  }

  #collected(): Buffer {
    const parts = this.#answers.flatMap((answer, index) => [index === 0 ? OPEN : COMMA, answer])
    this.#answers = []
    this.#answerBytes = 0
    return Buffer.concat([...parts, CLOSE])
  }
}
