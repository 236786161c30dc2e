/** Every bound and every clock of the cluster, in one table (contract 14.2, 14.5, 14.9). */
export const CLUSTER = {
  announceEveryMs: 500,
  /** After so long without a word a node is called silent; what makes it lost is configured. */
  silentAfterMs: 1_250,
  lostAfterMs: 2_000,
  /** How often it is looked who is silent. */
  lookEveryMs: 100,
  /** After a break of the way to all others they have so long to be heard again. */
  excuseMs: 1_000,
  /** News of a change follow each other no faster. */
  announceGapMs: 50,
  /** How long a lost node is remembered. */
  rememberLostMs: 3_600_000,
  /** A message, unless the server allows less. */
  maxMessageBytes: 64 * 1024,
  /** How far a stream may be ahead of what the far kernel has taken. */
  windowBytes: 256 * 1024,
  /** What may be under way to a node, shared out among its peers. */
  underWayBytes: 16 * 1024 * 1024,
  /** No peer has less of it than this. */
  leastShareBytes: 64 * 1024,
  resendAfterMs: 600,
  /** What is missing is asked for again no sooner. */
  askAgainMs: 100,
  /** A receipt waits so long for something to travel with. */
  ackDelayMs: 25,
  /** That much is acknowledged at once. */
  ackAtBytes: 64 * 1024,
  pingEveryMs: 1_000,
  pingIdleEveryMs: 10_000,
  maxNodes: 256,
  /** Pools of all other nodes together that are imported: a hundred of each of a hundred. */
  maxPlaces: 10_000,
  /** Of its time a node spends at most this share with telling its kernel what others have. */
  mostTellingShare: 0.2,
  maxAnnouncementBytes: 256 * 1024,
  maxOpeningBytes: 16 * 1024,
  maxReasonBytes: 1_024,
  /** Streams of one node that were begun and have not come; numbers further ahead are not believed. */
  maxMissingStreams: 65_536,
  maxGaps: 1_024,
  /** Streams of others that are being refused, beside those that are open. */
  maxTurnedAway: 256,
  /** Streams that were given up and whose other end does not say that it knows. */
  maxTombs: 1_024,
  directoryWaitMs: 1_000,
  listWaitMs: 1_000,
  /** Of one answer to a list. */
  maxListBytes: 4 * 1024 * 1024,
  traceWaitMs: 2_000,
  maxTraceBytes: 4 * 1024 * 1024,
  /** Questions of other nodes that are answered at a time. */
  maxDesks: 64,
  /** Who has the name is waited for so long before a node joins. */
  nameWaitMs: 500,
  reconnectEveryMs: 100,
  /** What was said last may still arrive for so long when a node goes. */
  lastWordsMs: 1_000,
} as const
