/**
 * What a router must know of a protocol, as data: one row per method that is not routed like any other.
 *
 * A dialect is a table that the kernel reads; it has no code. Whatever is not in a row goes the common way: by session,
 * else by the bond between client and worker.
 */
import type { Field } from '../wire/fields.ts'

/** What a client's message does beyond being sent to its worker. */
export interface ClientRow {
  /** The handshake: every client's own reaches the worker, or one per worker answers for all. */
  readonly opens?: 'each' | 'once'
  /** Told by the bus already; not sent on where the handshake is the bus's. */
  readonly confirms?: true
  /** What the answer, or the request itself, does to the session it names. */
  readonly session?: 'announced' | 'claimed' | 'ended'
  /** Not every worker knows it; on an addressed bus the session of one that does not ends all the same. */
  readonly isOptional?: true
  /** The field holds the id of a request of this client; without such a request the message is for nothing. */
  readonly cancels?: Field
  /** Nothing is answered to what it cancels: the request is owed nothing from then on. */
  readonly isFinal?: true
  /** The field holds the token of a question put to this client. */
  readonly answersToken?: Field
  /** Answered by the bus itself. */
  readonly local?: 'pong' | 'level' | 'subscribe' | 'unsubscribe'
  /** A request that runs until somebody ends it. */
  readonly isLongLived?: true
  /** The field names a task, which belongs to whoever started it. */
  readonly task?: Field
  /** Its answer comes when the task is over, or ends it. */
  readonly endsTask?: true
  /** The answer lists sessions; those of others are taken out. */
  readonly listsSessions?: true
  /** Means nothing, or too much, when several clients share the worker. */
  readonly unlessShared?: true
  /** The method is not in this dialect: refused at once, because servers may stay silent. */
  readonly isUnknown?: true
  /** The request is a turn: when its client goes, the session is told to cancel. */
  readonly isTurn?: true
}

/** How the client is found for whom a worker's message is meant; tried in order. */
export type Address =
  | 'session'
  | 'request'
  | 'question'
  | 'token'
  | 'task'
  | 'elicitation'
  | 'server'
  | 'subscription'
  | 'subscribers'
  | 'log'
  | 'everyone'
  | 'sole'

export interface WorkerRow {
  readonly to: readonly Address[]
  /** Answered by the bus itself. */
  readonly local?: 'pong'
  /** What the worker is answered when nobody can be asked any more; left out: an error. */
  readonly answerWhenGone?: string
  /** The message tells the state of a task. */
  readonly tellsTask?: true
  /** What it names is over: a question is not answered any more, a request owed nothing more. */
  readonly isFinal?: true
  /** The message may name a session that belongs to the same client from now on. */
  readonly adopts?: Field
}

export interface Dialect {
  readonly name: 'acp' | 'mcp-legacy' | 'mcp-modern'
  readonly fromClient: Readonly<Record<string, ClientRow>>
  readonly fromWorker: Readonly<Record<string, WorkerRow>>
  readonly otherFromWorker: WorkerRow
  /** Top-level fields that its workers do not know (contract 4.2.3). */
  readonly cuts: readonly Field[]
  /** Where a call may name a session. */
  readonly sessionFields: readonly Field[]
  /** Sessions are recorded only from answers. */
  readonly hasSessions: boolean
  /** Where a request names the token of its progress; absent: the protocol has none. */
  readonly progressToken?: Field
  /** The notification that ends a request, with the field that names it. */
  readonly cancel?: { readonly method: string; readonly key: string }
  /** What ends a turn, and a session, for a client that is gone. */
  readonly farewell?: { readonly cancelTurn: string; readonly closeSession: string }
  /** How the bus says for all clients of a worker what each says for itself. */
  readonly words?: Readonly<Record<'initialized' | 'setLevel' | 'subscribe' | 'unsubscribe', string>>
  /** The revisions of a handshake that the bus does itself, oldest first. */
  readonly revisions?: readonly string[]
  /** Those of them in which messages may come in one array, and are answered in one. */
  readonly batchRevisions?: readonly string[]
}

export function hasBatches({ batchRevisions }: Dialect, revision: string | undefined): boolean {
  return revision !== undefined && batchRevisions?.includes(revision) === true
}

/** The dialects of a bus, found by what a client's first message shows. */
export interface Dialects {
  readonly acp: Dialect
  readonly mcpLegacy: Dialect
  readonly mcpModern: Dialect
}
