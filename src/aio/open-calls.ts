/**
 * The calls that are not answered yet, by caller, in the order they came.
 */
import type { OpenCall } from './call.ts'
import type { RequestId } from './envelope.ts'
import type { Caller } from './port.ts'

export function callerKey(caller: Caller): string {
  return `${caller.kind}:${caller.key}`
}

export class OpenCalls {
  readonly #byCaller = new Map<string, Set<OpenCall>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** A copy, so that ending one of them does not disturb the walk. */
  all(): readonly OpenCall[] {
    return [...this.#byCaller.values()].flatMap((calls) => [...calls])
  }

  of(caller: Caller): readonly OpenCall[] {
    return [...(this.#byCaller.get(callerKey(caller)) ?? [])]
  }

  count(caller: Caller): number {
    return this.#byCaller.get(callerKey(caller))?.size ?? 0
  }

  /** The same id twice from one caller: the newest is meant (contract 4.2.3). */
  newest(caller: Caller, id: RequestId): OpenCall | undefined {
    return this.of(caller).findLast((call) => call.envelope.id === id)
  }

  add(call: OpenCall): void {
    const key = callerKey(call.caller)
    const calls = this.#byCaller.get(key)
    if (calls === undefined) this.#byCaller.set(key, new Set([call]))
    else calls.add(call)
    this.#size += 1
  }

  delete(call: OpenCall): void {
    const key = callerKey(call.caller)
    const calls = this.#byCaller.get(key)
    if (!calls?.delete(call)) return
    this.#size -= 1
    if (calls.size === 0) this.#byCaller.delete(key)
  }
}
