/**
 * How this side introduced itself: the `initialize` that was answered, kept to be said again to a bus that comes back.
 *
 * Only what the worker accepted is repeated, and nothing else ever is (contract 6.6, 6.10). MCP clients confirm with a
 * notification, which belongs to the introduction.
 */
import type { IdKey } from '../wire/envelope.ts'
import { spliced } from './splice.ts'

interface Said {
  readonly key: IdKey
  readonly line: Buffer
  readonly idStart: number
  readonly idEnd: number
}

export class Introduction {
  #asked: Said | undefined
  #accepted: Said | undefined
  #confirmation: Buffer | undefined

  /** `line` ends with its newline; the id lies in `[idStart, idEnd)`. */
  ask(said: Said): void {
    this.#asked = said
  }

  answer(key: IdKey, isAccepted: boolean): void {
    if (this.#asked === undefined || this.#asked.key !== key) return
    if (isAccepted) {
      this.#accepted = this.#asked
      this.#confirmation = undefined
    }
    this.#asked = undefined
  }

  confirm(line: Buffer): void {
    if (this.#accepted !== undefined) this.#confirmation = line
  }

  /** The bus went before it answered: the requester is told, and decides itself whether to try again. */
  lose(): void {
    this.#asked = undefined
  }

  /** The recorded `initialize` with another id. */
  repeat(idSpelling: string): Buffer | undefined {
    if (this.#accepted === undefined) return undefined
    const { line, idStart, idEnd } = this.#accepted
    return spliced(line, 0, line.length, idStart, idEnd, idSpelling)
  }

  get confirmation(): Buffer | undefined {
    return this.#confirmation
  }
}
