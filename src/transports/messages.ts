/**
 * What a door that carries messages (HTTP, WebSocket) asks of the bus, as types: a client of the kernel that is no connection of
 * lines (contract 3.2).
 *
 * Such a door makes one line of each message and takes lines back. It never holds up the bus: what it was given and has not
 * sent on yet, it counts.
 */
import type { Reason } from '../kernel/faults.ts'
import type { Identity } from '../kernel/rights.ts'
import type { Via } from '../kernel/via.ts'
import type { ClientId, PoolId, WorkerId } from '../kernel/vocabulary.ts'

/** Hears what the bus has for a client. Nothing it is told may make it throw. */
export interface MessageListener {
  /** Of what it was given, what has not left yet; while there is any, the bus keeps the rest in its bounded queue. */
  readonly unsentBytes: number
  /**
   * A message for the client: a line without its newline, to keep. `fault`: it is an answer of the bus's own, for this reason;
   * `refusal`: the same of a call to an agent.
   */
  received(line: Buffer, fault: Reason | undefined, refusal?: string): void
  /** A message of the client is on its way to that worker. */
  routed(worker: WorkerId): void
  /** What the client sends would wait: no more of it is to be read. */
  pause(): void
  resume(): void
  /** The bus has ended the client: `flush`, once what was received is delivered; `drop`, at once. */
  closed(how: 'flush' | 'drop'): void
}

/** A client of the bus, as its door has it. */
export interface MessageClient {
  readonly id: ClientId
  /** Hands over one message as a line without its newline. */
  send(line: Buffer): void
  /** Everything that was received has left. */
  drained(): void
  /** The client has gone; `isSettled`: it has all it wanted, so no worker is told of a cancel. */
  leave(isSettled?: boolean): void
}

/** Who comes, and for what. */
export interface MessageEntrance {
  readonly door: 'http' | 'websocket'
  readonly isLocal: boolean
  readonly identity: Identity
  readonly pool?: PoolId | undefined
  /** It comes with one message and goes with the answer: what it begins beyond that is its principal's. */
  readonly isBrief?: true
  /** It only looks on: in a session nobody is told of it. */
  readonly isQuiet?: true
  readonly via?: Via | undefined
  /** The worker that shall have its messages, if it is ready. */
  readonly prefer?: WorkerId | undefined
}
