/**
 * Fills the lines of a terminal with words, by the columns they take.
 *
 * It only appends: nothing that was written is moved or drawn again, so a line that scrolled away or a window that changed
 * its size does no harm. A word is held until its end is known. Invariant: no line is wider than asked for.
 */
import { cutAt, displayWidth } from '../../wire/columns.ts'
import type { Paint } from './paint.ts'
import type { Out } from './screen.ts'

interface Piece {
  readonly text: string
  readonly paint: Paint
}

/** What stands in front of the first and of every other line of a block. */
export interface Margin {
  readonly first: string
  readonly rest: string
  readonly paint?: Paint
}

const NO_MARGIN: Margin = { first: '', rest: '' }
/** Longer lines are hard to read, however wide the window is. */
const MAX_COLUMNS = 100
const MIN_COLUMNS = 20
const TAB = '    '
/** Scripts that put no spaces between words: a line may end behind each of these. */
const WITHOUT_SPACES = /^[\u2e80-\u9fff\uac00-\ud7a3\uff00-\uff60]$/
const PARTS = /( +|[\u2e80-\u9fff\uac00-\ud7a3\uff00-\uff60])/

export class WordWrap {
  readonly #out: Out
  readonly #columns: () => number
  #margin = NO_MARGIN
  #column = 0
  #gap = 0
  #word: Piece[] = []
  #wordColumns = 0
  /** Whether the margin of this line is written. */
  #hasMargin = false
  #isFirst = true

  constructor(out: Out, columns: () => number) {
    this.#out = out
    this.#columns = columns
  }

  /** Something of the line is written or held. */
  get isOpen(): boolean {
    return this.#hasMargin || this.#word.length > 0
  }

  get width(): number {
    return Math.max(Math.min(this.#columns() - 1, MAX_COLUMNS), MIN_COLUMNS)
  }

  /** The lines from here on, of which the one at hand has been ended. */
  begin(margin: Margin = NO_MARGIN): void {
    this.#margin = margin
    this.#isFirst = true
  }

  /** Words and the spaces between them, on one line. */
  say(text: string, paint: Paint): void {
    for (const part of text.replaceAll('\t', TAB).split(PARTS)) {
      if (part === '') continue
      if (part.startsWith(' ')) this.#space(part.length)
      else this.#add(part, paint)
      if (WITHOUT_SPACES.test(part)) this.#flushWord()
    }
  }

  /** A line as it is, which the terminal may break where it likes. */
  verbatim(text: string, paint: Paint): void {
    this.#startLine()
    this.#out.write(paint(text.replaceAll('\t', TAB)))
    this.endLine()
  }

  endLine(): void {
    this.#flushWord()
    this.#gap = 0
    if (!this.#hasMargin) this.#startLine()
    this.#breakLine()
  }

  #add(text: string, paint: Paint): void {
    const last = this.#word.at(-1)
    if (last?.paint === paint) this.#word[this.#word.length - 1] = { text: last.text + text, paint }
    else this.#word.push({ text, paint })
    this.#wordColumns += displayWidth(text)
    // A word without end is not kept.
    if (this.#wordColumns > this.width) this.#flushWord()
  }

  #space(count: number): void {
    this.#flushWord()
    this.#gap += count
  }

  #flushWord(): void {
    if (this.#word.length === 0) return
    const isBegun = this.#hasMargin && this.#column > displayWidth(this.#marginText())
    if (isBegun && this.#column + this.#gap + this.#wordColumns > this.width) this.#breakLine()
    else if (this.#gap > 0) this.#fillGap()
    this.#gap = 0
    this.#startLine()
    for (const { text, paint } of this.#word) this.#write(text, paint)
    this.#word = []
    this.#wordColumns = 0
  }

  #fillGap(): void {
    this.#startLine()
    const gap = Math.min(this.#gap, Math.max(this.width - this.#column - 1, 0))
    this.#out.write(' '.repeat(gap))
    this.#column += gap
  }

  #write(text: string, paint: Paint): void {
    for (let left = text; left !== ''; ) {
      const [head, tail] = cutAt(left, this.width - this.#column)
      if (head === '') {
        this.#breakLine()
        this.#startLine()
        continue
      }
      this.#out.write(paint(head))
      this.#column += displayWidth(head)
      left = tail
    }
  }

  #startLine(): void {
    if (this.#hasMargin) return
    const text = this.#marginText()
    if (text !== '') this.#out.write((this.#margin.paint ?? String)(text))
    this.#column = displayWidth(text)
    this.#hasMargin = true
  }

  #breakLine(): void {
    this.#out.write('\n')
    this.#column = 0
    this.#hasMargin = false
    this.#isFirst = false
  }

  /** At most half of the line: words need the other half. */
  #marginText(): string {
    return cutAt(this.#isFirst ? this.#margin.first : this.#margin.rest, Math.floor(this.width / 2))[0]
  }
}
