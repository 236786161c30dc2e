/**
 * A client's message under way to a worker, and what is known of it so far; state only.
 *
 * The line is an argument: whoever keeps a message beyond the event that brought it keeps a copy (`waiting.ts`).
 */
import { type Envelope, SHAPE } from '../wire/envelope.ts'
import type { ClientRow } from './dialect-table.ts'
import type { Dialect } from './dialects.ts'
import type { Introduction } from './introductions.ts'
import type { Request } from './owed.ts'
import type { Client, Worker } from './peers.ts'
import type { Pool } from './pools.ts'
import type { Timer } from './timers.ts'
import type { SessionId } from './vocabulary.ts'
import type { WaitingLine } from './waiting.ts'

const NONE: readonly Pool[] = []

export class Route {
  declare readonly client: Client
  declare line: Envelope
  /** What is owed for it; undefined: it is a notification. */
  declare readonly request: Request | undefined
  /** Set as soon as it is known, before anything else looks at the message. */
  declare pool: Pool
  declare dialect: Dialect | undefined
  /** What the dialect says of its method. */
  declare row: ClientRow | undefined
  /** The session it names; for plain clients at the top, and another one in params. */
  declare session: SessionId | undefined
  declare innerSession: SessionId | undefined
  /** What its client has said to the pool in whose place this one serves. */
  declare introducedBy: Introduction | undefined
  /** The pools in whose place this one serves. */
  declare passed: readonly Pool[]
  /** Its place is known, or was named by its client. */
  declare isLocated: boolean
  /** Its client has named a pool, of which this is a place. */
  declare isPlaced: boolean
  /** The pools in which the session may live that the bus is asked about (contract 14.6). */
  declare homes: readonly Pool[] | undefined
  /** The worker that it was promised while it waited, and its process. */
  declare worker: Worker | undefined
  declare generation: number
  /** Where it waits, with how many bytes, and until when. */
  declare place: WaitingLine | undefined
  declare bytes: number
  /** Requests from this serial on came after it: a cancel that has waited does not mean them. */
  declare cameBefore: number
  declare timer: Timer | undefined

  constructor(client: Client, line: Envelope, request: Request | undefined) {
    this.client = client
    this.line = line
    this.request = request
    this.pool = undefined as unknown as Pool
    this.session = undefined
    this.innerSession = undefined
  }

  get isRequest(): boolean {
    return this.line.shape === SHAPE.request
  }

  /** From now on only this process will do. */
  promise(worker: Worker): void {
    this.worker = worker
    this.generation = worker.generation
  }

  /** The worker it was promised, if that is still the same process. */
  get promised(): Worker | undefined {
    const { worker } = this
    return worker !== undefined && worker.generation === this.generation && worker.isAlive ? worker : undefined
  }
}

/** Most messages never need these: they cost nothing until they are set. */
Object.assign(Route.prototype, {
  dialect: undefined,
  row: undefined,
  introducedBy: undefined,
  passed: NONE,
  isLocated: false,
  isPlaced: false,
  homes: undefined,
  worker: undefined,
  generation: 0,
  place: undefined,
  bytes: 0,
  cameBefore: Number.POSITIVE_INFINITY,
  timer: undefined,
})
