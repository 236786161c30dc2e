/**
 * One MCP session of the handshake era: a client of the kernel, the POSTs that it has sent and the streams by which it hears
 * (contract 10.7 to 10.10).
 *
 * Messages pass as they are. Which stream a message goes to, and what can be had again, is decided in `session-streams.ts`. A lost
 * connection ends nothing here: the session ends by its client's word, by idleness, or by the kernel.
 */
import { randomBytes } from 'node:crypto'
import type { Reason } from '../../kernel/faults.ts'
import type { PoolId } from '../../kernel/vocabulary.ts'
import type { MessageClient, MessageListener } from '../../transports/messages.ts'
import { Envelope, SHAPE } from '../../wire/envelope.ts'
import { FIELD } from '../../wire/fields.ts'
import { errorLine } from '../../wire/jsonrpc.ts'
import { EventStream } from '../event-stream.ts'
import { webFaultOf } from '../faults.ts'
import type { WebPort } from '../port.ts'
import { ReadGate } from '../read-gate.ts'
import type { Refusal, WebRequest } from '../web-request.ts'
import { type Asked, InFlight } from './in-flight.ts'
import { Outflow } from './outflow.ts'
import { Post } from './post.ts'
import { Reply } from './reply.ts'
import { allowsEmptyEvents } from './revisions.ts'
import { type Event, SessionStreams, type StreamId } from './session-streams.ts'
import { answerOnce, refusalIn } from './statuses.ts'

/** Belong to no request: they go where nothing else is asked. */
const FOR_GET: ReadonlySet<string> = new Set([
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
])
const CANCELLED = 'notifications/cancelled'
const envelope = new Envelope()

export interface SessionNews {
  /** The handshake is answered: the revision that was agreed on, if it has succeeded. */
  answered(line: Buffer, fault: Reason | undefined, revision: string | undefined): void
  /** It is over, and by whom. */
  ended(by: 'client' | 'bus', how: 'flush' | 'drop'): void
}

export class Session implements MessageListener {
  /** What was agreed on; empty while that is not known. */
  revision = ''
  readonly #port: WebPort
  readonly #news: SessionNews
  readonly #streams = new SessionStreams(randomBytes(5).toString('hex'))
  readonly #connections = new Map<StreamId, EventStream>()
  readonly #posts = new Map<StreamId, Post>()
  readonly #inFlight = new InFlight<Post>()
  readonly #outflow: Outflow
  #client: MessageClient | undefined
  #isShakingHands = true
  #isOver = false
  /** What it sends waits for the end of its handshake, and while it would fill a full queue. */
  readonly #handshake = new ReadGate()
  readonly #flow = new ReadGate()
  #usedAtMs = performance.now()
  #told = 0

  constructor(port: WebPort, news: SessionNews) {
    this.#port = port
    this.#news = news
    this.#outflow = new Outflow(() => this.#client?.drained())
    this.#handshake.pause()
  }

  /** It becomes a client of the kernel, whose first message is this. */
  open(web: WebRequest, pool: PoolId | undefined, initialize: Buffer): void {
    const { admitted, connection } = web
    const entrance = { door: 'http', isLocal: false, identity: admitted.identity, pool } as const
    this.#client = this.#port.open(entrance, admitted, connection.peer, this)
    this.#client.send(initialize)
  }

  /** Somebody has shown a credential for it. */
  renew({ admitted }: WebRequest): void {
    if (this.#client !== undefined) this.#port.renew(this.#client.id, admitted)
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get streamCount(): number {
    return this.#connections.size
  }

  /** Settles when more of it may be read; false: it has ended. */
  async ready(): Promise<boolean> {
    await this.#handshake.pass()
    await this.#flow.pass()
    return !this.#isOver
  }

  /** A word of our own for its client. */
  say(line: Buffer): void {
    this.#client?.send(line)
  }

  // ---- from its client ----

  /** Messages of one POST; `isArray`: they came, and are answered, in one array. */
  post(web: WebRequest, lines: readonly Buffer[], isArray: boolean): void {
    this.#usedAtMs = performance.now()
    const shapes = lines.map((line) => envelope.read(line, 0, line.length))
    const owed = shapes.filter((shape) => shape === SHAPE.request).length
    const post = owed === 0 ? undefined : this.#openPost(web, { isArray, owed })
    for (const line of lines) {
      if (this.#isOver) break
      this.#send(line, post)
    }
    if (post === undefined) web.answer(202, undefined)
  }

  #openPost(web: WebRequest, about: { isArray: boolean; owed: number }): Post {
    const stream = this.#streams.openPost()
    const reply = new Reply(web, {
      opened: (connection) => this.#opened(stream, connection),
      gone: () => this.#lost(stream),
      drained: () => this.#outflow.drained(),
    })
    const post = new Post(reply, stream, about)
    this.#posts.set(stream, post)
    return post
  }

  #send(line: Buffer, post: Post | undefined): void {
    const shape = envelope.read(line, 0, line.length)
    if (shape === SHAPE.request) return this.#client!.send(this.#inFlight.ask(envelope, post!))
    if (shape === SHAPE.notification && envelope.text(FIELD.method) === CANCELLED) return this.#sendCancel(line)
    this.#client!.send(line)
  }

  /** Whoever cancels is owed no answer. */
  #sendCancel(line: Buffer): void {
    const key = envelope.key(FIELD.requestId)
    const asked = key === undefined ? undefined : this.#inFlight.find(key)
    if (asked === undefined) return this.#client!.send(line)
    const sent = this.#inFlight.cancelled(envelope, asked)
    this.#inFlight.strike(asked)
    this.#client!.send(sent)
    const { owner: post } = asked
    const due = post.excuse()
    if (due !== undefined) this.#answer(post, due, undefined)
    else if (post.isAnswered) this.#closePost(post)
  }

  /** Nothing is owed any more, and nothing is to be said. */
  #closePost(post: Post): void {
    if (post.reply.isWaiting) post.reply.open()
    this.#finish(post)
  }

  /** The stream for what belongs to no request, or one that goes on where its reader lost it. */
  get(web: WebRequest, lastEventId: string | undefined): void {
    this.#usedAtMs = performance.now()
    if (lastEventId !== undefined) return this.#resume(web, lastEventId)
    const { stream, ended } = this.#streams.openGet(performance.now())
    if (ended !== undefined) this.#disconnect(ended)
    this.#opened(stream, this.#connect(web, stream))
    this.#release()
  }

  #resume(web: WebRequest, lastEventId: string): void {
    const resumption = this.#streams.resume(lastEventId)
    if (resumption.outcome === 'unknown') return web.refuse({ reason: 'unknown_event' })
    if (resumption.outcome === 'over') return web.answer(204, undefined)
    const { stream, missed, isEnded } = resumption
    this.#disconnect(stream)
    const connection = this.#connect(web, stream)
    for (const event of missed) connection.send(event.line, event)
    this.#outflow.add(web.response)
    if (isEnded) return connection.end()
    this.#connections.set(stream, connection)
    this.#release()
  }

  #connect(web: WebRequest, stream: StreamId): EventStream {
    const connection: EventStream = new EventStream(
      web,
      () => this.#lost(stream, connection),
      () => this.#outflow.drained(),
    )
    return connection
  }

  // ---- from the bus ----

  get unsentBytes(): number {
    return this.#outflow.unsentBytes
  }

  received(line: Buffer, fault: Reason | undefined): void {
    const shape = envelope.read(line, 0, line.length)
    if (shape === SHAPE.response) return this.#answered(line, fault)
    const progress = this.#inFlight.progress(envelope)
    if (progress !== undefined) return this.#tell(progress.asked.owner.stream, progress.line)
    const isForGet = FOR_GET.has(envelope.text(FIELD.method) ?? '')
    const stream = this.#streams.choose(isForGet)
    if (stream !== undefined) return this.#tell(stream, line)
    const question = shape === SHAPE.request ? envelope.idSpelling() : undefined
    this.#refuseQuestions(this.#streams.hold(line, { isForGet, question, nowMs: performance.now() }))
  }

  #answered(line: Buffer, fault: Reason | undefined): void {
    if (this.#isShakingHands) return this.#shookHands(line, fault)
    const returned = this.#inFlight.answer(envelope)
    if (returned === undefined) return this.#unasked(line, fault)
    this.#answerOne(returned.asked, returned.line, fault)
  }

  #answerOne({ owner: post, idSpelling }: Asked<Post>, line: Buffer, fault: Reason | undefined): void {
    const due = post.take(line)
    const refusal = post.isArray ? undefined : refusalIn(line, fault, 'handshake', idSpelling)
    if (due !== undefined) this.#answer(post, due, refusal)
  }

  #shookHands(line: Buffer, fault: Reason | undefined): void {
    const revision = envelope.has(FIELD.result) ? (envelope.text(FIELD.resultProtocolVersion) ?? '') : undefined
    this.revision = revision ?? ''
    this.#isShakingHands = false
    this.#news.answered(line, fault, revision)
    this.#handshake.resume()
  }

  /** A word of the bus about the client as a whole is one for all that it has asked; an answer too late is nobody's. */
  #unasked(line: Buffer, fault: Reason | undefined): void {
    if (fault === undefined) return this.#port.refused('late_answer')
    for (const asked of [...this.#inFlight.owners()]) {
      this.#inFlight.strike(asked)
      this.#answerOne(asked, line, fault)
    }
  }

  #answer(post: Post, line: Buffer, refusal: Refusal | undefined): void {
    const stream = post.stream!
    const { reply, isAnswered } = post
    if (!this.#posts.has(stream)) return this.#port.refused('no_stream')
    if (reply.isWaiting && isAnswered) {
      reply.settle((web) => answerOnce(web, line, refusal))
      this.#outflow.addAnswer(reply.web.response)
      this.#streams.forget(stream)
    } else this.#tell(stream, line)
    if (isAnswered) this.#finish(post)
  }

  /** One more event of the stream, which opens if it was none yet. */
  #tell(stream: StreamId | undefined, line: Buffer): void {
    if (stream === undefined || !this.#streams.has(stream)) return this.#port.refused('no_stream')
    const post = this.#posts.get(stream)
    if (post?.reply.isWaiting) post.reply.open()
    this.#deliver(stream, this.#streams.append(stream, line))
  }

  #deliver(stream: StreamId, { line, id }: Event): void {
    this.#connections.get(stream)?.send(line, { id })
  }

  routed(): void {}

  pause(): void {
    this.#flow.pause()
  }

  resume(): void {
    this.#flow.resume()
  }

  closed(how: 'flush' | 'drop'): void {
    this.#over('bus', how)
  }

  // ---- connections ----

  #opened(stream: StreamId, connection: EventStream): void {
    // A POST that has been given no event may be resumed all the same; its own reader was there first.
    this.#disconnect(stream)
    this.#connections.set(stream, connection)
    this.#outflow.add(connection.web.response)
    if (allowsEmptyEvents(this.revision)) connection.begin(this.#streams.startOf(stream))
  }

  /** A reader that has seen nothing cannot come back for the rest. */
  #lost(stream: StreamId, connection?: EventStream): void {
    if (connection !== undefined && this.#connections.get(stream) !== connection) return
    this.#usedAtMs = performance.now()
    if (this.#connections.delete(stream)) return this.#streams.lost(stream)
    this.#posts.delete(stream)
    this.#streams.forget(stream)
  }

  #disconnect(stream: StreamId): void {
    const connection = this.#connections.get(stream)
    this.#connections.delete(stream)
    connection?.end()
  }

  #finish({ stream }: Post): void {
    this.#posts.delete(stream!)
    this.#streams.end(stream!, performance.now())
    this.#disconnect(stream!)
  }

  /** There is a stream that was not there: what waited for one goes out. */
  #release(): void {
    for (const { stream, ...event } of this.#streams.release()) {
      const post = this.#posts.get(stream)
      if (post?.reply.isWaiting) post.reply.open()
      this.#deliver(stream, event)
    }
  }

  #refuseQuestions(ids: readonly string[]): void {
    for (const id of ids) this.#client!.send(errorLine(id, webFaultOf('no_stream')).subarray(0, -1))
    for (; this.#told < this.#streams.droppedCount; this.#told++) this.#port.refused('no_stream')
  }

  // ---- its end ----

  /** Time has passed; true: it has been without a stream and without anything in flight for so long. */
  isIdleFor(idleMs: number): boolean {
    const nowMs = performance.now()
    this.#refuseQuestions(this.#streams.expire(nowMs))
    if (this.#streams.isRead || this.#inFlight.size > 0) this.#usedAtMs = nowMs
    return nowMs - this.#usedAtMs >= idleMs
  }

  /** Its pool is lost to its principal, and what was accepted is answered. */
  isLostWith(pool: PoolId): boolean {
    return this.#client !== undefined && this.#inFlight.size === 0 && !this.#port.mayUse(this.#client.id, pool)
  }

  end(): void {
    if (this.#isOver) return
    this.#client?.leave()
    this.#over('client', 'flush')
  }

  #over(by: 'client' | 'bus', how: 'flush' | 'drop'): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#news.ended(by, how)
    const reason = this.#port.isShuttingDown ? 'shutting_down' : 'unknown_session'
    const refuse = (reply: Reply, id = 'null'): void => {
      if (reply.isWaiting) reply.settle((web) => (how === 'drop' ? web.response.destroy() : web.refuse({ reason, id })))
    }
    for (const { owner, idSpelling } of this.#inFlight.owners()) if (!owner.isArray) refuse(owner.reply, idSpelling)
    for (const { reply } of this.#posts.values()) refuse(reply)
    for (const connection of this.#connections.values()) if (how === 'flush') connection.end()
    if (how === 'drop') this.#outflow.destroy()
    this.#connections.clear()
    this.#posts.clear()
    this.#handshake.resume()
    this.#flow.resume()
  }
}
