/**
 * One ACP client over HTTP (contract 10.13): its messages come by POST, everything for it leaves on GET streams, one for each
 * session and one for the rest.
 *
 * What has no stream yet waits, in order; up to a bound that holds up nothing else, beyond it the kernel keeps the rest. Without
 * any stream for a while the client is gone.
 */
import type { Reason } from '../../kernel/faults.ts'
import type { PoolId, Principal } from '../../kernel/vocabulary.ts'
import type { MessageClient, MessageListener } from '../../transports/messages.ts'
import { Envelope, type IdKey, SHAPE } from '../../wire/envelope.ts'
import { FIELD } from '../../wire/fields.ts'
import type { Message } from '../body.ts'
import { EventStream } from '../event-stream.ts'
import type { WebPort } from '../port.ts'
import { ReadGate } from '../read-gate.ts'
import { refusalOf } from '../rpc.ts'
import type { WebRequest } from '../web-request.ts'
import { CONNECTION_HEADER, SESSION_HEADER } from './headers.ts'

export interface AcpConnectionOptions {
  readonly id: string
  readonly port: WebPort
  /** Of the request that opens it. */
  readonly web: WebRequest
  readonly gone: () => void
}

/** Where a message leaves: the stream of a session, or, under no name, that of the connection. */
type StreamName = string | undefined

interface Outlet {
  stream: EventStream | undefined
  readonly waiting: Buffer[]
}

const STREAMLESS_MS = 60_000
/** What waits for streams, up to this, holds up nothing else. */
const WAITING_BYTES = 1024 * 1024
/** Requests whose stream is remembered; those that are cancelled may never be answered, so the oldest are forgotten. */
const MAX_ANSWERS = 10_000
/** Their answers leave on the stream of the connection, though they name a session. */
const ANSWERED_APART = new Set(['session/load'])

const envelope = new Envelope()

export class AcpConnection implements MessageListener {
  readonly #options: AcpConnectionOptions
  readonly principal: Principal
  readonly pool: PoolId | undefined
  readonly #client: MessageClient
  readonly #gate = new ReadGate()
  readonly #outlets = new Map<StreamName, Outlet>()
  /** Of requests under way: the stream on which their answer is due. */
  readonly #answers = new Map<IdKey, string>()
  #waitingBytes = 0
  /** The request that waits for the answer to `initialize`. */
  #greeting: { readonly web: WebRequest; readonly id: string } | undefined
  #patience: NodeJS.Timeout | undefined
  #isOver = false

  constructor(options: AcpConnectionOptions) {
    const { port, web } = options
    const { admitted, connection, pool } = web
    this.#options = options
    this.principal = admitted.identity.principal
    this.pool = pool
    const entrance = { door: 'http', isLocal: false, identity: admitted.identity, pool } as const
    this.#client = port.open(entrance, admitted, connection.peer, this)
  }

  // ---- from the client ----

  /** Its first message, whose answer goes with the id of the connection. */
  greet(web: WebRequest, { line, envelope: head }: Message): void {
    this.#greeting = { web, id: head.idSpelling() }
    web.onceClosed(() => this.#greeting !== undefined && this.leave())
    this.#client.send(line)
  }

  hasRoom(): Promise<void> {
    return this.#gate.pass()
  }

  /** Any other message: it is taken, and answered on a stream. */
  post(web: WebRequest, { line, envelope: head }: Message): void {
    const session = head.shape === SHAPE.response ? undefined : head.text(FIELD.paramsSessionId)
    const id = head.idSpelling()
    if (session !== undefined && web.header(SESSION_HEADER) !== session)
      return web.refuse({ reason: 'session_required', id, detail: { sessionId: session } })
    const key = head.shape === SHAPE.request ? head.key(FIELD.id) : undefined
    const isApart = session === undefined || ANSWERED_APART.has(head.text(FIELD.method) ?? '')
    if (this.#isOver) return web.refuse({ reason: 'unknown_connection', id })
    if (key !== undefined && !isApart) remember(this.#answers, key, session)
    this.#options.port.renew(this.#client.id, web.admitted)
    this.#client.send(line)
    web.answer(202, undefined)
  }

  /** A second stream of the same name ends the first. */
  openStream(web: WebRequest, name: StreamName): void {
    const outlet = this.#outletOf(name)
    outlet.stream?.end()
    const stream: EventStream = new EventStream(
      web,
      () => this.#streamGone(name, stream),
      () => this.#maybeDrained(),
    )
    outlet.stream = stream
    clearTimeout(this.#patience)
    for (const line of outlet.waiting.splice(0)) {
      this.#waitingBytes -= line.length
      stream.send(line)
    }
    this.#maybeDrained()
  }

  leave(): void {
    if (this.#isOver) return
    this.#client.leave()
    this.#end('flush')
  }

  #streamGone(name: StreamName, stream: EventStream): void {
    const outlet = this.#outlets.get(name)
    if (outlet?.stream !== stream) return
    outlet.stream = undefined
    if (outlet.waiting.length === 0) this.#outlets.delete(name)
    this.#expectStream()
    this.#maybeDrained()
  }

  #expectStream(): void {
    for (const { stream } of this.#outlets.values()) if (stream !== undefined) return
    clearTimeout(this.#patience)
    if (!this.#isOver) this.#patience = setTimeout(() => this.leave(), STREAMLESS_MS).unref()
  }

  // ---- from the bus ----

  get unsentBytes(): number {
    let bytes = Math.max(0, this.#waitingBytes - WAITING_BYTES)
    for (const { stream } of this.#outlets.values()) bytes += stream?.unsentBytes ?? 0
    return bytes
  }

  #maybeDrained(): void {
    if (this.unsentBytes === 0) this.#client.drained()
  }

  received(line: Buffer, fault: Reason | undefined): void {
    if (this.#greeting !== undefined && envelope.read(line, 0, line.length) === SHAPE.response)
      return this.#greeted(this.#greeting, line, fault)
    const name = this.#streamFor(line)
    const outlet = this.#outletOf(name)
    if (outlet.stream !== undefined) return outlet.stream.send(line)
    outlet.waiting.push(line)
    this.#waitingBytes += line.length
  }

  #greeted(
    { web, id }: { readonly web: WebRequest; readonly id: string },
    line: Buffer,
    fault: Reason | undefined,
  ): void {
    this.#greeting = undefined
    if (fault === undefined) {
      web.answer(200, line, { [CONNECTION_HEADER]: this.#options.id })
      return this.#expectStream()
    }
    web.refuse({ ...refusalOf(line, fault), id })
    this.leave()
  }

  #streamFor(line: Buffer): StreamName {
    const shape = envelope.read(line, 0, line.length)
    if (shape !== SHAPE.response) return envelope.text(FIELD.paramsSessionId)
    const key = envelope.key(FIELD.id)
    if (key === undefined) return undefined
    const name = this.#answers.get(key)
    this.#answers.delete(key)
    return name
  }

  #outletOf(name: StreamName): Outlet {
    const known = this.#outlets.get(name)
    if (known !== undefined) return known
    const outlet: Outlet = { stream: undefined, waiting: [] }
    this.#outlets.set(name, outlet)
    return outlet
  }

  routed(): void {}

  pause(): void {
    this.#gate.pause()
  }

  resume(): void {
    this.#gate.resume()
  }

  closed(how: 'flush' | 'drop'): void {
    this.#greeting?.web.refuse({ reason: 'shutting_down', id: this.#greeting.id })
    this.#end(how)
  }

  #end(how: 'flush' | 'drop'): void {
    this.#isOver = true
    this.#greeting = undefined
    clearTimeout(this.#patience)
    this.#gate.resume()
    for (const { stream } of this.#outlets.values()) {
      if (how === 'flush') stream?.end()
      else stream?.destroy()
    }
    this.#outlets.clear()
    this.#options.gone()
  }
}

function remember(answers: Map<IdKey, string>, key: IdKey, session: string): void {
  answers.set(key, session)
  if (answers.size > MAX_ANSWERS) answers.delete(answers.keys().next().value!)
}
