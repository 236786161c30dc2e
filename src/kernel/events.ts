/**
 * What the kernel is told and what it asks for, as plain data: both can be recorded, compared and replayed.
 *
 * The kernel never calls the shell. It is given one event with the time, and answers with actions; the bytes to be written
 * are asked for.
 */
import type { ErrorObject } from '../wire/jsonrpc.ts'
import type { Reason } from './faults.ts'
import type { Observed } from './observation.ts'
import type { BusMethod, Identity, Rights } from './rights.ts'
import type { BusSpec, ClientId, Door, PoolId, Principal, WorkerId } from './vocabulary.ts'

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
}

/** Why a credential proves nothing. */
export interface Refusal {
  readonly reason: Reason
  readonly detail?: Readonly<Record<string, unknown>>
}

/** The bytes that were received are lent: they lie in memory that is filled again as soon as they are applied. */
/** What a source of workers tells of them; the kernel shows it and decides nothing by it. */
export type Facts = Readonly<Record<string, unknown>>

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
      /** An internal client's: the worker that shall have its message, if it is ready. */
      readonly prefer?: WorkerId
      /** An internal client's: the connection for whose principal it is (contract 9.22). */
      readonly behalfOf?: ClientId
    }
  | { readonly type: 'client-received'; readonly client: ClientId; readonly bytes: Buffer }
  /** What a credential of the client proves, or why nothing. */
  | ({ readonly type: 'client-judged'; readonly client: ClientId } & (
      | { readonly identity: Identity }
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
      /** Of the request that a final reply answers. */
      readonly id?: string | number
      readonly source?: WorkerGeneration
    }
  /** A call that its client has cancelled is over: there will be no reply. */
  | { readonly type: 'call-cancelled'; readonly client: ClientId; readonly id: string | number }
  | ({ readonly type: 'worker-reply'; readonly bytes: Buffer; readonly source?: WorkerGeneration } & WorkerGeneration)
  | { readonly type: 'client-wrote'; readonly client: ClientId; readonly pendingBytes: number }
  /** Its source has it: it can be spoken to. `facts` are the source's own (a pid); they are only shown. */
  | ({ readonly type: 'worker-opened'; readonly facts?: Facts } & WorkerGeneration)
  | ({ readonly type: 'worker-failed'; readonly why: string; readonly isFinal?: boolean } & WorkerGeneration)
  | ({ readonly type: 'worker-received'; readonly bytes: Buffer } & WorkerGeneration)
  /** Its stdout has ended, or its stdin is broken. */
  | ({ readonly type: 'worker-silent'; readonly pipe: 'stdin' | 'stdout' } & WorkerGeneration)
  /** `isClean`: it ended as it was meant to; `how`, in the words of its source: of a process the exit code and the signal. */
  | ({ readonly type: 'worker-ended'; readonly isClean: boolean; readonly how: Facts } & WorkerGeneration)
  | ({ readonly type: 'worker-wrote'; readonly pendingBytes: number } & WorkerGeneration)
  | { readonly type: 'tick' }
  | { readonly type: 'reload'; readonly spec: BusSpec }
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
    } & WorkerGeneration)
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
  /** The client wants no answer to its call any more; if it is one, `call-cancelled` follows. */
  | { readonly do: 'cancel-call'; readonly from: CallerId; readonly id: string | number }
  /** Nobody waits for the answers to its calls any more. */
  | { readonly do: 'caller-gone'; readonly from: CallerId }
  /** The drain is over: open calls are to be answered now. */
  | { readonly do: 'fail-calls' }
  /** The message of an internal client is on its way to that worker. */
  | ({ readonly do: 'routed'; readonly client: ClientId } & WorkerGeneration)
  /** The bus itself refuses or fails the request of an internal client. */
  | { readonly do: 'exchange-failed'; readonly client: ClientId; readonly error: ErrorObject }
  /** Something has happened in a pool whose traffic is traced. */
  | { readonly do: 'observed'; readonly what: Observed }
  /** A worker of the pool says that it offers something else now. */
  | { readonly do: 'list-changed'; readonly pool: PoolId }
  /** All workers and clients are gone: the program may exit. */
  | { readonly do: 'finished' }
