/**
 * Which nodes there are, and which of them live (contract 14.2, 14.7).
 *
 * A pure state machine: it is told what was heard and what time it is. A node is lost when it was silent for too long, or is
 * back as another run; time in which the observer itself did not look does not count. Invariant: no more nodes are known
 * than the table of limits says, whoever speaks.
 */
import { type Announcement, commonVersion } from './announcement.ts'
import { CLUSTER } from './limits.ts'

export type PresenceState = 'ready' | 'leaving' | 'silent' | 'lost' | 'incompatible'

export interface NodeRow {
  readonly node: string
  run: number
  heardMs: number
  /** What it said last; undefined: nothing yet. */
  word: Announcement | undefined
  lostAtMs: number | undefined
  /** Runs of this name that others have followed: what they say late counts no more. */
  readonly former: number[]
}

/** What has become of a node. */
export type News = {
  readonly node: string
  readonly what: 'joined' | 'changed' | 'lost' | 'left' | 'back' | 'incompatible'
}

const MAX_FORMER = 8
/** A word that is so old may be the last of whoever lives: the next one is due, or was on its way. */
const IN_TIME_MS = 2 * CLUSTER.announceEveryMs
/** Runs that have said farewell, whose words may still be under way. */
const MAX_LEFT = CLUSTER.maxNodes

export class Presence {
  readonly lostAfterMs: number
  readonly #rows = new Map<string, NodeRow>()
  readonly #left = new Set<string>()
  #lookedMs: number | undefined

  constructor(lostAfterMs: number) {
    this.lostAfterMs = lostAfterMs
  }

  get rows(): IterableIterator<NodeRow> {
    return this.#rows.values()
  }

  find(node: string): NodeRow | undefined {
    return this.#rows.get(node)
  }

  get livingCount(): number {
    let count = 0
    for (const { lostAtMs } of this.#rows.values()) if (lostAtMs === undefined) count++
    return count
  }

  isLiving(node: string): boolean {
    const row = this.#rows.get(node)
    return row !== undefined && row.lostAtMs === undefined
  }

  stateOf({ word, lostAtMs, heardMs }: NodeRow, nowMs: number): PresenceState {
    if (lostAtMs !== undefined) return 'lost'
    if (word !== undefined && commonVersion(word) === undefined) return 'incompatible'
    if (nowMs - heardMs > CLUSTER.silentAfterMs) return 'silent'
    return word?.state === 'ready' || word === undefined ? 'ready' : 'leaving'
  }

  /** The word was heard before: whoever repeats it is not the node (contract 14.9). */
  isCopy(node: string, { run, number }: Announcement): boolean {
    if (this.#left.has(keyOf(node, run))) return true
    const row = this.#rows.get(node)
    return number > 0 && row?.run === run && number <= (row.word?.number ?? 0)
  }

  /** A run of the node has spoken; undefined: it is not to be listened to. */
  heard(node: string, run: number, nowMs: number): News['what'] | 'same' | undefined {
    if (this.#left.has(keyOf(node, run))) return undefined
    const known = this.#rows.get(node)
    if (known === undefined) {
      if (!this.#makeRoom()) return undefined
      this.#rows.set(node, { node, run, heardMs: nowMs, word: undefined, lostAtMs: undefined, former: [] })
      return 'joined'
    }
    if (known.former.includes(run)) return undefined
    known.heardMs = nowMs
    if (known.run === run) {
      if (known.lostAtMs === undefined) return 'same'
      known.lostAtMs = undefined
      return 'back'
    }
    known.former.push(known.run)
    if (known.former.length > MAX_FORMER) known.former.shift()
    const wasThere = known.lostAtMs === undefined
    known.run = run
    known.word = undefined
    known.lostAtMs = undefined
    return wasThere ? 'lost' : 'back'
  }

  announced(node: string, word: Announcement): void {
    const row = this.#rows.get(node)
    if (row !== undefined) row.word = word
  }

  /** It has said that it goes: it is missed by nobody. */
  left(node: string): void {
    const row = this.#rows.get(node)
    if (row === undefined) return
    this.#rows.delete(node)
    if (this.#left.size >= MAX_LEFT) this.#left.delete(this.#left.values().next().value!)
    this.#left.add(keyOf(node, row.run))
  }

  /** Who is lost since the last look. */
  look(nowMs: number): string[] {
    const lateMs = this.#lookedMs === undefined ? 0 : nowMs - this.#lookedMs - CLUSTER.lookEveryMs
    this.#lookedMs = nowMs
    const lost: string[] = []
    for (const row of this.#rows.values()) {
      if (lateMs > CLUSTER.lookEveryMs) row.heardMs += lateMs
      if (row.lostAtMs !== undefined) this.#forgetInTime(row, nowMs)
      else if (nowMs - row.heardMs >= this.lostAfterMs) {
        row.lostAtMs = nowMs
        // Whoever spoke in its name is silent: the one before may be heard again, and from its first word on.
        row.former.length = 0
        if (row.word !== undefined) row.word = { ...row.word, number: 0 }
        lost.push(row.node)
      }
    }
    return lost
  }

  /** The way to all others is broken: who was heard in time is silent from now on and no longer. */
  parted(nowMs: number): void {
    for (const row of this.#rows.values()) if (nowMs - row.heardMs < IN_TIME_MS) row.heardMs = nowMs
  }

  /** The way to all others is open again: who was not lost before may say so. */
  excuse(nowMs: number): void {
    for (const row of this.#rows.values())
      row.heardMs = Math.max(row.heardMs, nowMs - this.lostAfterMs + CLUSTER.excuseMs)
  }

  /** A lost node that went by its own will, or too long ago, is nobody. */
  #forgetInTime({ node, lostAtMs, word }: NodeRow, nowMs: number): void {
    if (nowMs - lostAtMs! >= CLUSTER.rememberLostMs || word === undefined || word.state !== 'ready')
      this.#rows.delete(node)
  }

  /** Whoever is lost longest gives way. */
  #makeRoom(): boolean {
    if (this.#rows.size < CLUSTER.maxNodes) return true
    const lost = [...this.#rows.values()].filter(({ lostAtMs }) => lostAtMs !== undefined)
    const oldest = lost.sort((a, b) => a.lostAtMs! - b.lostAtMs!)[0]
    return oldest !== undefined && this.#rows.delete(oldest.node)
  }
}

function keyOf(node: string, run: number): string {
  return `${node} ${run}`
}
