/** How a client comes to a bus that tells its callers apart, and what has become of that (contract 9). */

import type { Identity } from '../../src/kernel/rights.ts'
import type { Refusal } from '../../src/kernel/vocabulary.ts'
import type { SimPrincipal } from './access-scenario.ts'
import type { ClientLine } from './line.ts'

/** What it shows: nothing, for its door knows it (`local`, `door`); in its first line; by its certificate; never. */
export type Manner = 'local' | 'door' | 'certificate' | 'token' | 'none' | 'rude' | 'huge' | 'silent'

export type Verdict = { readonly identity: Identity } | { readonly refusal: Refusal }

/** A line in which something is shown, or should have been. */
export interface Offer {
  readonly token: string | undefined
  readonly principal: SimPrincipal
  readonly kind: 'good' | 'bad' | 'expired' | 'unknowable' | 'nothing'
  /** Nothing of the client was taken before. */
  readonly isFirst: boolean
  line: ClientLine | undefined
}

export class Visit {
  readonly manner: Manner
  readonly principalWanted: SimPrincipal
  readonly from: string
  readonly openedAtMs: number
  /** As whom it is in; undefined: it is not. */
  principal: SimPrincipal | undefined
  /** What it has shown and the bus has not asked about yet, in order. */
  readonly offers: Offer[] = []
  /** What is being judged. */
  judging: Offer | undefined
  /** What the bus is being told, and about what. */
  told: Verdict | undefined
  answered: Offer | undefined
  /** Why it was sent away: nothing more of it is taken. */
  turnedAwayFor: string | undefined
  /** Lines of workers from this one on are not for it any more: its credential holds no more. */
  revokedFrom: number | undefined

  constructor(manner: Manner, principalWanted: SimPrincipal, from: string, openedAtMs: number) {
    this.manner = manner
    this.principalWanted = principalWanted
    this.from = from
    this.openedAtMs = openedAtMs
  }

  get mustProve(): boolean {
    return this.manner !== 'local' && this.manner !== 'door'
  }
}
