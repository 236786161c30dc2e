/**
 * What was said in one kept session, counted by the world itself: every line has a number of its own in its text, and whoever
 * reads the session is held against that count (contract 12.8, 12.12, 12.13, 12.19). The kernel's numbers are not asked.
 */
import { demand } from './violation.ts'

/** `state`: the newest of them holds; `fleeting`: of no use later; `prompt`: what a guest said. */
export type WordKind = 'said' | 'state' | 'fleeting' | 'prompt'

export interface Word {
  readonly kind: WordKind
  /** The guest whose prompt it is. */
  readonly by?: number
}

export class KeptLog {
  readonly number: number
  readonly session: string
  readonly pool: string
  readonly principal: string
  readonly words: Word[] = []
  /** The guests that take part, by the world's own count. */
  readonly participants = new Set<number>()
  detachedAtMs = 0
  lastWordMs = 0
  /** Somebody has closed it, or its process has ended, or the bus may have ended it to make room. */
  isOver = false
  /** It was over once: who asked for it then may be told so later. */
  hasComeBack = false
  /** Several took part at once: one that did not read then may have been taken off. */
  wasShared = false
  /** It was without a guest for so long that it may have ended. */
  isDoubtful = false
  /** Up to here some participant was sent everything; `isVague`: one did not read when it went, or nobody can tell. */
  sentTo = 0
  /** What follows until `sentTo` is not for that participant: how far the bus has come in it nobody outside can tell. */
  heardTo = 0
  isVague = false
  /** What a guest has said and the agent has not shown to have repeated. */
  pending: string[] = []
  pendingBy = 0
  pendingAt = 0
  /** Several prompts have come at once: which of them an agent repeats nobody could tell. */
  isCrowded = false

  constructor(number: number, session: string, pool: string, principal: string) {
    this.number = number
    this.session = session
    this.pool = pool
    this.principal = principal
  }

  /** The text of the next word. */
  next(): string {
    return `${this.number}.${this.words.length}`
  }

  /** The word was handed to the kernel. */
  say(word: Word, nowMs: number): void {
    this.words.push(word)
    this.lastWordMs = nowMs
  }

  /** Prompts that came together wait for the agent: which of them have been said nobody could tell. */
  get hasUnclear(): boolean {
    return this.isCrowded && this.pending.length > 0
  }

  newestState(before: number): number {
    for (let at = before - 1; at >= 0; at--) if (this.words[at]!.kind === 'state') return at
    return -1
  }
}

export interface Beginning {
  readonly guest: number
  /** The first word that it is to get; undefined: whichever is left. */
  readonly from: number | undefined
  /** It may begin earlier, from here: nobody was sent what lies between. */
  readonly earliest?: number
  readonly isNumbered: boolean
  /** What was said before is told again, without what was of no use later. */
  readonly isReplay: boolean
  /** It may miss the oldest. */
  readonly mayMiss: boolean
}

/** One guest on its way through a log: each word once, in order. */
export class Reading {
  readonly log: KeptLog
  readonly #guest: number
  readonly #isNumbered: boolean
  readonly #mayMiss: boolean
  /** Below this its own words are told again; below that notices are left out. */
  readonly #joinedAt: number
  readonly #replayedTo: number
  readonly #earliest: number | undefined
  #next: number | undefined
  #begunAt: number | undefined
  #lastState = -1
  #hasGap = false

  constructor(log: KeptLog, { guest, from, earliest, isNumbered, isReplay, mayMiss }: Beginning) {
    this.log = log
    this.#guest = guest
    this.#next = from
    this.#earliest = earliest
    this.#isNumbered = isNumbered
    this.#mayMiss = mayMiss
    this.#joinedAt = log.words.length
    this.#replayedTo = isReplay ? log.words.length : 0
  }

  /** Up to here it has got what was for it, or those before it had. */
  get heard(): number {
    return (this.#begunAt === undefined ? (this.#earliest ?? this.#next) : this.#next) ?? 0
  }

  /** The first word that it has not got. */
  get next(): number {
    return this.#skip(this.#next ?? 0)
  }

  hear(at: number): void {
    const { log } = this
    const word = log.words[at]
    demand(word !== undefined, 'nobody else sees it', () => `${this} hears word ${at}, which nobody has said`)
    if (this.#isStateAgain(at)) return
    if (this.#isEarly(at)) this.#next = at
    const next = this.#skip(this.#next ?? at)
    // A turn that ends with its session tells its prompt to everybody who comes later.
    const isLate = log.isOver && word.by === this.#guest && at === this.#next
    const mayMiss = this.#mayMiss || this.#hasGap
    const isRight = at === next || isLate || this.#isPast(next, at) || (mayMiss && at > next)
    demand(isRight, 'order kept', () => `${this} hears word ${at} where ${next} is its next`)
    if (this.#begunAt === undefined) this.#begin(at)
    this.#next = at + 1
    this.#hasGap = false
  }

  /** It begins with what the participant that was sent most had not come to. */
  #isEarly(at: number): boolean {
    if (this.#begunAt !== undefined || this.#next === undefined || this.#earliest === undefined) return false
    return at >= this.#earliest && at < this.#next
  }

  /** The session has ended in the middle of the replay: what is left of it is past, and no notice is. */
  #isPast(next: number, at: number): boolean {
    const isReplay = this.#replayedTo > 0 || this.#joinedAt === 0
    const isUntold = ({ kind }: Word, index: number): boolean => kind === 'fleeting' || this.#isOwn(next + index)
    return this.log.isOver && isReplay && this.log.words.slice(next, at).every(isUntold)
  }

  /** Its guest has said it itself since it came. */
  #isOwn(at: number): boolean {
    const { kind, by } = this.log.words[at]!
    return kind === 'prompt' && by === this.#guest && at >= this.#joinedAt
  }

  /** It is told that what comes next is gone: another session has begun under the name. */
  missNext(): void {
    this.#hasGap = true
  }

  /** What holds is told once more to whoever did not hear all. */
  #isStateAgain(at: number): boolean {
    if (this.log.words[at]!.kind !== 'state' || this.#isNumbered) return false
    if (this.#next !== undefined && at === this.next) return false
    if (this.#begunAt !== undefined && !this.#mayMiss && at >= this.#begunAt) return false
    if (at >= (this.#next ?? this.#joinedAt)) return false
    this.#lastState = at
    return true
  }

  #begin(at: number): void {
    this.#begunAt = at
    if (this.#lastState === -1 || this.#mayMiss) return
    const newest = this.log.newestState(this.#next ?? at)
    demand(this.#lastState === newest, 'order kept', () => `${this} hears state ${this.#lastState}, not ${newest}`)
  }

  /** What its guest has said itself since it came, and what was of no use later. */
  #skip(from: number): number {
    let at = from
    if (this.#isNumbered) return at
    for (let word = this.log.words[at]; word !== undefined; word = this.log.words[++at]) {
      if (!this.#isOwn(at) && !(word.kind === 'fleeting' && at < this.#replayedTo)) break
    }
    return at
  }

  /** Nothing is missing: it has heard the last word. */
  demandAll(): void {
    const { length } = this.log.words
    if (this.#hasGap) return
    // What lies before its own last prompt may have gone with an older turn, and the prompt is not told to it.
    if (this.#mayMiss && length > 0 && this.#isOwn(length - 1)) return
    // Where it begins is not known: what was said since it came it must have heard.
    if (this.#next === undefined && this.#skip(this.#joinedAt) >= length) return
    demand(this.next >= length, 'answered once', () => `${this} never heard word ${this.next} of ${length}`)
  }

  toString(): string {
    return `guest ${this.#guest} in session ${this.log.session} of ${this.log.principal} (log ${this.log.number})`
  }
}
