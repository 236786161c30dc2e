/**
 * A client of the kernel for requests of the stateless era: for one POST, or, where a principal has a worker of its own, for all of
 * its POSTs in turn (contract 10.11).
 *
 * What belongs to a request goes to its POST; what belongs to none goes to the only one there is, or to nobody. Whoever closes a
 * POST cancels it.
 */
import type { Reason } from '../../kernel/faults.ts'
import type { WorkerId } from '../../kernel/vocabulary.ts'
import type { MessageClient, MessageListener } from '../../transports/messages.ts'
import { Envelope, SHAPE } from '../../wire/envelope.ts'
import { FIELD } from '../../wire/fields.ts'
import { CODE, errorLine } from '../../wire/jsonrpc.ts'
import type { WebPort } from '../port.ts'
import type { WebRequest } from '../web-request.ts'
import { type Asked, InFlight } from './in-flight.ts'
import { Outflow } from './outflow.ts'
import { Reply } from './reply.ts'
import { answerOnce, refusalIn, statelessStatus } from './statuses.ts'

const UNASKED = { code: CODE.methodNotFound, message: 'A client of this revision is asked by results only.' }
const envelope = new Envelope()

/** One POST under way. */
interface Call {
  readonly reply: Reply
}

export interface CarrierNews {
  /** A worker has answered. */
  answered(answer: Envelope, worker: WorkerId | undefined): void
  /** Nothing is under way. */
  idle(): void
  over(): void
}

export class Carrier implements MessageListener {
  readonly #port: WebPort
  readonly #news: CarrierNews
  /** Several POSTs use it: the end of one is not its end. */
  readonly #isShared: boolean
  readonly #inFlight = new InFlight<Call>()
  readonly #outflow: Outflow
  #client: MessageClient | undefined
  #worker: WorkerId | undefined
  #isOver = false

  constructor(port: WebPort, news: CarrierNews, isShared: boolean) {
    this.#port = port
    this.#news = news
    this.#isShared = isShared
    this.#outflow = new Outflow(() => this.#client?.drained())
  }

  attach(client: MessageClient): void {
    this.#client = client
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get clientId(): MessageClient['id'] | undefined {
    return this.#client?.id
  }

  /** A notification: nobody waits for anything. */
  tell(line: Buffer): void {
    this.#client?.send(line)
    if (this.#inFlight.size === 0) this.#news.idle()
  }

  /** A request, whose POST is answered when its answer comes. */
  ask(web: WebRequest, request: Envelope): void {
    const reply = new Reply(web, {
      opened: ({ web: { response } }) => this.#outflow.add(response),
      gone: () => this.#cancel(call),
      drained: () => this.#outflow.drained(),
    })
    const call: Call = { reply }
    this.#client?.send(this.#inFlight.ask(request, call))
  }

  /** The client goes; what is under way is cancelled. */
  leave(isSettled: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#client?.leave(isSettled)
    this.#news.over()
  }

  // ---- from the bus ----

  get unsentBytes(): number {
    return this.#outflow.unsentBytes
  }

  received(line: Buffer, fault: Reason | undefined): void {
    const shape = envelope.read(line, 0, line.length)
    if (shape === SHAPE.response) return this.#answered(line, fault)
    if (shape === SHAPE.request) return this.#client?.send(errorLine(envelope.idSpelling(), UNASKED).subarray(0, -1))
    const named = this.#inFlight.progress(envelope) ?? this.#inFlight.naming(envelope, FIELD.metaSubscriptionId)
    if (named !== undefined) return void named.asked.owner.reply.open()?.send(named.line)
    const ended = this.#inFlight.naming(envelope, FIELD.requestId)
    if (ended !== undefined) return this.#endCall(ended.asked, ended.line)
    const sole = this.#inFlight.size === 1 ? [...this.#inFlight.owners()][0] : undefined
    if (sole === undefined) return this.#port.refused('no_stream')
    sole.owner.reply.open()?.send(line)
  }

  #answered(line: Buffer, fault: Reason | undefined): void {
    const returned = this.#inFlight.answer(envelope)
    if (returned === undefined) return this.#unasked(line, fault)
    if (fault === undefined) this.#news.answered(envelope, this.#worker)
    const status = statelessStatus(envelope.key(FIELD.errorCode))
    this.#answer(returned.asked, returned.line, fault, status)
    if (this.#inFlight.size === 0) this.#news.idle()
  }

  #answer(
    { owner: { reply }, idSpelling }: Asked<Call>,
    line: Buffer,
    fault: Reason | undefined,
    status: number,
  ): void {
    if (reply.isWaiting) {
      const refusal = refusalIn(line, fault, 'stateless', idSpelling)
      reply.settle((web) => answerOnce(web, line, refusal, status))
      return this.#outflow.addAnswer(reply.web.response)
    }
    const stream = reply.open()
    stream?.send(line)
    stream?.end()
  }

  /** A word of the bus about the client as a whole. */
  #unasked(line: Buffer, fault: Reason | undefined): void {
    if (fault === undefined) return this.#port.refused('late_answer')
    for (const asked of [...this.#inFlight.owners()]) {
      this.#inFlight.strike(asked)
      this.#answer(asked, line, fault, 200)
    }
  }

  /** The worker has ended a subscription. */
  #endCall(asked: Asked<Call>, line: Buffer): void {
    const stream = asked.owner.reply.open()
    this.#inFlight.strike(asked)
    stream?.send(line)
    stream?.end()
    if (this.#inFlight.size === 0) this.#news.idle()
  }

  /** The reader of a POST has gone. */
  #cancel(call: Call): void {
    if (!this.#isShared) return this.leave(false)
    for (const asked of [...this.#inFlight.owners()]) {
      if (asked.owner !== call) continue
      this.#inFlight.strike(asked)
      const id = asked.original === undefined ? asked.idSpelling : JSON.stringify(asked.key)
      const line = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`
      this.#client?.send(Buffer.from(line))
    }
    if (this.#inFlight.size === 0) this.#news.idle()
  }

  routed(worker: WorkerId): void {
    this.#worker = worker
  }

  pause(): void {}
  resume(): void {}

  closed(how: 'flush' | 'drop'): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const { owner, idSpelling: id } of this.#inFlight.owners()) {
      const { reply } = owner
      if (!reply.isWaiting) reply.open()?.end()
      else
        reply.settle((web) => (how === 'drop' ? web.response.destroy() : web.refuse({ reason: 'shutting_down', id })))
    }
    if (how === 'drop') this.#outflow.destroy()
    this.#news.over()
  }
}
