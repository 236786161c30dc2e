/**
 * How much of a trace one answer holds: so many calls, or so many characters, whichever comes first, and one at least.
 *
 * A trace may be as long as its calls are many; an answer is one line, which somebody has to hold whole.
 */
import type { CallRow } from './row.ts'

export interface CallPage {
  readonly calls: CallRow[]
  /** The id of the last of them, if there are more. */
  readonly next?: number
}

/** With its envelope it stays below the shortest line that peers take. */
const PAGE_CHARACTERS = 900 * 1024
/** What a call takes beside its payloads, about. */
const CALL_CHARACTERS = 700

/** Reads calls by their keys, which are in order and one more than the limit when there are more. */
export function takePage<Key>(keys: readonly Key[], limit: number, read: (key: Key) => CallRow): CallPage {
  const calls: CallRow[] = []
  let characters = 0
  for (const key of keys.slice(0, limit)) {
    if (characters >= PAGE_CHARACTERS) break
    const row = read(key)
    calls.push(row)
    characters += charactersOf(row)
  }
  const last = calls.at(-1)
  return last !== undefined && calls.length < keys.length ? { calls, next: last.id } : { calls }
}

/** Generic payloads stand in a document twice, as they were and as a list. */
function charactersOf({ input, output, error }: CallRow): number {
  return CALL_CHARACTERS + 2 * ((input?.length ?? 0) + (output?.length ?? 0)) + (error?.length ?? 0)
}
