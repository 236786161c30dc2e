/**
 * A client of a kept session and how far it has come in it: one position, which only grows.
 *
 * Whatever it is sent of the session, it is sent by this position: so nothing is missing and nothing comes twice, whether
 * it is live, lags behind, or reads what was said before it came (contract 12.12, 12.19).
 */

import type { Request } from '../owed.ts'
import type { Client } from '../peers.ts'
import type { Timer } from '../timers.ts'
import type { Entry } from './journal.ts'
import type { KeptSession } from './kept-session.ts'

/** What was said is read before something else happens. */
export interface Replay {
  /** Up to this number it belongs to the past. */
  readonly until: number
  readonly request: Request
  /** The session cannot go on: its client is told so. */
  readonly isLost: boolean
  /** The agent has refused: the answer is the bus's. */
  readonly isRefused?: boolean
}

export class Seat {
  readonly client: Client
  readonly kept: KeptSession
  readonly number: number
  readonly sinceMs: number
  /** It takes part; else it only reads. */
  isParticipant: boolean
  /** It came by a method of the bus, and gets every number. */
  isNumbered: boolean
  /** The number that it gets next. */
  next: number
  replay: Replay | undefined
  /** It has been answered, and is not yet where the others are. */
  isArriving = false
  /** It waits for what the journal has, up to this number. */
  isReading = false
  readTo = 0
  /** What the journal gave, as far as it could not be sent yet. */
  ahead: readonly Entry[] = []
  /** Numbers that it has said itself and has not come to yet. */
  readonly own = new Set<number>()
  /** Its queue has been full since then. */
  fullTimer: Timer | undefined

  constructor(kept: KeptSession, client: Client, { number, next, isParticipant, isNumbered }: SeatWish, nowMs: number) {
    this.kept = kept
    this.client = client
    this.number = number
    this.next = next
    this.isParticipant = isParticipant
    this.isNumbered = isNumbered
    this.sinceMs = nowMs
  }

  /** It has been told what was said before it came. */
  get isHere(): boolean {
    return this.replay === undefined && !this.isArriving
  }

  get isLive(): boolean {
    return this.next > this.kept.journal.seq
  }
}

export interface SeatWish {
  readonly number: number
  readonly next: number
  readonly isParticipant: boolean
  readonly isNumbered: boolean
}
