/**
 * What an agent says in a turn, put together from its chunks, to be kept with how the turn ended.
 *
 * Protocols that stream give the text in notifications and answer with little more than why it stopped. No more is held than
 * may be kept, of one answer and of all that are being given; what is left out shows in the length. Redaction is for the store.
 */
import { JsonText } from '../wire/ready-json.ts'
import { isRecord } from './observed-line.ts'

/** What may be held, in characters; shared by all answers. */
export interface AnswerBudget {
  readonly perAnswer: number
  left: number
}

const CUT = '…'
/** Chunks are a word each: more of them are put together. */
const MAX_PIECES = 1_024

export class AnswerText {
  readonly #budget: AnswerBudget
  #pieces: string[] = []
  #chars = 0
  #isCut = false

  constructor(budget: AnswerBudget) {
    this.#budget = budget
  }

  /** A block of content; of what is no text its kind. */
  add(content: unknown): void {
    if (!isRecord(content)) return
    const { type, text } = content
    if (typeof text === 'string') this.#keep(text)
    else if (typeof type === 'string') this.#keep(`[${type}]`)
  }

  /** The result of the turn with the text in it, as `outputs`; what was held is given back. */
  joinTo(output: unknown): unknown {
    const value = this.#take()
    if (value === '') return output
    const outputs = `"outputs":${JSON.stringify([{ type: 'text', value }])}`
    if (output === null || output === undefined) return new JsonText(`{${outputs}}`)
    const result = output instanceof JsonText ? output.text.trim() : JSON.stringify(output)
    const isOpenTo = result.startsWith('{') && !result.includes('"outputs"')
    if (!isOpenTo) return output
    const head = result.slice(0, -1).trimEnd()
    return new JsonText(`${head}${head === '{' ? '' : ','}${outputs}}`)
  }

  #keep(text: string): void {
    // One more than is kept, for the store to see that it is too much.
    const { perAnswer, left } = this.#budget
    const room = perAnswer === 0 ? 0 : Math.min(perAnswer + 1 - this.#chars, left)
    const kept = text.slice(0, Math.max(room, 0))
    if (kept.length < text.length) this.#isCut = true
    if (kept === '') return
    if (this.#pieces.length >= MAX_PIECES) this.#pieces = [this.#pieces.join('')]
    this.#pieces.push(kept)
    this.#chars += kept.length
    this.#budget.left -= kept.length
  }

  #take(): string {
    const text = this.#pieces.join('')
    this.#budget.left += this.#chars
    this.#pieces = []
    this.#chars = 0
    // Half a character at the edge says nothing.
    return this.#isCut && text !== '' ? `${text.replace(/[\ud800-\udbff]$/, '')}${CUT}` : text
  }
}
