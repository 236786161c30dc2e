/**
 * All that the web doors know of the rest of the bus, as types: who somebody is, a client of the kernel, and a few facts.
 */
import type { PeerCertificate } from 'node:tls'
import type { Reason } from '../kernel/faults.ts'
import type { Identity, Rights } from '../kernel/rights.ts'
import type { Via } from '../kernel/via.ts'
import type { ClientId, PoolId } from '../kernel/vocabulary.ts'
import type { MessageClient, MessageEntrance, MessageListener } from '../transports/messages.ts'

export type { MessageClient, MessageListener } from '../transports/messages.ts'

/** What a request shows of who has sent it. */
export interface Shown {
  readonly token: string | undefined
  readonly certificate: PeerCertificate | undefined
  /** The address of the listener, as in `Listener.address`, and who is at the other end. */
  readonly listener: string
  readonly peer: string
  /** The path of the door that was asked for, such as `/mcp/files`. */
  readonly path: string
  readonly publicUrl: string | undefined
}

/** Somebody who may come in; `proof` is for the bus, which looks after how long it holds. */
export interface Admitted {
  readonly identity: Identity
  readonly proof: unknown
  /** The buses through which its requests come (contract 11.6). */
  readonly via?: Via | undefined
}

/** Somebody who may not: the head of the answer, and its error. */
export interface Rebuffed {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly reason: Reason
  readonly detail?: Readonly<Record<string, unknown>>
}

/** `undefined`: the connection is closed without a word (contract 9.25). */
export type Judgement = Admitted | Rebuffed | undefined

export interface PoolFacts {
  readonly id: PoolId
  readonly sharing: 'shared' | 'isolated' | 'lease'
}

/** What is counted at the doors (contract 10.18). */
export interface WebTally {
  /** A refusal of the door's own; `reason` is a word of ours. */
  refused(reason: string): void
  streamBegan(): void
  streamEnded(): void
}

export interface WebPort extends WebTally {
  /** Settles when it is known; slowed where an address has shown too much that does not hold. */
  judge(shown: Shown): Promise<Judgement>
  /**
   * What goes with a refusal at this path, if there is a way to be somebody who may; `mayDo` left out: with one of somebody whose
   * credential holds no more (contract 9.14).
   */
  challenge(
    at: Pick<Shown, 'path' | 'publicUrl'>,
    mayDo?: (rights: Rights) => boolean,
  ): Readonly<Record<string, string>>
  /** A document for the public, of which paths there are doors (contract 9.14); undefined: there is none. */
  document(path: string, publicUrl: string | undefined): string | undefined
  open(entrance: MessageEntrance, admitted: Admitted, peer: string, listener: MessageListener): MessageClient
  /** A client that lives longer than a request was used with this credential: from now on it lives as long as that, and has come that way too. */
  renew(client: ClientId, admitted: Admitted): void
  /** Whether the client may still use this pool: its rights may have become less (contract 9.10). */
  mayUse(client: ClientId, pool: PoolId): boolean
  pool(id: PoolId): PoolFacts | undefined
  /** The pool of whoever names none: the only one, or the default, among those it may use. */
  poolOf(identity: Identity): PoolId | undefined
  /** Whether this pool, or any, can take a message now. */
  isUsable(pool?: PoolId): boolean
  /** By which other buses know this one (contract 11.6). */
  readonly busId: string
  /** The longest message. */
  readonly maxMessageBytes: number
  /** Callers are told apart (contract 9). */
  readonly hasAccess: boolean
  /** The bus takes nothing new. */
  readonly isShuttingDown: boolean
  /** The state of the bus as Prometheus text. */
  metrics(): string
  /** The door itself has refused somebody who is known what it may not: that is told whoever reads of it. */
  denied(admitted: Admitted, peer: string, what: { readonly pool?: PoolId; readonly method?: string }): void
  log(level: 'debug' | 'info' | 'warn', text: string, about?: Readonly<Record<string, unknown>>): void
}
