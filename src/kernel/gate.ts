import { emptySet } from './empty.ts'
import type { Peer } from './peers.ts'

/** Sources that wait until something they fill has room again. */
export class Gate {
  sources = emptySet<Peer>()
  /** The peer whose queue this gate guards; none for a queue of the bus itself. */
  readonly owner: Peer | undefined

  constructor(owner?: Peer) {
    this.owner = owner
  }
}
