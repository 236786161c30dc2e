/**
 * Joins the gateway to the kernel: its exchanges become internal clients, its replies become events.
 *
 * It knows the daemon only as a place where internal clients can be opened and events told. Faults, waiting, aliases and
 * handshakes are the kernel's; affinity is a wish, kept for the keys that were used last.
 */
import { fault, ofTheBus, reasonOfTheBus } from '../../aio/faults.ts'
import type {
  Caller,
  Conversation,
  ErrorBody,
  Exchange,
  ExchangeListener,
  ExchangeOptions,
  GatewayPort,
} from '../../aio/port.ts'
import { Recent } from '../../aio/recent.ts'
import type { BusEvent, WorkerGeneration } from '../../kernel/events.ts'
import type { ClientId, PoolId, PoolSpec, WorkerId } from '../../kernel/vocabulary.ts'
import { isNestedTooDeep } from '../../wire/nesting.ts'
import { afterWaking } from './bus-clock.ts'
import type { DelegateClient, DelegateEar } from './delegate-client.ts'
import type { InternalClient, InternalListener, Wishes } from './internal-client.ts'
import type { OddIds } from './odd-ids.ts'
import { GreetedExchange, Introductions, PlainExchange, type PortExchange } from './port-exchange.ts'

/** What the port needs of the daemon. */
export interface Doorway {
  apply(event: BusEvent): void
  openInternal(pool: PoolId, wishes: Wishes, listener: InternalListener): InternalClient
  openDelegate(pool: PoolId, behalfOf: ClientId | undefined, received: DelegateEar): DelegateClient
  /** Settles when the queue towards the caller has room; undefined: it has. */
  room(caller: ClientId | WorkerGeneration): Promise<void> | undefined
  workersOf(pool: PoolId): number
  /** The answer to a call that follows is the bus's own, for this reason. */
  refusing(client: ClientId, answer: Buffer, reason: string): void
}

/** Time as the port knows it; a simulation brings its own. */
export interface Clock {
  nowMs(): number
  /** Calls `run` after so long, unless what it returns is called first. */
  after(delayMs: number, run: () => void): () => void
  /** Calls `run` when the turn of the loop is over. */
  soon(run: () => void): void
}

type Message = Record<string, unknown>
type Listener = Parameters<GatewayPort['converse']>[2]

const SYSTEM_CLOCK: Clock = {
  nowMs: () => Date.now(),
  after: afterWaking,
  soon: (run) => void setImmediate(run),
}

const AFFINITIES = 10_000
/** Notifications that wait for a worker; those above are given up. */
const MAX_WAITING_NOTIFICATIONS = 1_024
const NOTIFICATION_WAIT_MS = 11_000
/** For the introduction of a server that may start as slowly as it likes. */
const INTRODUCTION_WAIT_MS = 60_000

export class KernelPort implements GatewayPort {
  readonly #daemon: Doorway
  readonly #odd: OddIds
  readonly #poolOf: (pool: PoolId) => PoolSpec | undefined
  readonly #countOneshots: (pool: PoolId) => number
  readonly #clock: Clock
  readonly #introductions: Introductions
  readonly #affinities = new Recent<WorkerId>(AFFINITIES)
  #lastId = 0
  #waitingNotifications = 0
  /** The process whose line is being heard: it waits if a reply fills its caller's queue. */
  #source: WorkerGeneration | undefined

  constructor(
    daemon: Doorway,
    odd: OddIds,
    poolOf: (pool: PoolId) => PoolSpec | undefined,
    countOneshots: (pool: PoolId) => number,
    clock = SYSTEM_CLOCK,
  ) {
    this.#clock = clock
    this.#countOneshots = countOneshots
    this.#daemon = daemon
    this.#odd = odd
    this.#poolOf = poolOf
    this.#introductions = new Introductions((pool, message) => this.#ask(pool, message))
  }

  reply(caller: Caller, message: Message, traceId?: string): void {
    const text = this.#spell(caller.key, message)
    if (text === undefined) return
    const bytes = Buffer.from(`${text}\n`)
    const source = this.#source === undefined ? {} : { source: this.#source }
    if (caller.kind === 'worker') {
      this.#daemon.apply({ type: 'worker-reply', ...processOf(caller.key), bytes, ...source })
      return
    }
    const isFinal = message['method'] === undefined
    const trace = traceId === undefined ? {} : { traceId }
    const answered = isFinal ? { id: message['id'] as string | number, ...trace } : {}
    const client = Number(caller.key) as ClientId
    const reason = isFinal ? reasonOfTheBus(message['error']) : undefined
    if (reason !== undefined) this.#daemon.refusing(client, bytes, reason)
    this.#daemon.apply({ type: 'client-reply', client, bytes, isFinal, ...answered, ...source })
  }

  /** What an agent nested beyond what can be written is not passed on; undefined: nobody is owed it. */
  #spell(caller: string, message: Message): string | undefined {
    try {
      return this.#odd.spell(caller, message)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      const { result: _result, error: _error, params: _params, ...rest } = message
      if (rest['method'] !== undefined) return undefined
      const cause = 'it is nested too deep'
      return this.#odd.spell(caller, { ...rest, error: fault('agent_invalid_response', { agent: '', cause }) })
    }
  }

  room(caller: Caller): Promise<void> | undefined {
    return this.#daemon.room(caller.kind === 'client' ? (Number(caller.key) as ClientId) : processOf(caller.key))
  }

  request(
    pool: PoolId,
    message: { method: string } & Message,
    options: ExchangeOptions,
    listener: ExchangeListener,
  ): Exchange {
    const line = { jsonrpc: '2.0', ...message, id: ++this.#lastId }
    const ear = {
      ...this.#heard(listener),
      sent: (worker: WorkerGeneration) => this.#sent(pool, options, listener, worker),
    }
    const exchange: PortExchange = this.#mustGreet(pool)
      ? new GreetedExchange(ear, line, this.#poolOf(pool)?.offers)
      : new PlainExchange(ear, line)
    exchange.begin((internal) => this.#daemon.openInternal(pool, this.#wishesOf(pool, options), internal))
    return exchange
  }

  converse(pool: PoolId, client: number | undefined, received: Listener): Conversation {
    const hear: DelegateEar = (line, source) =>
      this.#hearing(source, () =>
        received(readSaid(line), line.length - 1, source === undefined ? undefined : keyOf(source)),
      )
    const delegate = this.#daemon.openDelegate(pool, client as ClientId | undefined, hear)
    return {
      send: (message) => delegate.send(Buffer.from(`${JSON.stringify(message)}\n`)),
      leave: () => delegate.leave(),
    }
  }

  serve({ key }: Caller, isServing: boolean): void {
    this.#daemon.apply({ type: 'client-serves', client: Number(key) as ClientId, isServing })
  }

  finish(exchange: Exchange): void {
    ;(exchange as PortExchange).finish()
  }

  notify(pool: PoolId, message: Message, options: ExchangeOptions & { sent?: (worker: string) => void }): void {
    if (this.#waitingNotifications >= MAX_WAITING_NOTIFICATIONS) return
    this.#waitingNotifications += 1
    const leave = (): void => {
      stopTimer()
      client.leave(true)
      this.#waitingNotifications -= 1
    }
    const routed = (worker: WorkerGeneration): void => {
      options.sent?.(keyOf(worker))
      this.#clock.soon(leave)
    }
    const listener = { routed, received: () => {}, failed: () => {} }
    const stopTimer = this.#clock.after(NOTIFICATION_WAIT_MS, leave)
    const client = this.#daemon.openInternal(pool, this.#wishesOf(pool, options), listener)
    client.send({ jsonrpc: '2.0', ...message })
  }

  async handshake(pool: PoolId): Promise<Message | undefined> {
    const spec = this.#poolOf(pool)
    return spec === undefined ? undefined : this.#introductions.of(spec)
  }

  workers(pool: PoolId): number {
    return this.#poolOf(pool)?.isAioOnly ? this.#countOneshots(pool) : this.#daemon.workersOf(pool)
  }

  nowMs(): number {
    return this.#clock.nowMs()
  }

  after(delayMs: number, run: () => void): () => void {
    return this.#clock.after(delayMs, run)
  }

  /** A worker of the pool has ended: the next one may be another program. */
  workerGone(pool: PoolId): void {
    this.#introductions.forget(pool)
  }

  /** A reload may have changed any of them. */
  forgetAll(): void {
    this.#introductions.forgetAll()
  }

  /** A worker that is one client's own has never been greeted: the exchange does it. */
  #mustGreet(pool: PoolId): boolean {
    const spec = this.#poolOf(pool)
    return spec?.sharing === 'isolated' && spec.protocol === 'mcp' && !this.#introductions.isModern(spec)
  }

  #sent(pool: PoolId, { affinity }: ExchangeOptions, listener: ExchangeListener, worker: WorkerGeneration): void {
    if (affinity !== undefined) this.#affinities.set(`${pool}\n${affinity}`, worker.worker)
    listener.sent(keyOf(worker))
  }

  #wishesOf(pool: PoolId, { affinity, client, cause }: ExchangeOptions): Wishes {
    const prefer = affinity === undefined ? undefined : this.#affinities.get(`${pool}\n${affinity}`)
    return {
      ...(prefer === undefined ? {} : { prefer }),
      ...(client === undefined ? {} : { behalfOf: client as ClientId }),
      ...(cause === undefined ? {} : { cause }),
    }
  }

  #heard({ received, failed, asked }: ExchangeListener) {
    return {
      failed: (error: ErrorBody): void => failed(ofTheBus(error)),
      ...(asked === undefined ? {} : { asked }),
      received: (message: Message, bytes: number, worker: WorkerGeneration | undefined): void =>
        this.#hearing(worker, () => received(message, bytes)),
    }
  }

  #hearing(worker: WorkerGeneration | undefined, hear: () => void): void {
    this.#source = worker
    try {
      hear()
    } finally {
      this.#source = undefined
    }
  }

  /** A server that does not introduce itself in the time it has to start keeps nobody waiting: calls go on without. */
  #ask(pool: PoolId, message: { method: string } & Message): Promise<Message> {
    return new Promise((resolve) => {
      const line = { jsonrpc: '2.0', ...message, id: ++this.#lastId }
      let stopTimer = (): void => {}
      const done = (answer: Message): void => {
        stopTimer()
        resolve(answer)
        exchange.finish()
      }
      const giveUp = (): void => {
        exchange.cancel()
        resolve({ refusal: fault('agent_timeout', { agent: pool, timeout_ms: waitMs }) })
      }
      const waitMs = this.#poolOf(pool)?.startTimeoutMs || INTRODUCTION_WAIT_MS
      const sent = (): void => {
        stopTimer()
        stopTimer = this.#clock.after(waitMs, giveUp)
      }
      const exchange = new PlainExchange({ sent, received: done, failed: (error) => done({ refusal: error }) }, line)
      exchange.begin((internal) => this.#daemon.openInternal(pool, {}, internal))
    })
  }
}

/** A process as the gateway and the trace name it: slot.generation. */
export function keyOf({ worker, generation }: WorkerGeneration): string {
  return `${worker}.${generation}`
}

function processOf(key: string): WorkerGeneration {
  const [worker, generation] = key.split('.')
  return { worker: Number(worker) as WorkerId, generation: Number(generation) }
}

/** What is nested beyond what can be written again is an answer that is of no use, or says nothing. */
function readSaid(line: Buffer): Message {
  const message = JSON.parse(line.utf8Slice()) as Message
  if (!isNestedTooDeep(line)) return message
  const { id, method } = message
  if (method !== undefined) return { id, method }
  return { id, error: fault('agent_invalid_response', { agent: '', cause: 'it is nested too deep' }) }
}
