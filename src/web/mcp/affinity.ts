/**
 * Which worker has given a state, a cursor or a task: what brings it back goes there, since most servers can read only their own
 * (contract 10.11). Pure; it remembers digests, so many and for so long.
 */
import { createHash } from 'node:crypto'
import type { WorkerId } from '../../kernel/vocabulary.ts'
import type { Envelope } from '../../wire/envelope.ts'
import { FIELD, type Field } from '../../wire/fields.ts'

export const MAX_REMEMBERED = 10_000
export const REMEMBERED_MS = 600_000

type Kind = 'state' | 'cursor' | 'task'

/** Where an answer gives them, and where a request brings them back. */
const GIVEN: readonly (readonly [Field, Kind])[] = [
  [FIELD.resultRequestState, 'state'],
  [FIELD.resultNextCursor, 'cursor'],
  [FIELD.resultTaskId, 'task'],
  [FIELD.resultInnerTaskId, 'task'],
]
const RETURNED: readonly (readonly [Field, Kind])[] = [
  [FIELD.requestState, 'state'],
  [FIELD.cursor, 'cursor'],
  [FIELD.taskId, 'task'],
]

interface Row {
  readonly worker: WorkerId
  readonly untilMs: number
}

export class Affinity {
  readonly #rows = new Map<string, Row>()

  get size(): number {
    return this.#rows.size
  }

  /** The worker has given this answer to a client of the pool. */
  remember(pool: string, answer: Envelope, worker: WorkerId, nowMs: number): void {
    for (const key of keysIn(pool, answer, GIVEN)) this.#set(key, { worker, untilMs: nowMs + REMEMBERED_MS })
  }

  /** The worker that can read what this request brings back, if that is known. */
  find(pool: string, request: Envelope, nowMs: number): WorkerId | undefined {
    for (const key of keysIn(pool, request, RETURNED)) {
      const row = this.#rows.get(key)
      if (row === undefined || row.untilMs <= nowMs) continue
      this.#set(key, { worker: row.worker, untilMs: nowMs + REMEMBERED_MS })
      return row.worker
    }
    return undefined
  }

  #set(key: string, row: Row): void {
    this.#rows.delete(key)
    this.#rows.set(key, row)
    if (this.#rows.size > MAX_REMEMBERED) for (const oldest of this.#rows.keys()) return void this.#rows.delete(oldest)
  }
}

function keysIn(pool: string, line: Envelope, fields: readonly (readonly [Field, Kind])[]): string[] {
  const keys: string[] = []
  for (const [field, kind] of fields) {
    const value = line.has(field) ? line.text(field) : undefined
    if (value === undefined) continue
    keys.push(createHash('sha256').update(`${kind} ${pool}\n${value}`).digest('base64'))
  }
  return keys
}
