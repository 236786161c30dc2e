/**
 * The questions that workers have put to this side and that it has not answered yet.
 *
 * When the bus goes, its questions go with it, but this side may still answer them: such an answer must not be taken for
 * the answer to a new question with the same id. So a new question whose id is still in somebody's hands is put with an
 * id of our own, and its answer gets the old spelling back (contract 4.2.3).
 */
import type { IdKey } from '../wire/envelope.ts'

export interface Question {
  readonly key: IdKey
  /** Its id as the bus wrote it. */
  readonly spelling: string
  readonly isAliased: boolean
}

const ALIAS_PREFIX = 'stdio-bus/question/'
const MAX_OPEN = 65_536
/** Beyond this many ids of lost questions every new one is aliased instead of remembering more. */
const MAX_STALE = 10_000

export class Questions {
  readonly #open = new Map<IdKey, Question>()
  readonly #stale = new Set<IdKey>()
  #aliases = 0
  #aliasesAll = false

  get isFull(): boolean {
    return this.#open.size >= MAX_OPEN
  }

  get isEmpty(): boolean {
    return this.#open.size === 0
  }

  /** Notes a question; gives the spelling of the id to put it with, when that is not its own. */
  ask(key: IdKey, spelling: string): string | undefined {
    if (!this.#aliasesAll && !this.#stale.has(key) && !this.#open.has(key)) {
      this.#open.set(key, { key, spelling, isAliased: false })
      return undefined
    }
    const alias = `${ALIAS_PREFIX}${++this.#aliases}`
    this.#open.set(alias, { key, spelling, isAliased: true })
    return JSON.stringify(alias)
  }

  /** The question this answers; `stale` when its bus has gone, undefined when nobody asked. */
  answer(key: IdKey): Question | 'stale' | undefined {
    const question = this.#open.get(key)
    if (this.#open.delete(key)) return question
    return this.#stale.delete(key) ? 'stale' : undefined
  }

  /** The id that an aliased question was put with. */
  aliasOf(key: IdKey): string | undefined {
    if (this.#aliases === 0) return undefined
    for (const [alias, question] of this.#open) {
      if (question.isAliased && question.key === key) return JSON.stringify(alias)
    }
    return undefined
  }

  /** The bus has gone: nobody waits for these answers any more. */
  lose(): void {
    for (const key of this.#open.keys()) this.#stale.add(key)
    this.#open.clear()
    if (this.#stale.size <= MAX_STALE) return
    this.#aliasesAll = true
    this.#stale.clear()
  }

  /** Empties the table and gives the spelling of every id. */
  takeAll(): string[] {
    const spellings = [...this.#open.values()].map(({ spelling }) => spelling)
    this.#open.clear()
    return spellings
  }
}
