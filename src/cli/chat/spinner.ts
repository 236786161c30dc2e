/**
 * Says on the last line of a terminal that something goes on, what, and for how long.
 *
 * It owns the line only while nothing else is on it: whoever writes stops it first, and finds the line empty.
 */
import { clip } from '../../wire/columns.ts'
import type { Paint } from './paint.ts'
import type { Out } from './screen.ts'

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 100
/** What ends at once is not worth a flicker. */
const PATIENCE_MS = 200
const CLEAR_LINE = '\r\x1b[K'

export interface SpinnerOptions {
  readonly out: Out
  readonly columns: () => number
  readonly paint: Paint
}

export class Spinner {
  readonly #options: SpinnerOptions
  #timer: NodeJS.Timeout | undefined
  #frame = 0
  #isShown = false
  #label = ''
  #sinceMs = 0

  constructor(options: SpinnerOptions) {
    this.#options = options
  }

  /** `sinceMs` is when it began, on the clock of `performance.now()`. */
  start(label: string, sinceMs: number): void {
    this.#label = label
    this.#sinceMs = sinceMs
    this.#timer ??= setTimeout(() => this.#draw(), PATIENCE_MS).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#isShown) this.#options.out.write(CLEAR_LINE)
    this.#isShown = false
  }

  #draw(): void {
    const { out, columns, paint } = this.#options
    const seconds = Math.floor((performance.now() - this.#sinceMs) / 1_000)
    const text = `${FRAMES[this.#frame++ % FRAMES.length]} ${this.#label}${seconds > 0 ? ` ${seconds} s` : ''}`
    out.write(`${CLEAR_LINE}${paint(clip(text, Math.max(columns() - 1, 10)))}`)
    this.#isShown = true
    this.#timer = setTimeout(() => this.#draw(), FRAME_MS).unref()
  }
}
