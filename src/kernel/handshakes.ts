/**
 * The handshake of a protocol that has one per connection, done once per worker by the bus (contract 6.6, 6.7).
 *
 * Clients are answered from what the worker said, each with its own id and a revision it can speak. Errors are not kept.
 * Two workers of a pool never speak different eras: the pool remembers which one its command understands.
 */
import { FIELD } from '../wire/fields.ts'
import type { Bond } from './bonds.ts'
import { hasBatches } from './dialect.ts'
import { type Client, Gate, type Worker } from './peers.ts'
import type { Pool } from './pools.ts'
import type { Switchboard } from './switchboard.ts'
import { isDiscovery, type Tongue } from './tongue.ts'

/** Somebody who waits for the worker's welcome. */
interface Guest {
  readonly client: Client
  readonly idSpelling: string
  /** An `initialize`, the question for the era, or a request that only one era knows. */
  readonly wants: 'welcome' | 'era' | 'service'
  /** The revision the client asked for. */
  readonly version: string
  readonly line: Buffer
}

/** What a client says while a new worker has not answered its repeated `initialize`. */
interface Parked {
  readonly gate: Gate
  readonly lines: { readonly line: Buffer; readonly isRequest: boolean }[]
  bytes: number
}

const SILENCE_MS = 10_000

const PROBE_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** Some servers end when they are asked for their era; they are not asked for ever. */
const MAX_FATAL_PROBES = 2

/** Errors that only a server without a handshake knows (spec M3). */
const MODERN_CODES: ReadonlySet<unknown> = new Set([-32020, -32021, -32022])

export class Handshakes {
  readonly #board: Switchboard
  readonly #guests = new Map<Worker, Guest[]>()
  readonly #probed = new Set<Worker>()
  readonly #parked = new Map<Bond, Parked>()
  readonly #route: (client: Client, isRequest: boolean) => void

  constructor(board: Switchboard, route: (client: Client, isRequest: boolean) => void) {
    this.#board = board
    this.#route = route
  }

  /** Whether the workers of this pool are greeted before they take messages. */
  greetsAtStart({ spec, tongue }: Pool): boolean {
    if (spec.sharing === 'isolated' || spec.protocol === 'plain' || spec.protocol === 'acp') return false
    if (spec.era === 'modern' || tongue === this.#board.tongues.mcpModern) return false
    return spec.protocol === 'mcp' || tongue === this.#board.tongues.mcpLegacy
  }

  /** A worker of such a pool runs: it is ready when it has answered. */
  greet(worker: Worker): void {
    if (worker.pool.probesFirst) this.#probe(worker, () => this.#begin(worker))
    else this.#begin(worker)
  }

  /** Asks for the era; `otherwise` when the worker does not know the question, or says nothing. */
  #probe(worker: Worker, otherwise: () => void): void {
    const isCurrent = this.#watch(worker)
    this.#probed.add(worker)
    let isSettled = false
    const settle = (isModern: boolean): void => {
      if (isSettled || !isCurrent()) return
      isSettled = true
      this.#probed.delete(worker)
      if (isModern) this.#becomeModern(worker)
      else otherwise()
    }
    this.#board.ask(worker, 'server/discover', { _meta: PROBE_META }, (isResult) =>
      settle(isResult || MODERN_CODES.has(this.#board.envelope.key(FIELD.errorCode))),
    )
    this.#afterSilence(() => settle(false))
  }

  /** The worker has been asked something; tells whether it is still the same one, and still asked. */
  #watch(worker: Worker): () => boolean {
    const { generation } = worker
    worker.greeting = 'asked'
    return () => worker.generation === generation && worker.greeting === 'asked'
  }

  #afterSilence(then: () => void): void {
    const { core } = this.#board
    core.timers.set(core.nowMs + SILENCE_MS, then)
  }

  /** The client's `initialize` is at hand: it is answered now, or when the worker has spoken. */
  welcome(client: Client, worker: Worker): void {
    this.#receive(client, worker, 'welcome')
  }

  /** The client shows an era that nobody knows of this worker yet: the worker is asked first. */
  discover(client: Client, worker: Worker): void {
    this.#receive(client, worker, isDiscovery(this.#board.envelope) ? 'era' : 'service')
  }

  #receive(client: Client, worker: Worker, wants: Guest['wants']): void {
    const { envelope } = this.#board
    const version = envelope.text(FIELD.protocolVersion) ?? ''
    const guest: Guest = { client, idSpelling: envelope.idSpelling(), wants, version, line: this.#board.copyLine() }
    if (worker.greeting === 'done') return this.#answer(guest, worker)
    const guests = this.#guests.get(worker)
    if (guests === undefined) this.#guests.set(worker, [guest])
    else guests.push(guest)
    client.pendingCount++
    if (worker.greeting !== 'none') return
    // Who asks for the era can go on with either, and more clients know the older one.
    if (wants === 'service' && this.#mayBeModern(worker.pool)) this.#probe(worker, () => this.#begin(worker))
    else this.#begin(worker)
  }

  #begin(worker: Worker): void {
    const { tongues } = this.#board
    const isCurrent = this.#watch(worker)
    worker.tongue = tongues.mcpLegacy
    const params = {
      protocolVersion: tongues.mcpLegacy.dialect.revisions!.at(-1),
      capabilities: capabilitiesFor(worker.pool),
      clientInfo: { name: 'stdio-bus', version: '0.1.0' },
    }
    this.#board.ask(worker, 'initialize', params, (isResult) => {
      if (!isCurrent()) return
      if (isResult) this.#succeed(worker)
      else this.#fail(worker)
    })
    // Slow is not modern: only an answer to the question decides.
    this.#afterSilence(() => {
      if (isCurrent() && this.#mayBeModern(worker.pool)) this.#probe(worker, () => {})
    })
  }

  #succeed(worker: Worker): void {
    const { envelope, supervisor } = this.#board
    const result = Buffer.from(envelope.bytes.subarray(envelope.startOf(FIELD.result), envelope.endOf(FIELD.result)))
    worker.greeting = 'done'
    worker.welcome = { result, version: envelope.text(FIELD.resultProtocolVersion) ?? '' }
    worker.pool.tongue = this.#board.tongues.mcpLegacy
    worker.hasBatches = hasBatches(worker.pool.tongue.dialect, worker.welcome.version)
    this.#board.tell(worker, { jsonrpc: '2.0', method: this.#board.tongues.mcpLegacy.dialect.words!.initialized })
    for (const guest of this.#takeGuests(worker)) this.#answer(guest, worker)
    supervisor.step(worker, 'started')
  }

  /** The worker refused: whoever sent an `initialize` is told what it said; the others want to know whether it is modern. */
  #fail(worker: Worker): void {
    const { envelope } = this.#board
    const error = envelope.bytes.utf8Slice(envelope.startOf(FIELD.error), envelope.endOf(FIELD.error))
    const guests = this.#guests.get(worker) ?? []
    this.#guests.set(
      worker,
      guests.filter(({ wants }) => wants === 'welcome'),
    )
    for (const { client, idSpelling } of this.#takeGuests(worker)) {
      this.#board.flow.sendLine(client, Buffer.from(`{"jsonrpc":"2.0","id":${idSpelling},"error":${error}}\n`))
      if (client.state === 'half-closed') this.#board.host.maybeFinish(client)
    }
    const others = guests.filter(({ wants, client }) => wants !== 'welcome' && client.state !== 'closed')
    if (others.length > 0) this.#guests.set(worker, others)
    // It is of no use as it is: asking costs nothing, however often others ended over the question.
    if (this.#isEraOpen(worker.pool)) this.#probe(worker, () => this.#giveUp(worker))
    else this.#giveUp(worker)
  }

  /** It is of neither era. */
  #giveUp(worker: Worker): void {
    worker.greeting = 'none'
    worker.tongue = undefined
    for (const guest of this.#takeGuests(worker)) this.#turnAway(guest)
    if (worker.state !== 'starting') return
    this.#board.supervisor.endBroken(worker, 'worker_exited', { why: 'it refused the handshake' })
  }

  #isEraOpen({ spec, tongue }: Pool): boolean {
    return spec.era === 'auto' && tongue === undefined
  }

  #mayBeModern(pool: Pool): boolean {
    return this.#isEraOpen(pool) && pool.fatalProbes < MAX_FATAL_PROBES
  }

  #becomeModern(worker: Worker): void {
    const { tongues, supervisor } = this.#board
    worker.greeting = 'none'
    worker.tongue = tongues.mcpModern
    worker.pool.tongue = tongues.mcpModern
    supervisor.step(worker, 'started')
    for (const guest of this.#takeGuests(worker)) this.#again(guest)
  }

  /** The message is routed once more, now that the era is known. */
  #again({ client, line }: Guest): void {
    this.#board.envelope.read(line, 0, line.length - 1)
    this.#route(client, true)
  }

  /** A worker that ended in the middle of its greeting may be of the other era; its guests are told. */
  workerEnded(worker: Worker): void {
    const { pool } = worker
    const wasProbed = this.#probed.delete(worker)
    if (wasProbed && worker.greeting === 'asked') pool.fatalProbes++
    if (worker.greeting === 'asked') pool.probesFirst = !wasProbed && this.#mayBeModern(pool)
    // Its silence means nothing any more.
    worker.greeting = 'none'
    for (const { client, idSpelling } of this.#takeGuests(worker)) {
      this.#board.fail(client, idSpelling, 'worker_exited', { pool: pool.spec.id })
    }
    for (const bond of [...this.#parked.keys()]) if (bond.worker === worker) this.#refuseParked(bond, 'worker_exited')
  }

  /**
   * Contract 6.6: the one message that is ever sent twice, and nobody gets its answer. What the client says next waits for
   * it, since agents refuse what comes before they are initialised.
   */
  repeat(bond: Bond, then: () => void): void {
    const { worker, generation, tongue, initialize } = bond
    bond.introduced.set(worker, generation)
    bond.isParking = true
    if (!this.#parked.has(bond)) this.#parked.set(bond, { gate: new Gate(), lines: [], bytes: 0 })
    const { key } = this.#board.core.requests.openOwn(worker, () => {
      if (bond.worker !== worker || bond.generation !== generation || !this.#parked.has(bond)) return
      const { words } = tongue.dialect
      if (words !== undefined) this.#board.tell(worker, { jsonrpc: '2.0', method: words.initialized })
      then()
      this.#unpark(bond)
    })
    this.#board.tell(worker, { ...(JSON.parse(initialize!.toString()) as object), id: key })
  }

  /** True when the message at hand waits, or was refused; its client is not read from meanwhile, unless others wait too. */
  parks(bond: Bond, isRequest: boolean): boolean {
    const parked = this.#parked.get(bond)
    if (parked === undefined) return false
    const { client } = bond
    const { isLazy, limits, id } = bond.worker.pool.spec
    // Behind one client there may be many, at work with other agents: it is never held up for one of them.
    if (isLazy && parked.bytes > limits.maxOutputQueueBytes) {
      this.#board.refuse(client, isRequest, 'overloaded', { pool: id })
      return true
    }
    const line = this.#board.copyLine()
    parked.lines.push({ line, isRequest })
    parked.bytes += line.length
    if (isRequest) client.pendingCount++
    if (!isLazy && client.blockedOn === undefined) this.#board.flow.block(client, parked.gate)
    return true
  }

  #unpark(bond: Bond): void {
    const { gate, lines } = this.#takeParked(bond)
    for (const { line, isRequest } of lines) {
      if (isRequest) bond.client.pendingCount--
      this.#board.envelope.read(line, 0, line.length - 1)
      this.#route(bond.client, isRequest)
    }
    this.#board.flow.release(gate)
  }

  #refuseParked(bond: Bond, reason: 'worker_exited' | 'shutting_down'): void {
    const { gate, lines } = this.#takeParked(bond)
    for (const { line, isRequest } of lines) {
      if (isRequest) bond.client.pendingCount--
      this.#board.envelope.read(line, 0, line.length - 1)
      this.#board.refuse(bond.client, isRequest, reason, { pool: bond.worker.pool.spec.id })
    }
    this.#board.flow.release(gate)
  }

  #takeParked(bond: Bond): Parked {
    const parked = this.#parked.get(bond)!
    this.#parked.delete(bond)
    bond.isParking = false
    return parked
  }

  /** The bus ends: nobody is welcomed any more. */
  dismiss(): void {
    for (const worker of [...this.#guests.keys()]) {
      for (const { client, idSpelling } of this.#takeGuests(worker)) {
        this.#board.fail(client, idSpelling, 'shutting_down', { pool: worker.pool.spec.id })
      }
    }
    for (const bond of [...this.#parked.keys()]) this.#refuseParked(bond, 'shutting_down')
  }

  clientGone(client: Client): void {
    for (const bond of [...this.#parked.keys()]) if (bond.client === client) this.#parked.delete(bond)
    for (const [worker, guests] of this.#guests) {
      this.#guests.set(
        worker,
        guests.filter((guest) => guest.client !== client),
      )
    }
  }

  /** Each is owed its answer until its turn comes, so that no client is taken for done before its last one. */
  *#takeGuests(worker: Worker): Generator<Guest> {
    const guests = this.#guests.get(worker) ?? []
    this.#guests.delete(worker)
    for (const guest of guests) {
      guest.client.pendingCount--
      if (guest.client.state !== 'closed') yield guest
    }
  }

  #answer(guest: Guest, worker: Worker): void {
    if (guest.wants !== 'welcome') return this.#turnAway(guest)
    const { result, version: spoken } = worker.welcome!
    const agreed = agreeOn(guest.version, spoken, this.#board.tongues.mcpLegacy)
    guest.client.hasBatches = hasBatches(this.#board.tongues.mcpLegacy.dialect, agreed)
    const text = agreed === spoken ? result.toString() : withVersion(result, agreed)
    this.#board.answer(guest.client, guest.idSpelling, text)
  }

  /** The worker is not of the era the guest has shown; who only asked for the era goes on with the other. */
  #turnAway({ client, idSpelling, wants }: Guest): void {
    if (wants === 'era') this.#board.fail(client, idSpelling, 'unknown_method', { method: 'server/discover' })
    else this.#board.fail(client, idSpelling, 'protocol_mismatch')
  }
}

/** Both are dates: the older of the two is what both can speak; an unknown wish gets what the worker speaks. */
function agreeOn(wanted: string, spoken: string, { dialect }: Tongue): string {
  if (!dialect.revisions!.includes(wanted)) return spoken
  return wanted < spoken ? wanted : spoken
}

function withVersion(result: Buffer, protocolVersion: string): string {
  return JSON.stringify({ ...(JSON.parse(result.toString()) as object), protocolVersion })
}

/** A worker that is leased can put questions to its holder; one that is shared could not tell whom it asks. */
function capabilitiesFor({ spec }: Pool): Record<string, unknown> {
  return spec.sharing === 'lease' ? { roots: { listChanged: false }, sampling: {}, elicitation: {} } : {}
}
