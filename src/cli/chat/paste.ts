/**
 * The keys of a terminal, with what is pasted made one line: a line break in it is a sign until the line is sent.
 *
 * Terminals put marks around what is pasted when asked to. The marks may arrive cut in two.
 */
import { PassThrough } from 'node:stream'
import type { ReadStream } from 'node:tty'

export const PASTE_ON = '\x1b[?2004h'
export const PASTE_OFF = '\x1b[?2004l'
const BEGIN = '\x1b[200~'
const END = '\x1b[201~'
const LINE_BREAK = '⏎'

/** The question that was meant by a line. */
export function withLineBreaks(line: string): string {
  return line.replaceAll(LINE_BREAK, '\n')
}

/** The line that stands for a question. */
export function asOneLine(question: string): string {
  return question.replace(/\r\n|\r|\n/g, LINE_BREAK)
}

/** Takes chunks of keys and gives them without the marks. */
export class PasteFilter {
  #isPasting = false
  #held = ''

  push(chunk: string): string {
    let left = this.#held + chunk
    this.#held = ''
    let keys = ''
    for (;;) {
      const mark = this.#isPasting ? END : BEGIN
      const at = left.indexOf(mark)
      if (at === -1) break
      keys += this.#take(left.slice(0, at))
      this.#isPasting = !this.#isPasting
      left = left.slice(at + mark.length)
    }
    const cut = this.#cutMark(left)
    this.#held = left.slice(left.length - cut)
    return keys + this.#take(left.slice(0, left.length - cut))
  }

  #take(text: string): string {
    return this.#isPasting ? asOneLine(text) : text
  }

  /** How much of the end may be the beginning of a mark; outside of a paste a lone escape is a key. */
  #cutMark(text: string): number {
    const [mark, shortest] = this.#isPasting ? [END, 1] : [BEGIN, 2]
    for (let length = Math.min(mark.length - 1, text.length); length >= shortest; length--) {
      if (text.endsWith(mark.slice(0, length))) return length
    }
    return 0
  }
}

/** What a line editor reads instead of the terminal. */
export class PasteInput extends PassThrough {
  readonly isTTY = true
  readonly #terminal: ReadStream
  readonly #filter = new PasteFilter()
  readonly #take = (chunk: Buffer | string): void => void this.write(this.#filter.push(String(chunk)))

  constructor(terminal: ReadStream) {
    super({ decodeStrings: false, encoding: 'utf8' })
    this.#terminal = terminal
    terminal.setEncoding('utf8')
    terminal.on('data', this.#take).resume()
  }

  setRawMode(isRaw: boolean): this {
    this.#terminal.setRawMode(isRaw)
    return this
  }

  /** Lets go of the terminal. */
  release(): void {
    this.#terminal.off('data', this.#take)
    this.#terminal.pause()
    this.destroy()
  }
}
