/** Where the text of an agent goes that is not Markdown: as it comes into a pipe, or word by word onto a terminal. */
import type { Paint } from './paint.ts'
import type { Out } from './screen.ts'
import { WordWrap } from './word-wrap.ts'

/** Takes text that was made printable. */
export interface TextSink {
  /** A line has been begun. */
  readonly isOpen: boolean
  push(text: string): void
  /** Shows what is held, and ends the line. */
  end(): void
}

export class PlainText implements TextSink {
  readonly #out: Out
  readonly #paint: Paint
  isOpen = false

  constructor(out: Out, paint: Paint) {
    this.#out = out
    this.#paint = paint
  }

  push(text: string): void {
    if (text === '') return
    this.#out.write(this.#paint(text))
    this.isOpen = !text.endsWith('\n')
  }

  end(): void {
    if (this.isOpen) this.#out.write('\n')
    this.isOpen = false
  }
}

export class WrappedText implements TextSink {
  readonly #wrap: WordWrap
  readonly #paint: Paint

  constructor(out: Out, columns: () => number, paint: Paint) {
    this.#wrap = new WordWrap(out, columns)
    this.#paint = paint
  }

  get isOpen(): boolean {
    return this.#wrap.isOpen
  }

  push(text: string): void {
    for (const [index, line] of text.split('\n').entries()) {
      if (index > 0) this.#wrap.endLine()
      this.#wrap.say(line, this.#paint)
    }
  }

  end(): void {
    if (this.isOpen) this.#wrap.endLine()
  }
}
