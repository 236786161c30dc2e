/**
 * The handshake of a protocol that has one per connection, done once per worker by the bus (contract 6.6, 6.7).
 *
 * Clients are answered from what the worker said, each with its own id and a revision it can speak. Errors are not kept.
 * Two workers of a pool never speak different eras: the pool remembers which one its command understands.
 */
import { FIELD } from '../wire/fields.ts'
import type { Client, Worker } from './peers.ts'
import type { Pool } from './pools.ts'
import type { Switchboard } from './switchboard.ts'
import type { Tongue } from './tongue.ts'

/** Somebody who waits for the worker's welcome. */
interface Guest {
  readonly client: Client
  readonly idSpelling: string
  /** The revision the client asked for; undefined: it asked for the era. */
  readonly version: string | undefined
  readonly line: Buffer
}

const SILENCE_MS = 10_000

const PROBE_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

export class Handshakes {
  readonly #board: Switchboard
  readonly #guests = new Map<Worker, Guest[]>()
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
    if (worker.pool.probesFirst) this.#probe(worker)
    else this.#begin(worker)
    const { generation } = worker
    const { core } = this.#board
    core.timers.set(core.nowMs + SILENCE_MS, () => {
      if (worker.generation !== generation || worker.greeting !== 'asked' || worker.state !== 'starting') return
      // Silence: a server of the other era may not know the question.
      if (this.#mayBeModern(worker.pool)) this.#becomeModern(worker)
    })
  }

  /** The last process ended over the handshake: this one is first asked for its era. */
  #probe(worker: Worker): void {
    const { generation } = worker
    worker.greeting = 'asked'
    this.#board.ask(worker, 'server/discover', { _meta: PROBE_META }, (isResult) => {
      if (worker.generation !== generation || worker.greeting !== 'asked') return
      if (isResult) this.#becomeModern(worker)
      else this.#begin(worker)
    })
  }

  /** The client's `initialize` is at hand: it is answered now, or when the worker has spoken. */
  welcome(client: Client, worker: Worker): void {
    const { envelope } = this.#board
    const guest = {
      client,
      idSpelling: envelope.idSpelling(),
      version: envelope.text(FIELD.protocolVersion) ?? '',
      line: this.#board.copyLine(),
    }
    this.#receive(guest, worker)
  }

  /** The client asks for the era of a worker that nobody has greeted yet: greeting it tells. */
  discover(client: Client, worker: Worker): void {
    const guest = {
      client,
      idSpelling: this.#board.envelope.idSpelling(),
      version: undefined,
      line: this.#board.copyLine(),
    }
    this.#receive(guest, worker)
  }

  #receive(guest: Guest, worker: Worker): void {
    if (worker.greeting === 'done') return this.#answer(guest, worker)
    const guests = this.#guests.get(worker)
    if (guests === undefined) this.#guests.set(worker, [guest])
    else guests.push(guest)
    guest.client.pendingCount++
    if (worker.greeting === 'none') this.#begin(worker)
  }

  #begin(worker: Worker): void {
    const { tongues } = this.#board
    const { generation } = worker
    worker.greeting = 'asked'
    worker.tongue = tongues.mcpLegacy
    const params = {
      protocolVersion: tongues.mcpLegacy.dialect.revisions!.at(-1),
      capabilities: capabilitiesFor(worker.pool),
      clientInfo: { name: 'stdio-bus', version: '0.1.0' },
    }
    this.#board.ask(worker, 'initialize', params, (isResult) => {
      if (worker.generation !== generation || worker.greeting !== 'asked') return
      if (isResult) this.#succeed(worker)
      else this.#fail(worker)
    })
  }

  #succeed(worker: Worker): void {
    const { envelope, supervisor } = this.#board
    const result = Buffer.from(envelope.bytes.subarray(envelope.startOf(FIELD.result), envelope.endOf(FIELD.result)))
    worker.greeting = 'done'
    worker.welcome = { result, version: envelope.text(FIELD.resultProtocolVersion) ?? '' }
    worker.pool.tongue = this.#board.tongues.mcpLegacy
    this.#board.tell(worker, { jsonrpc: '2.0', method: 'notifications/initialized' })
    for (const guest of this.#takeGuests(worker)) this.#answer(guest, worker)
    supervisor.step(worker, 'started')
  }

  /** The worker refused: either it is of the other era, or the guests are told what it said. */
  #fail(worker: Worker): void {
    worker.greeting = 'none'
    if (worker.state === 'starting') {
      if (this.#mayBeModern(worker.pool)) return this.#becomeModern(worker)
      return this.#board.supervisor.endBroken(worker, 'worker_exited', { why: 'it refused the handshake' })
    }
    const { envelope } = this.#board
    const error = envelope.bytes.utf8Slice(envelope.startOf(FIELD.error), envelope.endOf(FIELD.error))
    const guests = this.#takeGuests(worker)
    if (guests.some(({ version }) => version === undefined)) this.#becomeModern(worker)
    for (const guest of guests) {
      if (guest.version === undefined) this.#again(guest)
      else
        this.#board.flow.sendLine(
          guest.client,
          Buffer.from(`{"jsonrpc":"2.0","id":${guest.idSpelling},"error":${error}}\n`),
        )
    }
  }

  #mayBeModern({ spec }: Pool): boolean {
    return spec.era === 'auto'
  }

  #becomeModern(worker: Worker): void {
    const { tongues, supervisor } = this.#board
    worker.greeting = 'none'
    worker.tongue = tongues.mcpModern
    worker.pool.tongue = tongues.mcpModern
    supervisor.step(worker, 'started')
  }

  /** The message is routed once more, now that the era is known. */
  #again({ client, line }: Guest): void {
    this.#board.envelope.read(line, 0, line.length - 1)
    this.#route(client, true)
  }

  /** A worker that ended in the middle of its greeting may be of the other era; its guests are told. */
  workerEnded(worker: Worker): void {
    if (worker.greeting === 'asked' && this.#mayBeModern(worker.pool))
      worker.pool.probesFirst = !worker.pool.probesFirst
    for (const { client, idSpelling } of this.#takeGuests(worker)) {
      this.#board.fail(client, idSpelling, 'worker_exited', { pool: worker.pool.spec.id })
    }
  }

  clientGone(client: Client): void {
    for (const [worker, guests] of this.#guests) {
      this.#guests.set(
        worker,
        guests.filter((guest) => guest.client !== client),
      )
    }
  }

  #takeGuests(worker: Worker): readonly Guest[] {
    const guests = this.#guests.get(worker) ?? []
    this.#guests.delete(worker)
    for (const { client } of guests) client.pendingCount--
    return guests
  }

  #answer({ client, idSpelling, version }: Guest, worker: Worker): void {
    if (version === undefined)
      return this.#board.fail(client, idSpelling, 'unknown_method', { method: 'server/discover' })
    const { result, version: spoken } = worker.welcome!
    const agreed = agreeOn(version, spoken, this.#board.tongues.mcpLegacy)
    const text = agreed === spoken ? result.toString() : withVersion(result, agreed)
    this.#board.answer(client, idSpelling, text)
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
