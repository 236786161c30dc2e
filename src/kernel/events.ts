/**
 * What the kernel is told and what it asks for, as plain data: both can be recorded, compared and replayed.
 *
 * The kernel never calls the shell. It is given one event with the time, and answers with actions; the bytes to be written
 * are asked for.
 */
import type { ErrorObject } from '../wire/jsonrpc.ts'
import type { Reason } from './faults.ts'
import type { EntryKind } from './kept/journal.ts'
import type { Observed } from './observation.ts'
import type { BusMethod, Identity, Rights } from './rights.ts'
import type { Via } from './via.ts'
import type {
  BusSpec,
  CallCause,
  ClientId,
  Door,
  PoolId,
  Principal,
  Refusal,
  SessionId,
  WorkerId,
} from './vocabulary.ts'

/** One life of a worker slot: a process, or whatever its source makes of it. */
export interface WorkerGeneration {
  readonly worker: WorkerId
  readonly generation: number
}

/** Who has put a call to the gateway. */
export type CallerId =
  | {
      readonly kind: 'client'
      readonly client: ClientId
      readonly door: Door
      readonly isLocal: boolean
      /** Left out: whoever is on this machine. */
      readonly principal?: Principal
      /** An agent of another node calls. */
      readonly cause?: CallCause
    }
  | ({ readonly kind: 'worker'; readonly pool: PoolId } & WorkerGeneration)

/** What is told to the audit log of a message. */
export interface Deed {
  readonly event: 'call' | 'denied'
  readonly pool: PoolId | undefined
  readonly method: string
  readonly tool: string | undefined
  /** `ok`, `error`, or the reason of a refusal. */
  readonly outcome: string
  readonly durationMs: number
  /** The trace it is in, where the gateway has said so; and under which number it was observed, where it was. */
  readonly traceId?: string
  readonly observed?: number
}

/** By which the journal knows a session. */
export type JournalKey = string

/** What the journal is to do; only `read` is answered, by `journal-lines`. Times are those of a calendar. */
export type JournalOrder =
  /** A session begins: whatever was written under its key is gone. */
  | {
      readonly order: 'open'
      readonly key: JournalKey
      readonly session: SessionId
      readonly pool: PoolId
      readonly principal: Principal
      readonly cwd: string
      readonly atMs: number
      /** It has begun before, while nothing could be written. */
      readonly isAgain?: true
    }
  | {
      readonly order: 'append'
      readonly key: JournalKey
      /** Which of the sessions that had this key one after the other. */
      readonly life: number
      readonly seq: number
      readonly kind: EntryKind
      readonly atMs: number
      readonly bytes: Buffer
    }
  /** What is known of a session beside its lines; `state` is the newest of its kind. */
  | {
      readonly order: 'note'
      readonly key: JournalKey
      readonly title?: string
      readonly answer?: string
      readonly isLost?: boolean
      readonly state?: { readonly kind: string; readonly seq: number; readonly bytes: Buffer }
    }
  /** What is older than this number goes; `isRestart`: with what held in the session. */
  | { readonly order: 'trim'; readonly key: JournalKey; readonly before: number; readonly isRestart?: true }
  | { readonly order: 'delete'; readonly key: JournalKey }
  | {
      readonly order: 'read'
      readonly key: JournalKey
      readonly reader: number
      readonly from: number
      readonly to: number
      readonly maxBytes: number
      /** With what is known of the session beside its lines. */
      readonly wantsHead: boolean
    }

/** Up to which number what was said in one life of a session is written down. */
export type Written = readonly [key: JournalKey, life: number, seq: number]

/** A session that an earlier run has written down. */
export interface StoredSession {
  readonly session: SessionId
  readonly pool: PoolId
  readonly principal: Principal
  readonly cwd: string
  readonly title: string
  readonly createdAtMs: number
  readonly updatedAtMs: number
  readonly seq: number
  readonly firstSeq: number
  readonly bytes: number
  readonly isLost: boolean
}

export interface JournalHead {
  readonly answer: string | undefined
  readonly states: readonly { readonly kind: string; readonly seq: number; readonly length: number }[]
}

/** What a source of workers tells of them; the kernel shows it and decides nothing by it. */
export type Facts = Readonly<Record<string, unknown>>

/** When it is worth trying again: left out, soon; `later`, once in a restart window; `never`. */
export type Again = 'later' | 'never'

/** The bytes that were received are lent: they lie in memory that is filled again as soon as they are applied. */

export type BusEvent =
  | {
      readonly type: 'client-opened'
      readonly client: ClientId
      readonly door: Door
      readonly pool?: PoolId
      /** Who it is; left out: whoever is on this machine. */
      readonly identity?: Identity
      /** That is to be proved first; `from`: the address it comes from (contract 9.3). */
      readonly mustProve?: true
      readonly from?: string
      /** The door lets in this machine's own programs only. */
      readonly isLocal?: boolean
      /** The buses through which it came, judged by its door (contract 11.6). */
      readonly via?: Via
      /** Its door carries messages: it is told who has them, and which answers are the bus's own. */
      readonly carriesMessages?: true
      /** It goes with its only answer: a task that it has begun is its principal's (contract 10.11). */
      readonly isBrief?: true
      /** It only reads for somebody who looks on: in a session nobody is told that it comes or goes (contract 15.4). */
      readonly isQuiet?: true
      /** The worker that shall have its message, if it is ready: of an internal client, or one whose door carries messages. */
      readonly prefer?: WorkerId
      /** An internal client's: the connection for whose principal it is (contract 9.22). */
      readonly behalfOf?: ClientId
      /** It calls for an agent, here or at another node (contract 14.10). */
      readonly cause?: CallCause
      /** An internal client that speaks for its connection as long as that is there (contract 13.3). */
      readonly isDelegate?: true
    }
  | { readonly type: 'client-received'; readonly client: ClientId; readonly bytes: Buffer }
  /** The client has come through these buses as well; `viaFault` has found nothing against it. */
  | { readonly type: 'client-via'; readonly client: ClientId; readonly via: Via }
  /** What a credential of the client proves, or why nothing. */
  | ({ readonly type: 'client-judged'; readonly client: ClientId } & (
      | { readonly identity: Identity }
      | { readonly refusal: Refusal }
    ))
  /**
   * Where the client, or the session that it claims, has its place: a pool; nowhere else than where it is (undefined); or
   * where it cannot go now (contract 14.3, 14.6).
   */
  | ({
      readonly type: 'located'
      readonly client: ClientId
      readonly pool: PoolId
      readonly session?: SessionId
    } & ({ readonly place: PoolId | undefined } | { readonly refusal: Refusal }))
  /** What all nodes have told; `outcome` is a member of JSON. */
  | ({ readonly type: 'gathered'; readonly client: ClientId; readonly row: number } & (
      | { readonly outcome: string }
      | { readonly refusal: Refusal }
    ))
  /** The credential of the client holds no more. */
  | { readonly type: 'client-revoked'; readonly client: ClientId; readonly isExpired: boolean }
  /** What is done can, or cannot, be told to the audit log, without which nothing may be done (contract 9.23). */
  | { readonly type: 'audit-changed'; readonly isAvailable: boolean }
  /** The principal has other rights from now on. */
  | { readonly type: 'rights-changed'; readonly principal: Principal; readonly rights: Rights }
  /** The client has ended its writing side. */
  | { readonly type: 'client-ended'; readonly client: ClientId }
  /** The connection is wholly gone; `isSettled`: it has all it wanted, so no worker is told of a cancel. */
  | { readonly type: 'client-closed'; readonly client: ClientId; readonly isSettled?: boolean }
  /** The gateway answers a call; `isFinal` ends it. `source` waits while the client does not read. */
  | {
      readonly type: 'client-reply'
      readonly client: ClientId
      readonly bytes: Buffer
      readonly isFinal: boolean
      /** Of the request that a final reply answers, and the trace that it is in. */
      readonly id?: string | number
      readonly traceId?: string
      readonly source?: WorkerGeneration
    }
  /** The client answers calls itself, or no longer: what it says in answer is handed on (contract 13.18). */
  | { readonly type: 'client-serves'; readonly client: ClientId; readonly isServing: boolean }
  /** A call that its client has cancelled is over: there will be no reply. */
  | { readonly type: 'call-cancelled'; readonly client: ClientId; readonly id: string | number }
  /**
   * What a client of an aggregate is told; `row`: the request that this answers, which ends with it. `via` is the delegate
   * whose worker waits while the client does not read. `hasBatches`: from now on arrays are taken from it.
   */
  | {
      readonly type: 'member-reply'
      readonly client: ClientId
      readonly bytes: Buffer
      readonly row: number | undefined
      readonly outcome: string | undefined
      readonly via: ClientId | undefined
      readonly hasBatches: boolean | undefined
    }
  /** A request to an aggregate that its client has cancelled is over. */
  | { readonly type: 'member-waived'; readonly client: ClientId; readonly row: number }
  | ({ readonly type: 'worker-reply'; readonly bytes: Buffer; readonly source?: WorkerGeneration } & WorkerGeneration)
  | { readonly type: 'client-wrote'; readonly client: ClientId; readonly pendingBytes: number }
  /** Its source has it: it can be spoken to. `facts` are the source's own (a pid); they are only shown. */
  | ({ readonly type: 'worker-opened'; readonly facts?: Facts } & WorkerGeneration)
  | ({ readonly type: 'worker-failed'; readonly why: string; readonly again?: Again } & WorkerGeneration)
  | ({ readonly type: 'worker-received'; readonly bytes: Buffer } & WorkerGeneration)
  /** Its stdout has ended, or its stdin is broken. */
  | ({ readonly type: 'worker-silent'; readonly pipe: 'stdin' | 'stdout' } & WorkerGeneration)
  /**
   * `isClean`: it ended as it was meant to; `how`, in the words of its source: of a process the exit code and the signal, of
   * others `why`.
   */
  | ({
      readonly type: 'worker-ended'
      readonly isClean: boolean
      readonly how: Facts
      /** What those are told whom it owed something; left out: that it has exited. */
      readonly reason?: Reason
      readonly again?: Again
    } & WorkerGeneration)
  | ({ readonly type: 'worker-wrote'; readonly pendingBytes: number } & WorkerGeneration)
  | { readonly type: 'tick' }
  /** What has to be added to the time of the events to have that of a calendar. */
  | { readonly type: 'calendar'; readonly offsetMs: number }
  /** What earlier runs have written down, oldest first. */
  | { readonly type: 'journal-opened'; readonly sessions: readonly StoredSession[] }
  /** The journal writes, or cannot for now. */
  | { readonly type: 'journal-changed'; readonly isWriting: boolean }
  /** Up to these numbers it is written down. */
  | { readonly type: 'journal-written'; readonly upTo: readonly Written[] }
  /** What was said in these was too old to be kept. */
  | { readonly type: 'journal-swept'; readonly keys: readonly JournalKey[] }
  /** What was read, in order, line after line in `bytes`, then the states of the head; nothing: it could not be read. */
  | {
      readonly type: 'journal-lines'
      readonly reader: number
      readonly entries: readonly { readonly seq: number; readonly kind: EntryKind; readonly length: number }[]
      readonly bytes: Buffer
      readonly head?: JournalHead
    }
  | { readonly type: 'reload'; readonly spec: BusSpec }
  /** Somebody wants one worker to start anew. */
  | { readonly type: 'worker-restart'; readonly worker: WorkerId }
  | { readonly type: 'shutdown'; readonly at: 'leisure' | 'once' }

/**
 * Bytes that are to be handed to the system for one peer, in order. Whoever has taken it reports it with `bus.wrote`; its
 * buffers are the kernel's again as soon as the system holds none of them.
 */
export type Write = { readonly buffers: readonly Buffer[] } & (
  | { readonly kind: 'client'; readonly id: ClientId; readonly isInternal: boolean }
  | { readonly kind: 'worker'; readonly id: WorkerId; readonly generation: number }
)

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export type Action =
  | { readonly do: 'pause-client' | 'resume-client'; readonly client: ClientId }
  | ({ readonly do: 'pause-worker' | 'resume-worker' } & WorkerGeneration)
  /** `flush`: end the writing side once all is written; `drop`: at once. */
  | { readonly do: 'close-client'; readonly client: ClientId; readonly how: 'flush' | 'drop' }
  /** `principal` is the name of the one for whom it is started, and whose environment it gets; left out: anybody's. */
  | ({
      readonly do: 'open-worker'
      readonly pool: PoolId
      readonly revision: string
      readonly principal?: string
      /** By which chains of buses its clients have come, where it leads on to others (contract 11.6). */
      readonly vias?: readonly Via[]
    } & WorkerGeneration)
  /** A client that came through these buses uses the worker, which leads on to others. */
  | ({ readonly do: 'pass-on'; readonly via: Via } & WorkerGeneration)
  /** Where does this client go, whose pool has several places; or where is the session that it claims? `located` follows. */
  | { readonly do: 'locate'; readonly client: ClientId; readonly pool: PoolId; readonly session?: SessionId }
  /**
   * A list of sessions is wanted of all nodes: of those that have this pool; left out: of all that may be seen. `gathered`
   * follows. `initialize`: the client's own handshake, if it has one.
   */
  | {
      readonly do: 'gather'
      readonly client: ClientId
      readonly pool: PoolId | undefined
      readonly row: number
      readonly bytes: Buffer
      readonly initialize: Buffer | undefined
    }
  /** A worker of the pool has answered that it has this session. */
  | { readonly do: 'session-opened'; readonly pool: PoolId; readonly session: SessionId }
  /** `end`: it is asked to; `kill`: it is made to; `clear`: whatever is left of it. */
  | ({ readonly do: 'close-worker'; readonly how: 'end' | 'kill' | 'clear' } & WorkerGeneration)
  | { readonly do: 'stop-accepting' }
  /** Who is it? `client-judged` follows. Without a token: it has shown none, where one must be shown. */
  | { readonly do: 'judge'; readonly client: ClientId; readonly token: string | undefined }
  /** The client is, or is no more, whom its credential has proved. */
  | { readonly do: 'admitted'; readonly client: ClientId; readonly identity: Identity }
  | { readonly do: 'turned-away'; readonly client: ClientId; readonly reason: Reason }
  /** What the bus itself is asked by somebody who may: `client-reply` follows. */
  | { readonly do: 'administer'; readonly client: ClientId; readonly method: BusMethod; readonly id: string }
  /** A request of a client has been answered or has ended; or, a message of it was denied. */
  | ({ readonly do: 'audit'; readonly client: ClientId } & Deed)
  | {
      readonly do: 'log'
      readonly level: LogLevel
      readonly text: string
      readonly about: Readonly<Record<string, unknown>>
    }
  /** A message for the gateway: the line, without its newline; `oddId` is an id that JSON libraries may respell. */
  | { readonly do: 'call'; readonly from: CallerId; readonly bytes: Buffer; readonly oddId?: string }
  /**
   * A message for an aggregate, or an answer to what a member has asked: the line, without its newline; `row` of a request
   * comes back with its answer (contract 13.3).
   */
  | {
      readonly do: 'aggregate'
      readonly client: ClientId
      readonly pool: PoolId | undefined
      readonly bytes: Buffer
      readonly row: number | undefined
    }
  /** What a delegate is told: the line with its newline. `source`: the process that said it; left out: the bus did. */
  | {
      readonly do: 'said'
      readonly client: ClientId
      readonly bytes: Buffer
      readonly source: WorkerGeneration | undefined
    }
  /** Nothing is owed any more for this request to an aggregate. */
  | { readonly do: 'aggregate-waived'; readonly client: ClientId; readonly row: number }
  /** The client wants no answer to its call any more; if it is one, `call-cancelled` follows. */
  | { readonly do: 'cancel-call'; readonly from: CallerId; readonly id: string | number }
  /** Nobody waits for the answers to its calls any more. */
  | { readonly do: 'caller-gone'; readonly from: CallerId }
  /** The drain is over: open calls are to be answered now. */
  | { readonly do: 'fail-calls' }
  /** The next answer with this id, as it is spelled, to a client whose door carries messages is the bus's own. */
  | { readonly do: 'faulted'; readonly client: ClientId; readonly id: string; readonly reason: Reason }
  /** The message of an internal client, or of one whose door carries messages, is on its way to that worker. */
  | ({ readonly do: 'routed'; readonly client: ClientId } & WorkerGeneration)
  /** The bus itself refuses or fails the request of an internal client. */
  | { readonly do: 'exchange-failed'; readonly client: ClientId; readonly error: ErrorObject }
  /** Something has happened in a pool whose traffic is traced. */
  | { readonly do: 'observed'; readonly what: Observed }
  /** A worker of the pool says that it offers something else now. */
  | { readonly do: 'list-changed'; readonly pool: PoolId }
  | { readonly do: 'journal'; readonly what: JournalOrder }
  /** All workers and clients are gone: the program may exit. */
  | { readonly do: 'finished' }
