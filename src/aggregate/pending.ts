/** What a client of an aggregate has asked and is not answered. Ids may come twice: a cancel means the newest. */
import type { IdKey } from '../wire/envelope.ts'
import type { SpokenEra } from './eras.ts'
import type { MemberLink } from './member-link.ts'

export class Pending {
  /** In the table of the kernel. */
  readonly row: number
  readonly key: IdKey
  /** The id as its client spelled it. */
  readonly spelling: string
  readonly method: string
  readonly era: SpokenEra
  /** The member that has it; undefined: nobody yet, or the bus itself. */
  link: MemberLink | undefined
  isOver = false
  /** Its client wants no answer any more; one that still comes is passed on. */
  isWaived = false
  /** How often it was repeated because the member wanted to know more, and as what it was sent. */
  rounds = 0
  sent: Buffer | undefined
  /** What is to be done when its client gives it up; undefined: the member is told. */
  onCancel: (() => void) | undefined

  constructor(row: number, key: IdKey, spelling: string, method: string, era: SpokenEra) {
    this.row = row
    this.key = key
    this.spelling = spelling
    this.method = method
    this.era = era
  }
}

const MAX_WAIVED = 1_000

export class PendingTable {
  readonly #byKey = new Map<IdKey, Pending[]>()
  /** Waived ones, oldest first. */
  readonly #waived = new Set<Pending>()

  add(pending: Pending): void {
    const same = this.#byKey.get(pending.key)
    if (same === undefined) this.#byKey.set(pending.key, [pending])
    else same.push(pending)
  }

  /** The newest with this id that is still wanted. */
  newest(key: IdKey): Pending | undefined {
    return this.#byKey.get(key)?.findLast(({ isWaived }) => !isWaived)
  }

  /** The oldest with this id at this member. */
  at(link: MemberLink, key: IdKey): Pending | undefined {
    return this.#byKey.get(key)?.find((pending) => pending.link === link)
  }

  byRow(row: number): Pending | undefined {
    for (const same of this.#byKey.values()) for (const pending of same) if (pending.row === row) return pending
    return undefined
  }

  waive(pending: Pending): void {
    pending.isWaived = true
    this.#waived.add(pending)
    const [oldest] = this.#waived
    if (this.#waived.size > MAX_WAIVED) this.end(oldest!)
  }

  end(pending: Pending): void {
    pending.isOver = true
    this.#waived.delete(pending)
    const same = this.#byKey.get(pending.key)
    if (same === undefined) return
    if (same.length === 1 && same[0] === pending) this.#byKey.delete(pending.key)
    else if (same.includes(pending)) same.splice(same.indexOf(pending), 1)
  }

  *wanted(): Generator<Pending> {
    for (const same of [...this.#byKey.values()]) for (const pending of [...same]) if (!pending.isWaived) yield pending
  }
}
