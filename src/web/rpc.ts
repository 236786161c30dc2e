/**
 * `/rpc`: a client for one request (contract 10.15). The worker's answer is the body, whatever it says; what the bus itself
 * answers has a status of its own. Whoever closes the connection cancels.
 */
import type { Reason } from '../kernel/faults.ts'
import type { MessageClient, MessageListener } from '../transports/messages.ts'
import { Envelope, SHAPE } from '../wire/envelope.ts'
import { CODE, errorLine } from '../wire/jsonrpc.ts'
import { accepts, JSON_TYPE, STREAM_TYPE } from './accept.ts'
import { type Message, readLine, readMessage } from './body.ts'
import { EventStream } from './event-stream.ts'
import { statusOf, statusOfCall } from './faults.ts'
import type { WebPort } from './port.ts'
import type { Adapter } from './service.ts'
import { retryAfter, type WebRequest } from './web-request.ts'

const UNASKED = { code: CODE.methodNotFound, message: 'This client has one request and answers none.' }
const envelope = new Envelope()

export class RpcAdapter implements Adapter {
  readonly methods = ['POST']
  readonly #port: WebPort

  constructor(port: WebPort) {
    this.#port = port
  }

  async serve(web: WebRequest): Promise<void> {
    const { accept } = web.request.headers
    if (!accepts(accept, JSON_TYPE) && !accepts(accept, STREAM_TYPE))
      return web.refuse({ reason: 'not_acceptable', detail: { needs: [JSON_TYPE, STREAM_TYPE] } })
    const line = await readLine(web, this.#port.maxMessageBytes)
    if ('refusal' in line) return web.refuse(line.refusal)
    const message = readMessage(web, line)
    if ('refusal' in message) return web.refuse(message.refusal)
    if (message.envelope.shape === SHAPE.response)
      return web.refuse({ reason: 'bad_envelope', detail: { problem: 'nobody has asked this client anything' } })
    new RpcCall(web, message, this.#port).begin()
  }
}

class RpcCall implements MessageListener {
  readonly #web: WebRequest
  readonly #message: Message
  readonly #port: WebPort
  readonly #id: string
  #client: MessageClient | undefined
  #stream: EventStream | undefined

  constructor(web: WebRequest, message: Message, port: WebPort) {
    this.#web = web
    this.#message = message
    this.#port = port
    this.#id = message.envelope.idSpelling()
  }

  begin(): void {
    const { connection, admitted, pool, response } = this.#web
    const { envelope: head, line } = this.#message
    const entrance = { door: 'http', isLocal: false, identity: admitted.identity, pool } as const
    const isRequest = head.shape === SHAPE.request
    if (!accepts(this.#web.request.headers.accept, JSON_TYPE) && isRequest)
      this.#stream = new EventStream(
        this.#web,
        () => this.#client?.leave(),
        () => this.#client?.drained(),
      )
    else this.#web.onceClosed(() => this.#client?.leave(response.writableFinished))
    this.#client = this.#port.open(entrance, admitted, connection.peer, this)
    this.#client.send(line)
    if (isRequest) return
    this.#web.answer(202, undefined)
    this.#client.leave(true)
  }

  get unsentBytes(): number {
    return this.#stream?.unsentBytes ?? 0
  }

  received(line: Buffer, fault: Reason | undefined, refusal?: string): void {
    const shape = envelope.read(line, 0, line.length)
    if (shape === SHAPE.response) return this.#answered(line, fault, refusal)
    if (this.#stream !== undefined && shape === SHAPE.notification) return this.#stream.send(line)
    // Nobody would answer: the worker is told so, and does not wait.
    if (shape === SHAPE.request) this.#client?.send(errorLine(envelope.idSpelling(), UNASKED).subarray(0, -1))
    else this.#port.refused('no_stream')
  }

  #answered(line: Buffer, fault: Reason | undefined, refusal: string | undefined): void {
    if (this.#stream !== undefined) {
      this.#stream.send(line)
      this.#stream.end()
    } else if (refusal !== undefined) this.#refused(line, refusal)
    else if (fault === undefined) this.#web.answer(200, line)
    else this.#web.refuse({ ...refusalOf(line, fault), id: this.#id })
    this.#client?.leave(true)
  }

  /** The gateway's own words stay: they name the agent, and the trace of the call. */
  #refused(line: Buffer, reason: string): void {
    const { error } = JSON.parse(line.utf8Slice()) as { error: { code: number; data?: Record<string, unknown> } }
    const status = statusOfCall(reason, error.code, error.data?.['retryable'] === true)
    this.#web.answer(status, line, retryAfter(status, error.data))
  }

  routed(): void {}
  pause(): void {}
  resume(): void {}

  closed(how: 'flush' | 'drop'): void {
    if (this.#stream !== undefined) this.#stream.end()
    else if (how === 'drop') this.#web.response.destroy()
    else this.#web.refuse({ reason: 'shutting_down', id: this.#id })
  }
}

/** What the bus said, with its details, as a refusal of the door. */
export function refusalOf(
  line: Buffer,
  reason: Reason,
): { reason: Reason; detail: Record<string, unknown>; status: number; isCounted: true } {
  const { error } = JSON.parse(line.utf8Slice()) as { error?: { data?: Record<string, unknown> } }
  const { reason: _reason, retryable: _retryable, ...detail } = error?.data ?? {}
  return { reason, detail, status: statusOf(reason), isCounted: true }
}
