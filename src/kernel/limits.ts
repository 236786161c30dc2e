/**
 * Every bound of the bus and its default, in one object (contract 8.1).
 *
 * The kernel knows limits only in this spelling: bytes, counts and milliseconds. `src/config` translates the spelling
 * of the file (`max_input_buffer`, `drain_timeout_sec`). Nothing that a peer can make grow is without a row here.
 */
export interface Limits {
  /** The longest line, without its newline (8.2). */
  readonly maxInputBufferBytes: number
  /** A queue towards a peer is full above this (8.3). */
  readonly maxOutputQueueBytes: number
  readonly maxRestarts: number
  readonly restartWindowMs: number
  readonly drainTimeoutMs: number
  readonly backpressureTimeoutMs: number
  readonly maxClients: number
  readonly maxSessionsPerClient: number
  readonly maxPendingPerClient: number
  /** 0 means no request ever times out. */
  readonly requestTimeoutMs: number
  /** All that the bus retains for its peers, in bytes. */
  readonly maxTotalBufferBytes: number
  /** How long a full client may hold up a worker that others use. */
  readonly blockingTimeoutMs: number
  readonly halfCloseTimeoutMs: number
  /** What was said in all kept sessions together (12.11). */
  readonly maxJournalBytes: number
}

const KIB = 1024
const MIB = 1024 * KIB

export const DEFAULT_LIMITS: Limits = {
  maxInputBufferBytes: 1 * MIB,
  maxOutputQueueBytes: 4 * MIB,
  maxRestarts: 5,
  restartWindowMs: 60_000,
  drainTimeoutMs: 30_000,
  backpressureTimeoutMs: 60_000,
  maxClients: 10_000,
  maxSessionsPerClient: 100_000,
  maxPendingPerClient: 4_096,
  requestTimeoutMs: 0,
  maxTotalBufferBytes: 512 * MIB,
  blockingTimeoutMs: 5_000,
  halfCloseTimeoutMs: 30_000,
  maxJournalBytes: 1024 * MIB,
}

/** Bounds that no configuration changes; each has its clause. */
export const FIXED = {
  /** So often a question that the bus answers itself is put to another call when one has ended (13.16). */
  maxQuestionMoves: 8,
  /** Ids whose client has gone and whose answer is still awaited, per worker (4.2.3). */
  maxOwnerlessIds: 10_000,
  /** So long a worker may be silent to a handshake before it is asked for its dialect. */
  silenceMs: 10_000,
  /** A newcomer, or a claim, waits so long to be told its place; whoever knows it has less time (14.6). */
  placeWaitMs: 3_000,
  /** Some servers end when they are asked for their dialect; they are not asked for ever. */
  maxFatalProbes: 2,
  /** So long a worker may go on with a request that was cancelled, and say things about it (6.8). */
  strayMs: 5_000,
  /** What a worker has named (elicitations, servers) and the tasks it has begun; the oldest are forgotten. */
  maxRemembered: 10_000,
  maxTasks: 10_000,
  /** Names of sessions where several agents choose them (registry); the oldest are forgotten. */
  maxSessionNames: 200_000,
  /** Of a line that is too long, what is looked at for its id (8.2). */
  maxHeadBytes: 4 * KIB,
  /** How often full queues are looked at (8.3). */
  minLookMs: 20,
  maxLookMs: 1_000,
  /** After this a request of the bus's own that nobody waits for is forgotten. */
  ownRequestMs: 60_000,
  /** Resources that one client may subscribe to, per pool. */
  maxSubscriptions: 1_024,
  /** Of what a worker says once per process, the longest line that is remembered for later clients. */
  maxRememberedBytes: 64 * KIB,
  /** How long a request waits for a worker that is starting or backing off (7.2). */
  workerWaitMs: 10_000,
  /** How long what a dead worker wrote is still read (7.1). */
  lastWordsMs: 1_000,
  /** After the end of a worker's stdout its exit is waited for this long, to say how it ended. */
  exitWaitMs: 200,
  backoffFirstMs: 100,
  backoffMaxMs: 30_000,
  /** A worker that lives this long starts its back-off anew (7.2). */
  stableMs: 60_000,
  /** What is still queued at the end of the drain may take this long to leave (7.4). */
  flushMs: 1_000,
  /** End of stdin -> SIGTERM -> SIGKILL of the group: the pause between two steps (7.4). */
  stopStepMs: 2_500,
  /** Calls of agents that have ended, per client: a cancel of one of them comes too late (N18). */
  maxEndedCalls: 64,
  /** Messages in one array, where the protocol allows that (4.3). */
  maxBatchMessages: 1_024,
  /** Lines held for a session that is not announced yet, per worker (6.9). */
  maxHeldLines: 256,
  maxHeldBytes: 1 * MIB,
  /** Clients waiting for a lease, per pool, and how long (6.7). */
  maxLeaseWaiters: 1_024,
  leaseWaitMs: 30_000,
  /** Who has not proved who it is: for how long, with how much, and how many, in all and from one address (9.3). */
  admissionMs: 5_000,
  maxFirstBytes: 16 * KIB,
  maxStrangers: 1_024,
  maxStrangersPerAddress: 256,
  /** So long one whose credential has ended may take to read that; the shell has found it out in as long (9.5). */
  revokedMs: 500,
  /** Principals without a connection whose rate is still remembered; the oldest are forgotten (9.21). */
  maxAbsentPrincipals: 10_000,
  /** The past that is counted: how long a span is, how many there are, and what the first bucket of times takes (15.19). */
  trafficSpanMs: 5_000,
  trafficSpans: 180,
  trafficFirstMs: 0.1,
  trafficBuckets: 190,
  /** Tools of a pool of which it is remembered whether a principal may call them, and the longest such name (9.19). */
  maxToolVerdicts: 256,
  maxToolVerdictLength: 256,
  /** Clients and sessions that are shown one by one (8.6). */
  maxRollRows: 500,
  /** Buses that a message may pass, and the ways by which one client has come; the oldest are forgotten (11.6). */
  maxVia: 8,
  maxVias: 64,
  /** A session without a client ends after this in any case (12.4). */
  maxDetachedMs: 86_400_000,
  /** Questions that wait for a client, per session (12.14). */
  maxWaitingQuestions: 64,
  maxWaitingQuestionBytes: 1 * MIB,
  /** Prompts that wait for the end of another client's turn, per session (12.15). */
  maxWaitingPrompts: 16,
  /** Clients of one session (12.19). */
  maxSessionClients: 32,
  /** Sessions of which it is remembered whose they are (12.17). */
  maxKnownSessions: 100_000,
  /** Terminals of clients of which a session has spoken, and children of one session. */
  maxTerminals: 1_024,
  maxChildSessions: 1_024,
  /** What is asked of the journal at a time. */
  maxReadBytes: 1 * MIB,
  /** Parts into which a journal is divided, to give up its oldest. */
  maxJournalParts: 256,
  maxPartBytes: 256 * KIB,
  /** A title that is made of a prompt, and the longest that an agent gives. */
  maxPromptTitle: 80,
  maxTitle: 1_024,
  /** Pages of an agent's list of sessions that are asked for, and sessions on one of ours (12.17). */
  maxListPages: 50,
  maxListed: 1_000,
} as const
