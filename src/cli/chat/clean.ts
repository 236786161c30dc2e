/** Text of an agent, with what could drive a terminal made visible; it may arrive cut anywhere. */
import { printableProse } from '../../wire/printable.ts'

export function clean(text: string): string {
  return printableProse(text.replace(/\r\n/g, '\n'))
}

/** The end of a chunk that means something else together with the next one: half a character, half a line end. */
const CUT = /(?:\r|[\ud800-\udbff])$/

export class CleanChunks {
  #held = ''

  push(chunk: string): string {
    const text = this.#held + chunk
    this.#held = CUT.exec(text)?.[0] ?? ''
    return clean(text.slice(0, text.length - this.#held.length))
  }

  end(): string {
    const held = this.#held
    this.#held = ''
    return clean(held)
  }
}
