/**
 * The requests of one connection that have been read and not answered to the end. Requests may come one behind the other, and
 * answers have no names: so whatever cannot be read is answered behind those that could.
 */
import type { ServerResponse } from 'node:http'

export class Unanswered {
  /** Oldest first; nearly always one. */
  readonly #open: ServerResponse[] = []
  #lastWord: ((broken: ServerResponse | undefined) => void) | undefined
  #turn: (() => void) | undefined

  begin(response: ServerResponse): void {
    this.#open.push(response)
    response.once('close', () => {
      this.#open.splice(this.#open.indexOf(response), 1)
      this.#maybeTurn()
      this.#maybeEnd()
    })
  }

  /** The connection is to be something else: it is once all of them are answered, and until then nothing of it is read. */
  inTurn(turn: () => void): void {
    this.#turn = turn
    this.#maybeTurn()
  }

  /** Nothing more can be read: once all others are answered the last word is said, for the request that broke off, if one did. */
  end(lastWord: (broken: ServerResponse | undefined) => void): void {
    this.#lastWord ??= lastWord
    this.#maybeEnd()
  }

  /** The connection is gone: the runtime tells only the answer whose turn it is, and those behind it would wait for ever. */
  abandon(): void {
    for (const response of [...this.#open]) {
      if (response.socket !== null) continue
      response.destroy()
      response.emit('close')
    }
  }

  #maybeTurn(): void {
    if (this.#open.length > 0) return
    const turn = this.#turn
    this.#turn = undefined
    turn?.()
  }

  #maybeEnd(): void {
    const [first, ...others] = this.#open
    const isAnswered = first === undefined || (others.length === 0 && !first.req.complete)
    if (this.#lastWord === undefined || !isAnswered) return
    const say = this.#lastWord
    this.#lastWord = () => {}
    say(first)
  }
}
