/**
 * What the bus itself says to a member: requests of its own with their answers, and notifications.
 *
 * It speaks for no client, so whatever it is asked it refuses. An answer that does not come in time is a failure; nothing
 * is asked twice here.
 */
import { Envelope, SHAPE } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import type { Span } from '../wire/json-array.ts'
import { CODE, type ErrorObject, errorLine } from '../wire/jsonrpc.ts'
import type { AggregatePort, Delegate } from './port.ts'
import { BOUNDS } from './spec.ts'

/** An answer as it came: either a result or an error. */
export interface Answer {
  readonly line: Buffer
  readonly result: Span | undefined
  readonly error: ErrorObject | undefined
}

type Params = Readonly<Record<string, unknown>>

export class MemberTalk {
  readonly #port: AggregatePort
  readonly #delegate: Delegate
  readonly #noticed: (method: string) => void
  readonly #reader = new Envelope()
  readonly #open = new Map<string, (answer: Answer | undefined) => void>()
  #lastId = 0

  constructor(port: AggregatePort, pool: string, noticed: (method: string) => void) {
    this.#port = port
    this.#noticed = noticed
    this.#delegate = port.open(pool, undefined, (line) => this.#receive(line))
  }

  /** Undefined: it did not come in time, or nobody waits any more. */
  ask(method: string, params: Params, waitMs: number = BOUNDS.askMs): Promise<Answer | undefined> {
    const id = `stdio-bus-${++this.#lastId}`
    return new Promise((resolve) => {
      const stop = Number.isFinite(waitMs) ? this.#port.after(waitMs, () => this.#giveUp(id)) : () => {}
      this.#open.set(id, (answer) => {
        stop()
        this.#open.delete(id)
        resolve(answer)
      })
      this.#send({ jsonrpc: '2.0', id, method, params })
    })
  }

  tell(method: string): void {
    this.#send({ jsonrpc: '2.0', method })
  }

  leave(): void {
    for (const settle of [...this.#open.values()]) settle(undefined)
    this.#delegate.leave()
  }

  #giveUp(id: string): void {
    const settle = this.#open.get(id)
    if (settle === undefined) return
    this.#send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
    settle(undefined)
  }

  #send(message: object): void {
    this.#delegate.send(Buffer.from(`${JSON.stringify(message)}\n`))
  }

  #receive(bytes: Buffer): void {
    const line = this.#reader
    const shape = line.read(bytes, 0, bytes.length - 1)
    if (shape === SHAPE.response) return this.#settle(line)
    if (shape === SHAPE.notification) return this.#noticed(line.text(FIELD.method)!)
    if (shape !== SHAPE.request) return
    const refusal = { code: CODE.methodNotFound, message: 'The bus itself answers no questions' }
    this.#delegate.send(errorLine(line.idSpelling(), refusal))
  }

  #settle(line: Envelope): void {
    const settle = this.#open.get(String(line.key(FIELD.id)))
    const hasResult = line.has(FIELD.result)
    const result = { start: line.startOf(FIELD.result), end: line.endOf(FIELD.result) }
    const error = hasResult ? undefined : JSON.parse(line.spelling(FIELD.error))
    settle?.({ line: line.bytes, result: hasResult ? result : undefined, error })
  }
}
