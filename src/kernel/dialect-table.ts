/**
 * What a router must know of a protocol, as data: one row per method that is not routed like any other.
 *
 * A dialect is a table that the kernel reads; it has no code. Whatever is not in a row goes the common way: by session,
 * else by the bond between client and worker.
 */
import type { ValueType } from '../wire/envelope.ts'
import type { Field } from '../wire/fields.ts'

/** What a client's message does beyond being sent to its worker. */
export interface ClientRow {
  /** The handshake: every client's own reaches the worker, or one per worker answers for all. */
  readonly opens?: 'each' | 'once'
  /** It asks which dialect the worker speaks; who gets no for an answer goes on with another. */
  readonly asksForDialect?: true
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
  /** What was said in the session precedes the answer. */
  readonly replays?: true
  /** The session is deleted, with all that was said. */
  readonly deletes?: true
  /** It stops the turn of the session it names. */
  readonly stopsTurn?: true
  /** It, or its answer, says what holds in the session from now on. */
  readonly sets?: 'mode' | 'options'
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
  | 'holder'

export interface WorkerRow {
  readonly to: readonly Address[]
  /** Who has not offered this in its handshake is not asked. */
  readonly needs?: string
  /** Said once per process: later clients of the worker are told it too. */
  readonly isRemembered?: true
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
  /** What is said in a session: kept for those who come later. */
  readonly isUpdate?: true
  /** Where a client says in its handshake that it can be asked this; left out: it always can. */
  readonly needsAt?: readonly string[]
  /** The parameter that says in which of the ways that are told there it asks. */
  readonly needsWay?: string
  /** Its answer names a terminal of the client, or the message itself does. */
  readonly terminal?: 'made' | 'named'
}

/** How a session of the protocol can outlive its clients (contract 12). */
export interface KeepingWords {
  /** The notification that tells what is said in a session, and the request that lists sessions. */
  readonly update: string
  readonly list: string
  /** Where a request lists the parts of a prompt, and where the mode that is wanted is named. */
  readonly promptKey: string
  readonly modeKey: string
  /** Kinds of updates: what a person said, what the agent said, what the session is called. */
  readonly personSaid: string
  /** Those by which an agent repeats what a person said. */
  readonly personRepeated: readonly string[]
  readonly agentSaid: string
  readonly sessionIs: string
  /** The one that tells a mode, and the one that tells options. */
  readonly modeIs: string
  readonly optionsAre: string
  /** Those of which the newest holds, and the one that is of no use later. */
  readonly states: readonly string[]
  readonly fleeting: string
  /** The one that says that a turn is over, where its answer does not. */
  readonly turnIs: { readonly kind: string; readonly idle: string }
  /** The result of a prompt that was stopped, as JSON. */
  readonly cancelled: string
  /** Where a welcome says what a worker can do; every version has its own place. */
  readonly abilities: Readonly<Record<'load' | 'resume' | 'list', readonly (readonly string[])[]>>
  /** What is added to a welcome of the version below `singleHandshakeFrom` (contract 12.2). */
  readonly adds: readonly { readonly path: readonly string[]; readonly value: string; readonly replaces?: true }[]
  /** Where a client says in its handshake what it can do, and its name. */
  readonly offersAt: readonly string[]
  readonly namesAt: readonly string[]
  /** A part of an update that only the client of that terminal can show, and what others get instead, as JSON. */
  readonly terminalPart: { readonly type: string; readonly key: string; readonly instead: string }
  /** The member of a claim that asks for everything from this point on. */
  readonly replayFrom: { readonly key: string; readonly type: string }
}

/** What shows that a message is of a dialect: its method, or a field, or both. */
export interface Sign {
  readonly method?: string
  readonly field?: Field
  readonly type?: ValueType
}

/** The handshake that the bus does itself, once for all clients of a worker. */
export interface Greeting {
  readonly method: string
  /** Its params; what the clients can do is added under `offers`. */
  readonly params: Readonly<Record<string, unknown>>
  readonly offers: string
  /** Told when the worker has answered. */
  readonly confirms: string
}

/** What a worker is asked to find out whether it speaks the dialect. */
export interface Probe {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
  /** The member without which a result is of somebody who answers everything. */
  readonly proof: string
  /** Errors that only such a worker knows. */
  readonly codes: readonly number[]
}

export interface DialectTable {
  /** As the configuration names it. */
  readonly protocol: string
  readonly era?: 'legacy' | 'modern'
  readonly signs: readonly Sign[]
  readonly greeting?: Greeting
  readonly probe?: Probe
  /** The version from which on a worker takes one handshake, answers prompts at once and closes sessions without saying so. */
  readonly singleHandshakeFrom?: number
  readonly fromClient: Readonly<Record<string, ClientRow>>
  readonly fromWorker: Readonly<Record<string, WorkerRow>>
  readonly otherFromWorker: WorkerRow
  /** Top-level fields that its workers do not know (contract 4.2.3). */
  readonly cuts: readonly Field[]
  /** Where a call may name a session. */
  readonly sessionFields: readonly Field[]
  /** Sessions are recorded only from answers. */
  readonly hasSessions: boolean
  /** Where a worker's welcome says that it can close sessions. */
  readonly closesAt?: readonly (readonly string[])[]
  /** Servers that a client itself offers to a session: where they are listed, and their type. */
  readonly lends?: { readonly list: string; readonly type: string }
  /** Where a request names the token of its progress; absent: the protocol has none. */
  readonly progressToken?: Field
  /** The notification that ends a request, with the field that names it. */
  readonly cancel?: { readonly method: string; readonly key: string }
  /** What ends a turn, and a session, for a client that is gone. */
  readonly departure?: { readonly cancelTurn: string; readonly closeSession: string }
  /** Left out: its sessions end with their clients. */
  readonly keeping?: KeepingWords
  /** How the bus says for all clients of a worker what each says for itself. */
  readonly words?: Readonly<Record<'setLevel' | 'subscribe' | 'unsubscribe', string>>
  /** Severities of log lines, least first. */
  readonly levels?: readonly string[]
  /** A log line is for whoever asked for some, request by request. */
  readonly asksForLogs?: true
  /** What calls a tool, and what asks which there are. */
  readonly tools?: { readonly call: string; readonly list: string }
  /** The states in which a task is over. */
  readonly taskEnds?: readonly string[]
  /** The revisions of a handshake that the bus does itself, oldest first. */
  readonly revisions?: readonly string[]
  /** Those of them in which messages may come in one array, and are answered in one. */
  readonly batchRevisions?: readonly string[]
}

export function hasBatches({ batchRevisions }: DialectTable, revision: string | undefined): boolean {
  return revision !== undefined && batchRevisions?.includes(revision) === true
}
