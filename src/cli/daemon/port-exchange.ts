/**
 * One exchange of the gateway with a worker, and what the bus knows of the servers it talks to.
 *
 * An exchange hears its own answer, partials and progress; whatever else the kernel delivers to its client is not for it.
 * What the worker asks meanwhile is answered by whoever made the call, or refused at once.
 */
import type { Exchange, ExchangeListener } from '../../aio/port.ts'
import type { WorkerGeneration } from '../../kernel/events.ts'
import type { PoolId, PoolSpec } from '../../kernel/vocabulary.ts'
import { CODE, type ErrorObject } from '../../wire/jsonrpc.ts'
import { VERSION } from '../version.ts'
import type { InternalClient, InternalListener } from './internal-client.ts'

type Message = Record<string, unknown>

export interface Ear {
  sent(worker: WorkerGeneration): void
  received(message: Message, bytes: number, worker: WorkerGeneration | undefined): void
  failed(error: ErrorObject): void
  /** Undefined, or false: what the worker asks is refused. */
  asked?: ExchangeListener['asked']
}

export type OpenInternal = (listener: InternalListener) => InternalClient

const MODERN = 'io.modelcontextprotocol/'
const PROGRESS = 'notifications/progress'
const PARTIAL = '::partial'
const CANCELLED = 'notifications/cancelled'
const GREETING = {
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'stdio-bus', version: VERSION },
  },
} as const
const DISCOVERY = {
  method: 'server/discover',
  params: { _meta: { [`${MODERN}protocolVersion`]: '2026-07-28', [`${MODERN}clientCapabilities`]: {} } },
} as const

export abstract class PortExchange implements Exchange {
  protected readonly ear: Ear
  protected readonly line: Message
  protected client: InternalClient | undefined
  /** What the worker has asked and is to be answered. */
  readonly #asked = new Map<unknown, () => void>()
  #isOver = false

  constructor(ear: Ear, line: Message) {
    this.ear = ear
    this.line = line
  }

  begin(open: OpenInternal): void {
    const client = open({
      routed: (worker) => this.routed(worker),
      received: (message, bytes) => this.#receive(message, bytes),
      failed: (error) => this.#fail(error),
    })
    this.client = client
    if (this.#isOver) client.leave(true)
    else this.open(client)
  }

  cancel(): void {
    this.#leave(false)
  }

  finish(): void {
    this.#leave(true)
  }

  protected abstract open(client: InternalClient): void
  protected abstract routed(worker: WorkerGeneration): void
  protected abstract hear(message: Message, bytes: number): void

  /** What has a method is never an answer, whatever its id: two sides number their questions each for itself. */
  #receive(message: Message, bytes: number): void {
    const { id, method } = message
    if (method === undefined) return this.hear(message, bytes)
    if (id !== undefined) this.#answer(id, String(method), message['params'])
    else if (method === CANCELLED) this.#withdraw((message['params'] as Message | undefined)?.['requestId'])
    else if (method === PROGRESS || isPartial(method)) this.ear.received(message, bytes, this.client?.worker)
  }

  #answer(id: unknown, method: string, params: unknown): void {
    const reply = (outcome: object): void => {
      this.#asked.delete(id)
      if (!this.#isOver) this.client?.send({ jsonrpc: '2.0', id, ...outcome })
    }
    const giveUp = this.ear.asked?.({ method, params }, reply)
    if (giveUp === undefined) reply(answerTo(method))
    else this.#asked.set(id, giveUp)
  }

  /** The worker wants no answer to this any more. */
  #withdraw(id: unknown): void {
    const giveUp = this.#asked.get(id)
    this.#asked.delete(id)
    giveUp?.()
  }

  #fail(error: ErrorObject): void {
    if (this.#isOver) return
    this.#leave(true)
    this.ear.failed(error)
  }

  #leave(isSettled: boolean): void {
    this.#isOver = true
    this.client?.leave(isSettled)
    for (const id of [...this.#asked.keys()]) this.#withdraw(id)
  }
}

export class PlainExchange extends PortExchange {
  protected open(client: InternalClient): void {
    client.send(this.line)
  }

  protected routed(worker: WorkerGeneration): void {
    this.ear.sent(worker)
  }

  protected hear(message: Message, bytes: number): void {
    if (message['id'] === this.line['id']) this.ear.received(message, bytes, this.client?.worker)
  }
}

/** To an MCP worker of its own, which has to be greeted first: the time of the call runs from the greeting on. */
export class GreetedExchange extends PlainExchange {
  readonly #offers: Message

  /** `offers`: what the worker may ask for during the call. */
  constructor(ear: Ear, line: Message, offers: Message = {}) {
    super(ear, line)
    this.#offers = offers
  }

  protected override open(client: InternalClient): void {
    const params = { ...GREETING.params, capabilities: this.#offers }
    client.send({ jsonrpc: '2.0', method: GREETING.method, params, id: `${this.line['id']}-greeting` })
  }

  protected override hear(message: Message, bytes: number): void {
    if (message['id'] !== `${this.line['id']}-greeting`) return super.hear(message, bytes)
    if (message['error'] === undefined) this.client?.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    this.client?.send(this.line)
  }
}

const NO_METHOD = {
  error: { code: CODE.methodNotFound, message: 'The caller of an agent answers no questions' },
} as const

/** Whoever asks whether somebody is there is told so. */
function answerTo(method: unknown): { result: Message } | { error: ErrorObject } {
  return method === 'ping' ? { result: {} } : NO_METHOD
}

type Ask = (pool: PoolId, message: { method: string } & Message) => Promise<Message>

/** What the servers of a pool said of themselves: remembered until a worker of the pool ends. */
export class Introductions {
  readonly #ask: Ask
  readonly #byPool = new Map<PoolId, Promise<Message | undefined>>()
  readonly #modern = new Set<PoolId>()

  constructor(ask: Ask) {
    this.#ask = ask
  }

  isModern({ id, era }: PoolSpec): boolean {
    return era === 'modern' || this.#modern.has(id)
  }

  of(pool: PoolSpec): Promise<Message | undefined> {
    const known = this.#byPool.get(pool.id)
    if (known !== undefined) return known
    const asked = this.#introduce(pool).then((result) => {
      // Nobody was there to say anything: the next call asks again.
      if (result === undefined && this.#byPool.get(pool.id) === asked) this.#byPool.delete(pool.id)
      return result
    })
    this.#byPool.set(pool.id, asked)
    return asked
  }

  forget(pool: PoolId): void {
    this.#byPool.delete(pool)
    this.#modern.delete(pool)
  }

  forgetAll(): void {
    this.#byPool.clear()
    this.#modern.clear()
  }

  /** The handshake is the kernel's: in the era that has one, it answers from what the worker told it. */
  async #introduce(pool: PoolSpec): Promise<Message | undefined> {
    const greeted = pool.era === 'modern' ? undefined : await this.#ask(pool.id, GREETING)
    if (greeted !== undefined && (resultOf(greeted) !== undefined || isAway(greeted))) return resultOf(greeted)
    const discovered = pool.era === 'legacy' ? undefined : resultOf(await this.#ask(pool.id, DISCOVERY))
    if (discovered !== undefined) this.#modern.add(pool.id)
    return discovered
  }
}

/** The bus found no worker to ask, which says nothing about its era. */
function isAway({ refusal }: Message): boolean {
  const { data } = (refusal ?? {}) as ErrorObject
  const { reason } = (data ?? {}) as { reason?: unknown }
  return reason !== undefined && reason !== 'protocol_mismatch' && reason !== 'unknown_method'
}

function resultOf(answer: Message): Message | undefined {
  const { result } = answer
  return typeof result === 'object' && result !== null ? (result as Message) : undefined
}

/** A part of an answer, as the gateway of another node tells it. */
function isPartial(method: unknown): boolean {
  return typeof method === 'string' && method.endsWith(PARTIAL)
}
