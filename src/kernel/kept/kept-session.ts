/**
 * A session that may outlive its clients: whose it is, who takes part, what was said, what is asked and under way
 * (contract 12). State only, small while nothing happens.
 *
 * A participant has the session by new, load, resume or attach; the driver is the one that last did so or prompted. An
 * observer only reads. The session lives while it has rows at a worker; else it is what is known of one that has ended.
 */
import type { Envelope } from '../../wire/envelope.ts'
import type { WorkerRow } from '../dialect-table.ts'
import type { Dialect } from '../dialects.ts'
import type { JournalKey } from '../events.ts'
import type { Question, Request } from '../owed.ts'
import type { Client, Worker } from '../peers.ts'
import type { Session } from '../sessions.ts'
import type { Timer } from '../timers.ts'
import type { Keeping, PoolId, Principal, SessionId } from '../vocabulary.ts'
import type { WaitingLine } from '../waiting.ts'
import { Journal } from './journal.ts'
import type { Seat } from './seat.ts'

/** A prompt that is not told of yet, part by part; its request goes to the agent first. */
export interface Unsaid {
  readonly request: Request
  readonly lines: readonly Buffer[]
}

/** A turn under way: the requests whose answers end it. */
export interface Turn {
  /** Who has begun it; undefined: it has gone. */
  client: Client | undefined
  readonly requests: Set<Request>
  /** What its person said, until the agent's first words show that the agent does not repeat it. */
  unsaid: readonly Unsaid[]
  /** Its prompt is answered at once; what ends it is said in the session. */
  isAcknowledged: boolean
  /** The agent has said that it is at work, and how it ended, before it acknowledged the prompt. */
  hasRun: boolean
  ending: Readonly<Record<string, unknown>> | undefined
}

/** What the agent asks, from its line to the answer, whoever is asked. */
export interface Asked {
  readonly kept: KeptSession
  /** The number under which it was told of in the session, and when. */
  readonly seq: number
  readonly sinceMs: number
  readonly line: Envelope
  readonly row: WorkerRow
  readonly worker: Worker
  /** As it was put to a client; undefined: it waits for one. */
  question: Question | undefined
  timer: Timer | undefined
}

/** A line that an agent has told again, with its newline. */
export interface Replayed {
  readonly kind: string | undefined
  readonly bytes: Buffer
}

const NONE: never[] = []
const NO_TERMINALS: ReadonlyMap<string, Client> = new Map()

export type KeptState = 'attached' | 'detached' | 'stored' | 'lost'

export interface KeptIdentity {
  readonly id: SessionId
  readonly pool: PoolId
  readonly principal: Principal
}

export class KeptSession implements KeptIdentity {
  readonly id: SessionId
  readonly pool: PoolId
  readonly principal: Principal
  readonly key: JournalKey
  /** Sessions of one key come one after the other: what is said of an earlier one does not mean this. */
  readonly life: number
  readonly journal = new Journal()
  keeping: Keeping | undefined
  dialect: Dialect | undefined
  /** Its row at the worker, and those of its children; none: it has ended. */
  rows: readonly Session[] = NONE
  /** All its clients, and of them those that take part: the last one drives. */
  seats: readonly Seat[] = NONE
  participants: readonly Seat[] = NONE
  turn: Turn | undefined
  /** Prompts and loads that wait for something of this session. */
  queue: WaitingLine | undefined
  asked: readonly Asked[] = NONE
  /** Whose terminals the agent uses. */
  terminals = NO_TERMINALS
  /** The agent's answer to new or load, with what holds now. */
  answer: string | undefined
  cwd = ''
  title = ''
  createdAtMs = 0
  updatedAtMs = 0
  /** By the clock of the bus. */
  detachedAtMs = 0
  lastLineMs = 0
  timer: Timer | undefined
  /** Up to this number some participant was sent everything. */
  sentTo = 0
  /** The request by which the agent is asked to bring it back, and what it has said meanwhile. */
  claim: Request | undefined
  replayed: Replayed[] = NONE
  replayedBytes = 0
  /** The journal has begun it; what was there under its key before is gone. */
  isWritten = false
  /** It is known no more: what the journal has under its key is another's. */
  isForgotten = false
  /** What is known of it beside its lines is here; else the journal has it. */
  isRecalled = true
  /** The agent cannot bring it back, or has refused to. */
  isLost = false

  constructor({ id, pool, principal }: KeptIdentity, life: number) {
    this.id = id
    this.pool = pool
    this.principal = principal
    this.key = keyOf(principal, id)
    this.life = life
  }

  get isLive(): boolean {
    return this.rows.length > 0
  }

  get worker(): Worker | undefined {
    return this.rows[0]?.worker
  }

  get state(): KeptState {
    if (this.isLive) return this.participants.length > 0 ? 'attached' : 'detached'
    return this.isLost ? 'lost' : 'stored'
  }

  get isDetached(): boolean {
    return this.isLive && this.participants.length === 0
  }

  /** Nothing is under way in it. */
  get isIdle(): boolean {
    return this.turn === undefined
  }

  get turnState(): 'idle' | 'running' | 'waiting' {
    if (this.turn === undefined) return 'idle'
    return this.asked.length > 0 ? 'waiting' : 'running'
  }

  /** Who is asked, and for whom the agent waits. */
  get driver(): Seat | undefined {
    return this.participants.findLast((seat) => seat.client.state === 'open' && seat.isHere)
  }

  seatOf(client: Client): Seat | undefined {
    return this.seats.find((seat) => seat.client === client)
  }

  isParticipant(client: Client): boolean {
    return this.participants.some((seat) => seat.client === client)
  }

  noteTerminal(terminal: string, client: Client, most: number): void {
    const terminals = new Map(this.terminals).set(terminal, client)
    for (const oldest of terminals.keys()) if (terminals.size > most) terminals.delete(oldest)
    this.terminals = terminals
  }
}

/** Ids are chosen by agents, and mean one session for one principal (contract 12.7). */
export function keyOf(principal: Principal, id: SessionId): JournalKey {
  return JSON.stringify([principal, id])
}
