/**
 * Decides where a line goes: from a client to a worker, and back (contract 6).
 *
 * It reads the envelope, sorts out what cannot be routed, and hands the rest to `inbound.ts` or `outbound.ts`. Invariant:
 * a line reaches the peer it is meant for or nobody.
 */
import { BAD_PARAMS_SESSION, Envelope, SHAPE, type Shape } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { isSpace } from '../wire/json-text.ts'
import { Announcements } from './announcements.ts'
import { Assignment } from './assignment.ts'
import { Batches, messagesIn, unpack } from './batches.ts'
import { Calls } from './calls.ts'
import { Farewells } from './farewells.ts'
import { Handshakes } from './handshakes.ts'
import { Inbound } from './inbound.ts'
import { Ledger } from './ledger.ts'
import { Links } from './links.ts'
import { Outbound } from './outbound.ts'
import type { Client, Peer, Worker } from './peers.ts'
import type { Pool } from './pools.ts'
import { SharedDuties } from './shared-duties.ts'
import { type Edit, replace } from './splice.ts'
import { Spoken } from './spoken.ts'
import { about } from './supervisor.ts'
import type { Switchboard } from './switchboard.ts'
import { WaitingRoom } from './waiting-room.ts'

const BUS_PREFIX = Buffer.from('"bus::')
const BACKSLASH = 0x5c
const OPEN_OBJECT = 0x7b

export class Router {
  readonly #board: Switchboard
  readonly #calls: Calls
  readonly #inbound: Inbound
  readonly #duties: SharedDuties
  readonly #outbound: Outbound
  readonly #waitingRoom: WaitingRoom
  readonly #handshakes: Handshakes
  readonly #assignment: Assignment
  readonly farewells: Farewells

  constructor(board: Switchboard) {
    const route = (client: Client, isRequest: boolean): void => this.#inbound.route(client, isRequest)
    this.#board = board
    this.#calls = new Calls(board)
    const links = new Links()
    const ledger = new Ledger(board, links)
    this.#duties = new SharedDuties(board, links)
    this.#inbound = new Inbound(board, links, ledger, new Spoken(board, links, ledger, this.#duties))
    this.#waitingRoom = new WaitingRoom(board, route)
    this.#assignment = new Assignment(board, this.#waitingRoom, route)
    this.#handshakes = new Handshakes(board, route)
    links.assignment = this.#assignment
    links.handshakes = this.#handshakes
    this.#outbound = new Outbound(board, new Announcements(board), this.#assignment)
    board.core.requests.onDisowned = (request) => this.#outbound.abandon(request)
    this.farewells = new Farewells(board, this.#waitingRoom, this.#assignment, this.#handshakes)
  }

  /** A line has come from `peer`; its newline stands at `end`. */
  takeLine(peer: Peer, bytes: Buffer, start: number, end: number): void {
    // A message begins with a brace: only what does not may be blank.
    if (bytes[start] !== OPEN_OBJECT && isBlank(bytes, start, end)) return
    const shape = this.#board.envelope.read(bytes, start, end)
    if (peer.kind === 'client') this.#fromClient(peer, shape)
    else this.#fromWorker(peer, shape)
  }

  /** The line was longer than allowed; what was seen of it may tell its id (contract 8.2). */
  overflowed(peer: Peer): void {
    if (peer.kind === 'worker') {
      const why = 'it wrote a line longer than max_input_buffer'
      return this.#board.supervisor.endBroken(peer, 'worker_exited', { why })
    }
    const problem = `a line may have ${peer.splitter.maxLineBytes} bytes`
    this.#board.closeFor(peer, 'message_too_large', idSeenIn(peer.splitter.head), problem)
  }

  // ---- workers come and go ----

  workerSpawned(worker: Worker): void {
    if (this.#handshakes.greetsAtStart(worker.pool)) this.#handshakes.greet(worker)
    else this.#board.supervisor.step(worker, 'started')
  }

  workerOpened(worker: Worker): void {
    const { pool } = worker
    this.#duties.workerOpened(worker)
    this.#waitingRoom.serve(pool)
    if (pool.spec.sharing === 'lease') this.#assignment.grant(pool)
  }

  poolEmptied(pool: Pool): void {
    this.#waitingRoom.dismiss(pool)
    this.#assignment.dismiss(pool)
  }

  workerLeft(pool: Pool): void {
    this.#assignment.keepSpares(pool)
  }

  // ---- from a client ----

  #fromClient(client: Client, shape: Shape): void {
    const { core, envelope } = this.#board
    if (shape === SHAPE.bad && client.hasBatches && envelope.isArray) return this.#takeBatch(client)
    core.totals.linesFromClients++
    if (shape === SHAPE.notJson) return this.#board.closeFor(client, 'not_json', 'null')
    if (shape === SHAPE.bad)
      return this.#board.closeFor(client, 'bad_envelope', envelope.idSpelling(), envelope.problem)
    const isFirst = !client.hasSpoken
    client.hasSpoken = true
    if (shape === SHAPE.response) return this.#takeAnswer(client)
    if (envelope.hasBadParamsSession)
      return this.#board.closeFor(client, 'bad_envelope', envelope.idSpelling(), BAD_PARAMS_SESSION)
    const isRequest = shape === SHAPE.request
    if (client.isInternal) return this.#inbound.route(client, isRequest)
    if (this.#isForBus()) return this.#takeBusMethod(client, isRequest, isFirst)
    if (!isRequest && client.isCaller && this.#calls.takeCancel(client)) return
    if (this.#calls.isAgentNamed()) return this.#calls.takeFromClient(client, isRequest)
    this.#inbound.route(client, isRequest)
  }

  /** Several messages in one array: all of them are sound, or none is taken. Their answers leave in one array too. */
  #takeBatch(client: Client): void {
    const { envelope } = this.#board
    const { lines, keys, problem } = unpack(envelope)
    if (problem !== undefined) return this.#board.closeFor(client, 'bad_envelope', 'null', problem)
    if (keys.length > 0) {
      client.batches ??= new Batches()
      client.batches.open(keys)
    }
    for (const line of lines) {
      if (client.state !== 'open') return
      this.#fromClient(client, envelope.read(line, 0, line.length - 1))
    }
  }

  #isForBus(): boolean {
    const { envelope } = this.#board
    const { bytes } = envelope
    const at = envelope.startOf(FIELD.method)
    for (let i = 0; i < BUS_PREFIX.length; i++) {
      if (bytes[at + i] === BUS_PREFIX[i]) continue
      return bytes[at + i] === BACKSLASH && envelope.text(FIELD.method)!.startsWith('bus::')
    }
    return true
  }

  /** The bus's own methods; `bus::open` chooses the pool of a connection (contract 6.3). */
  #takeBusMethod(client: Client, isRequest: boolean, isFirst: boolean): void {
    const { core, envelope } = this.#board
    const method = envelope.text(FIELD.method)!
    if (method !== 'bus::open' && this.#calls.isOn) return this.#calls.takeFromClient(client, isRequest)
    if (method !== 'bus::open' || !isFirst) return this.#board.refuse(client, isRequest, 'unknown_method', { method })
    const pool: unknown = JSON.parse(envelope.bytes.utf8Slice(envelope.start, envelope.end))?.params?.pool
    if (typeof pool !== 'string' || !core.pools.has(pool)) {
      this.#board.fail(client, envelope.idSpelling(), 'unknown_pool', { pool, pools: this.#inbound.poolChoice.names() })
      return this.#board.host.closeClient(client)
    }
    client.pool = pool
    if (isRequest) this.#board.answer(client, envelope.idSpelling(), JSON.stringify({ pool }))
  }

  /** A client answers what a worker asked it. */
  #takeAnswer(client: Client): void {
    const { core, envelope } = this.#board
    const key = envelope.key(FIELD.id)
    if (key === undefined) return core.drop('null_id_error')
    const question = client.questions.get(key)
    if (question === undefined) return core.drop(client.moot.delete(key) ? 'late_answer' : 'unasked_answer')
    core.requests.settle(question)
    this.#board.observation.settled(question, true)
    const { worker } = question
    if (worker.generation !== question.generation || !worker.isAlive) return core.drop('late_answer')
    const edits: Edit[] = worker.tongue === undefined ? [] : this.#board.cuts(worker.tongue.dialect)
    if (question.isAliased) edits.push(replace(envelope, FIELD.id, question.spelling))
    this.#board.forward(worker, edits)
  }

  // ---- from a worker ----

  #fromWorker(worker: Worker, shape: Shape): void {
    const { envelope } = this.#board
    if (shape !== SHAPE.bad || !worker.hasBatches || !envelope.isArray) return this.#takeFromWorker(worker, shape)
    for (const line of messagesIn(envelope)) {
      if (worker.isDeaf) return
      this.#takeFromWorker(worker, envelope.read(line, 0, line.length - 1))
    }
  }

  #takeFromWorker(worker: Worker, shape: Shape): void {
    this.#board.core.totals.linesFromWorkers++
    if (shape === SHAPE.response) return this.#outbound.deliverAnswer(worker)
    if (shape === SHAPE.request || shape === SHAPE.notification) {
      const isRequest = shape === SHAPE.request
      if (this.#calls.isOn && this.#calls.isNamed()) return this.#calls.takeFromWorker(worker)
      return this.#outbound.deliverCall(worker, isRequest)
    }
    if (shape === SHAPE.bad && this.#calls.isLoose() && this.#outbound.deliverLoose(worker)) return
    this.#dropJunk(worker, shape)
  }

  #dropJunk(worker: Worker, shape: Shape): void {
    const { core, envelope } = this.#board
    const isBad = shape === SHAPE.bad
    core.drop(isBad ? 'worker_bad_envelope' : 'junk_line')
    core.log(
      'warn',
      `worker wrote a line that was dropped: ${isBad ? envelope.problem : 'it is not JSON'}`,
      about(worker),
    )
    const head = envelope.bytes.toString('latin1', envelope.start, Math.min(envelope.end, envelope.start + 80))
    core.log('debug', 'first bytes of the dropped line', { ...about(worker), head })
  }

  /** Unanswered requests of clients that are still there. */
  get owedCount(): number {
    let owed = 0
    for (const client of this.#board.core.everyClient()) owed += client.pendingCount
    return owed
  }
}

function isBlank(bytes: Buffer, start: number, end: number): boolean {
  let i = start
  while (i < end && isSpace(bytes[i]!)) i++
  return i === end
}

const idReader = new Envelope()
const MAX_HEAD_BYTES = 4_096
const LEADING_ID =
  /^\s*\{(?:\s*"(?!id")[^"\\]*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)\s*,)*?\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*[,}]/

/** Looks for a top-level id in the beginning of a line that is too long; what is not surely one is `null`. */
function idSeenIn(head: Buffer): string {
  const seen = LEADING_ID.exec(head.toString('latin1', 0, MAX_HEAD_BYTES))?.[1]
  if (seen === undefined) return 'null'
  // The line was never proved to be JSON: its id must be, since it goes back in a line of ours.
  const line = Buffer.from(`{"method":"","id":${seen}}`, 'latin1')
  return idReader.read(line, 0, line.length) === SHAPE.request ? idReader.idSpelling() : 'null'
}
