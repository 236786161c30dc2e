/** What the configuration says of an aggregate, as this room knows it. Types only. */

export interface MemberSpec {
  readonly pool: string
  /** Left out: the id of the pool and `_`. */
  readonly prefix?: string
  readonly allow: readonly string[]
  readonly deny: readonly string[]
  /** New names by own name. */
  readonly rename: ReadonlyMap<string, string>
}

export interface AggregateSpec {
  readonly id: string
  readonly members: readonly MemberSpec[]
  readonly mode: 'all' | 'search'
  readonly pin: readonly string[]
  readonly maxNameLength: number
  readonly listWaitMs: number
}

/** Whatever can grow has a bound (contract 13.7, 13.8, 13.10, 13.12). */
export const BOUNDS = {
  pages: 100,
  items: 10_000,
  listBytes: 16 * 1024 * 1024,
  /** Items on one page of ours. */
  pageItems: 1_000,
  instructionBytes: 2 * 1024,
  allInstructionBytes: 16 * 1024,
  rememberedUris: 4_096,
  /** A longer one is remembered by nobody, and fits no template. */
  uriLength: 8_192,
  rememberedTasks: 4_096,
  /** Names that once belonged to a member. */
  rememberedNames: 100_000,
  inputRounds: 8,
  changeGapMs: 250,
  /** So long a member is left alone after it was listed, whatever it says. */
  relistGapMs: 250,
  /** What could not have its name, in the status; of an own name in log and status. */
  toldConflicts: 1_000,
  toldName: 256,
  /** A parked member stays listed so long. */
  parkedMs: 30_000,
  /** What a member may take for one answer to the bus itself. */
  askMs: 30_000,
  /** The longest message of the bus's own kept while a member is being greeted. */
  heldBytes: 4 * 1024 * 1024,
  watchMs: 1_000,
  retryMs: 1_000,
  longestRetryMs: 30_000,
  /** Of uris in one result that are remembered. */
  urisInResult: 1_024,
} as const
