/**
 * A client of the bus for whoever calls the API: asks what the bus is asked, hears what it is told (contract 15.8, 15.18).
 *
 * It has the rights of the caller and no others: the kernel says what they are. What it hears it hands on at once, so nothing
 * waits here.
 */
import type { Reason } from '../../kernel/faults.ts'
import type { MessageClient, MessageListener } from '../../web/port.ts'
import { readWritable } from '../../wire/nesting.ts'
import { ApiError, badParameter } from './api-call.ts'

export interface BusMessage {
  readonly id?: string | number
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: unknown
  readonly error?: {
    readonly code: number
    readonly message: string
    readonly data?: { readonly reason?: string; readonly problem?: string }
  }
}

interface Waiting {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: ApiError) => void
}

/** What a refusal of the bus is to whoever calls the API; everything else is a conflict with what is so. */
const STATUSES: Readonly<Record<string, number>> = {
  unknown_session: 404,
  not_allowed: 403,
  session_not_owned: 403,
  bad_params: 400,
  bad_position: 400,
  unknown_method: 404,
  too_many_clients: 503,
  too_many_connections: 503,
  session_busy: 503,
  overloaded: 503,
  shutting_down: 503,
  rate_limited: 429,
}

export class BusClient implements MessageListener {
  readonly unsentBytes = 0
  readonly #client: MessageClient
  readonly #waiting = new Map<number, Waiting>()
  #asked = 0
  #refusal: ApiError | undefined
  #isOver = false
  /** Told of everything that is no answer, in order. */
  onMessage: (message: BusMessage) => void = () => {}

  constructor(open: (listener: MessageListener) => MessageClient) {
    this.#client = open(this)
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Fails with what the bus answers. */
  ask<Result>(method: string, params: object): Promise<Result> {
    if (this.#isOver) return Promise.reject(this.#refusal ?? GONE)
    const id = ++this.#asked
    return new Promise((resolve, reject) => {
      const line = lineOf({ id, method, params: params as BusMessage['params'] & object })
      this.#waiting.set(id, { resolve: resolve as (result: unknown) => void, reject })
      this.#client.send(line)
    })
  }

  /** Throws what cannot be said. */
  say(message: BusMessage): void {
    this.#client.send(lineOf(message))
  }

  leave(): void {
    if (this.#isOver) return
    this.#end()
    this.#client.leave()
  }

  // ---- for the bus ----

  received(line: Buffer, _fault: Reason | undefined): void {
    const message = readMessage(line)
    const { id, method, result, error } = message
    if (method !== undefined) return this.onMessage(message)
    if (error !== undefined && id == null) this.#refusal = refusalOf(error)
    const waiting = this.#waiting.get(Number(id))
    if (waiting === undefined) return
    this.#waiting.delete(Number(id))
    if (error === undefined) waiting.resolve(result)
    else waiting.reject(refusalOf(error))
  }

  routed(): void {}
  pause(): void {}
  resume(): void {}

  closed(): void {
    this.#end()
  }

  #end(): void {
    this.#isOver = true
    for (const { reject } of this.#waiting.values()) reject(this.#refusal ?? GONE)
    this.#waiting.clear()
  }
}

/** A line of the bus; of what is nested beyond what can be written again only the upper levels. */
export function readMessage(line: Buffer): BusMessage {
  return readWritable(line) as BusMessage
}

/** What a caller sent can be read and yet be too deep to be written. */
function lineOf(message: BusMessage): Buffer {
  try {
    return Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))
  } catch {
    throw badParameter('The body is nested too deeply.')
  }
}

const GONE = new ApiError(503, 'closed', 'The bus has ended this before it was answered.')

function refusalOf({ message, data }: NonNullable<BusMessage['error']>): ApiError {
  const reason = data?.reason ?? 'refused'
  const problem = data?.problem === undefined ? message : `${message}: ${data.problem}`
  return new ApiError(STATUSES[reason] ?? 409, reason, problem)
}
