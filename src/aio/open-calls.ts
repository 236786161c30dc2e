/**
 * The calls that are not answered yet, by caller, in the order they came.
 */
import type { OpenCall } from './call.ts'
import type { RequestId } from './envelope.ts'
import type { Caller } from './port.ts'

export function callerKey(caller: Caller): string {
  return `${caller.kind}:${caller.key}`
}

/** The calls of one caller; each knows its neighbours. A Set would keep ended calls alive in the tables it leaves behind. */
interface Line {
  newest: OpenCall | undefined
  size: number
}

export class OpenCalls {
  readonly #byCaller = new Map<string, Line>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** A copy, so that ending one of them does not disturb the walk. */
  all(): readonly OpenCall[] {
    return [...this.#byCaller.values()].flatMap(oldestFirst)
  }

  of(caller: Caller): readonly OpenCall[] {
    return oldestFirst(this.#byCaller.get(callerKey(caller)))
  }

  count(caller: Caller): number {
    return this.#byCaller.get(callerKey(caller))?.size ?? 0
  }

  /** The same id twice from one caller: the newest is meant (contract 4.2.3). */
  newest(caller: Caller, id: RequestId): OpenCall | undefined {
    let call = this.#byCaller.get(callerKey(caller))?.newest
    while (call !== undefined && call.envelope.id !== id) call = call.older
    return call
  }

  add(call: OpenCall): void {
    const line = this.#lineOf(callerKey(call.caller))
    call.older = line.newest
    if (line.newest !== undefined) line.newest.newer = call
    line.newest = call
    line.size += 1
    this.#size += 1
  }

  delete(call: OpenCall): void {
    const key = callerKey(call.caller)
    const line = this.#byCaller.get(key)
    if (line === undefined || (line.newest !== call && call.newer === undefined)) return
    if (call.newer === undefined) line.newest = call.older
    else call.newer.older = call.older
    if (call.older !== undefined) call.older.newer = call.newer
    call.older = undefined
    call.newer = undefined
    line.size -= 1
    this.#size -= 1
    if (line.size === 0) this.#byCaller.delete(key)
  }

  #lineOf(key: string): Line {
    const known = this.#byCaller.get(key)
    if (known !== undefined) return known
    const fresh: Line = { newest: undefined, size: 0 }
    this.#byCaller.set(key, fresh)
    return fresh
  }
}

function oldestFirst(line: Line | undefined): readonly OpenCall[] {
  const calls: OpenCall[] = []
  for (let call = line?.newest; call !== undefined; call = call.older) calls.push(call)
  return calls.reverse()
}
