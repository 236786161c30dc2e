/**
 * The keys while a turn runs: Ctrl-C cancels, Ctrl-Z puts the program to sleep, and what is typed is kept for the prompts
 * that follow.
 *
 * Nothing of it shows in the middle of an answer. Invariant: after `release` the terminal is as it was found.
 */
import type { ReadStream } from 'node:tty'

const INTERRUPT = '\x03'
const SUSPEND = '\x1a'
const BACKSPACE = ['\x7f', '\b']
/** Ctrl-D, which ends the input. */
export const END_OF_INPUT = '\x04'
const KEPT = ['\n', END_OF_INPUT]
const ESCAPE = /\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O[A-Z]|.)?/g
const MAX_TYPED_CHARS = 4_096

export class Keyboard {
  readonly #terminal: ReadStream
  readonly #onInterrupt: () => void
  #isWatching = false
  #typed = ''

  constructor(terminal: ReadStream, onInterrupt: () => void) {
    this.#terminal = terminal
    this.#onInterrupt = onInterrupt
  }

  watch(): void {
    if (this.#isWatching) return
    this.#isWatching = true
    this.#terminal.setEncoding('utf8')
    this.#terminal.setRawMode(true)
    this.#terminal.on('data', this.#take)
    this.#terminal.resume()
  }

  release(): void {
    if (!this.#isWatching) return
    this.#isWatching = false
    this.#terminal.off('data', this.#take)
    this.#terminal.setRawMode(false)
    this.#terminal.pause()
  }

  /** What was typed for one prompt, with the newline or Ctrl-D that ended it. */
  takeTyped(): string {
    const typed = /^[^\n\x04]*[\n\x04]?/.exec(this.#typed)![0]
    this.#typed = this.#typed.slice(typed.length)
    return typed
  }

  keep(typed: string): void {
    this.#typed = (this.#typed + typed).slice(0, MAX_TYPED_CHARS)
  }

  readonly #take = (chunk: Buffer | string): void => {
    for (const key of String(chunk).replace(ESCAPE, '').replaceAll('\r', '\n')) {
      if (key === INTERRUPT) this.#onInterrupt()
      else if (key === SUSPEND) this.#suspend()
      else if (BACKSPACE.includes(key)) this.#typed = this.#typed.replace(/[^\n\x04]$/u, '')
      else if ((key >= ' ' || KEPT.includes(key)) && this.#typed.length < MAX_TYPED_CHARS) this.#typed += key
    }
  }

  #suspend(): void {
    this.release()
    process.once('SIGCONT', () => this.watch())
    process.kill(process.pid, 'SIGTSTP')
  }
}
