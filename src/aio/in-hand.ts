/**
 * The calls that one worker has in hand, and the calls it has made meanwhile: what made it call whom.
 *
 * A worker that does not say where it stands may mean any call it has in hand. So a call it makes is unwanted when every
 * call that may have made it was given up; a call that was answered may have been meant, and then what was made goes on by
 * itself. Both tables hold open calls only.
 */
import { Afterglow } from './afterglow.ts'
import type { OpenCall } from './call.ts'
import type { Ancestor } from './parents.ts'

export class InHand {
  readonly glow = new Afterglow()
  /** In the order they came, each with its number. */
  readonly #calls = new Map<Ancestor, number>()
  /** Calls made for one that is known. */
  readonly #made = new Map<Ancestor, Set<OpenCall>>()
  /** Calls made for any of those in hand up to that number. */
  readonly #unsure = new Map<OpenCall, number>()
  #last = 0

  has(call: Ancestor): boolean {
    return this.#calls.has(call)
  }

  /** All of them, or those of a trace. */
  *calls(traceId?: string): Generator<Ancestor> {
    for (const call of this.#calls.keys()) if (traceId === undefined || call.traceId === traceId) yield call
  }

  take(call: Ancestor): void {
    this.#calls.set(call, ++this.#last)
  }

  /** `cause` undefined: it may be any. */
  made(call: OpenCall, cause: Ancestor | undefined): void {
    if (this.#calls.size === 0) return
    if (cause === undefined) return void this.#unsure.set(call, this.#last)
    const made = this.#made.get(cause)
    if (made === undefined) this.#made.set(cause, new Set([call]))
    else made.add(call)
  }

  /** A call that was made is over. */
  over(call: OpenCall, cause: Ancestor | undefined): void {
    this.#unsure.delete(call)
    if (cause !== undefined) this.#made.get(cause)?.delete(call)
  }

  /** The worker has let go of the call, or is to; returns what it has made that nobody wants any more. */
  letGo(call: Ancestor, nowMs: number): readonly OpenCall[] {
    const number = this.#calls.get(call)
    if (number === undefined) return []
    this.#calls.delete(call)
    const made = [...(this.#made.get(call) ?? [])]
    this.#made.delete(call)
    if (call.isGivenUp) {
      this.glow.givenUp(call.depth, nowMs)
      return [...made, ...this.#withoutCause()]
    }
    this.glow.done(call.depth, nowMs)
    for (const [effect, upTo] of this.#unsure) if (upTo >= number) this.#unsure.delete(effect)
    return []
  }

  #withoutCause(): OpenCall[] {
    const [oldest = Number.POSITIVE_INFINITY] = this.#calls.values()
    return [...this.#unsure].filter(([, upTo]) => upTo < oldest).map(([effect]) => effect)
  }
}
