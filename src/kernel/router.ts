/**
 * Decides where a line goes: from a client to a worker, and back (contract 6).
 *
 * One generic piece. It holds no protocol: what a dialect adds stands in rows that `protocol.ts` reads. Invariant: a line
 * reaches the peer it is meant for or nobody, and every request is recorded before it is sent and closed before its answer
 * is delivered.
 */
import { Envelope, SHAPE } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { isSpace } from '../wire/json-text.ts'
import type { Core } from './core.ts'
import { FAULTS, faultLine, type Reason } from './faults.ts'
import type { Flow } from './flow.ts'
import { FIXED } from './limits.ts'
import type { Client, Peer, Worker } from './peers.ts'
import type { Pool } from './pools.ts'
import { type Request, spell } from './requests.ts'
import { replace, splice } from './splice.ts'
import { about, type Supervisor } from './supervisor.ts'
import type { PoolId, SessionId } from './vocabulary.ts'

/** What the router cannot do alone. */
export interface RouterHost {
  /** The client is told no more than it is owed, then closed. */
  closeClient(client: Client): void
  /** A client that sends no more may have got its last answer. */
  maybeFinish(client: Client): void
}

const BUS_PREFIX = Buffer.from('"bus::')

export class Router {
  readonly #core: Core
  readonly #flow: Flow
  readonly #host: RouterHost
  readonly #envelope = new Envelope()
  supervisor!: Supervisor

  constructor(core: Core, flow: Flow, host: RouterHost) {
    this.#core = core
    this.#flow = flow
    this.#host = host
  }

  /** A line has come from `peer`; its newline stands at `end`. */
  takeLine(peer: Peer, bytes: Buffer, start: number, end: number): void {
    if (isBlank(bytes, start, end)) return
    const shape = this.#envelope.read(bytes, start, end)
    if (peer.kind === 'client') this.#fromClient(peer, shape)
    else this.#fromWorker(peer, shape)
  }

  // ---- from a client ----

  #fromClient(client: Client, shape: number): void {
    const envelope = this.#envelope
    this.#core.totals.linesFromClients++
    if (shape === SHAPE.notJson) return this.#closeFor(client, 'not_json', 'null')
    if (shape === SHAPE.bad) return this.#closeFor(client, 'bad_envelope', envelope.idSpelling(), envelope.problem)
    const isFirst = !client.hasSpoken
    client.hasSpoken = true
    if (shape === SHAPE.response) return this.#takeAnswer(client)
    if (envelope.hasBadParamsSession) {
      const problem = 'params.sessionId must be a string of at most 1 KiB'
      return this.#closeFor(client, 'bad_envelope', envelope.idSpelling(), problem)
    }
    if (this.#isForBus()) return this.#takeBusMethod(client, shape, isFirst)
    this.#route(client, shape === SHAPE.request)
  }

  #isForBus(): boolean {
    const { bytes } = this.#envelope
    const at = this.#envelope.startOf(FIELD.method)
    for (let i = 0; i < BUS_PREFIX.length; i++) if (bytes[at + i] !== BUS_PREFIX[i]) return false
    return true
  }

  /** The bus's own methods; `bus::open` chooses the pool of a connection (contract 6.3). */
  #takeBusMethod(client: Client, shape: number, isFirst: boolean): void {
    const envelope = this.#envelope
    const method = envelope.text(FIELD.method)!
    const isRequest = shape === SHAPE.request
    if (method !== 'bus::open' || !isFirst) {
      return this.#refuse(client, isRequest, 'unknown_method', { method })
    }
    const pool: unknown = JSON.parse(envelope.bytes.utf8Slice(envelope.start, envelope.end))?.params?.pool
    if (typeof pool !== 'string' || !this.#core.pools.has(pool)) {
      const line = faultLine(envelope.idSpelling(), 'unknown_pool', { pool, pools: this.#poolNames() })
      this.#core.countRefusal('unknown_pool')
      this.#flow.sendLine(client, line)
      return this.#host.closeClient(client)
    }
    client.pool = pool
    if (isRequest)
      this.#flow.sendLine(
        client,
        Buffer.from(`{"jsonrpc":"2.0","id":${envelope.idSpelling()},"result":{"pool":${JSON.stringify(pool)}}}\n`),
      )
  }

  #route(client: Client, isRequest: boolean): void {
    if (isRequest && this.#core.phase !== 'running') return this.#refuse(client, true, 'shutting_down')
    if (isRequest && client.pendingCount >= this.#core.spec.limits.maxPendingPerClient) {
      return this.#refuse(client, true, 'too_many_pending', { limit: this.#core.spec.limits.maxPendingPerClient })
    }
    const envelope = this.#envelope
    const top = envelope.text(FIELD.sessionId)
    const inner = envelope.has(FIELD.paramsSessionId) ? envelope.text(FIELD.paramsSessionId) : undefined
    if (top === undefined && inner === undefined) return this.#routeFree(client, isRequest)
    this.#routeSession(client, isRequest, top, inner === top ? undefined : inner)
  }

  /** No session is named: the next worker of the pool. */
  #routeFree(client: Client, isRequest: boolean): void {
    const pool = this.#choosePool(client, isRequest)
    if (pool === undefined) return
    const worker = pool.next()
    if (worker === undefined) return this.#waitForWorker(client, pool, isRequest)
    this.#sendToWorker(client, worker, isRequest)
  }

  /** Sessions are named, at the top or in params or both: each must be the client's own or new (contract 4.2.2, 6.4). */
  #routeSession(client: Client, isRequest: boolean, top: SessionId | undefined, inner: SessionId | undefined): void {
    const names = [top, inner].filter((name) => name !== undefined)
    for (const name of names) {
      const reason = this.#sessionFault(client, name)
      if (reason !== undefined) return this.#refuse(client, isRequest, reason, { sessionId: name })
    }
    const known = names.map((name) => client.sessions.get(name)).find((session) => session !== undefined)
    let worker = known?.worker
    if (worker === undefined) {
      const pool = this.#choosePool(client, isRequest)
      if (pool === undefined) return
      worker = pool.next()
      if (worker === undefined) return this.#waitForWorker(client, pool, isRequest)
    }
    for (const name of names) {
      const session = client.sessions.get(name)
      if (session !== undefined && session.worker !== worker) {
        return this.#refuse(client, isRequest, 'session_id_conflict', { sessionId: name })
      }
    }
    for (const name of names) if (!client.sessions.has(name)) this.#core.sessions.bind(name, client, worker)
    this.#sendToWorker(client, worker, isRequest)
  }

  #sessionFault(client: Client, name: SessionId): Reason | undefined {
    if (client.sessions.has(name)) return undefined
    if (client.lost.has(name)) return 'session_lost'
    if (this.#core.sessions.isForeign(name, client)) return 'session_not_owned'
    const limit = this.#core.spec.limits.maxSessionsPerClient
    return client.sessions.size + client.lost.size >= limit ? 'too_many_sessions' : undefined
  }

  /** Contract 6.3, for a message that no session binds. */
  #choosePool(client: Client, isRequest: boolean): Pool | undefined {
    const { pools, spec } = this.#core
    const named = this.#envelope.has(FIELD.pool) ? this.#envelope.text(FIELD.pool) : (client.pool ?? spec.defaultPool)
    if (named !== undefined) {
      const pool = pools.get(named)
      if (pool === undefined) this.#refuse(client, isRequest, 'unknown_pool', { pool: named, pools: this.#poolNames() })
      return pool
    }
    if (pools.size === 1) for (const pool of pools.values()) return pool
    this.#refuse(client, isRequest, 'pool_required', { pools: this.#poolNames() })
    return undefined
  }

  #poolNames(): PoolId[] {
    return [...this.#core.pools.keys()]
  }

  #sendToWorker(client: Client, worker: Worker, isRequest: boolean): void {
    const envelope = this.#envelope
    if (!isRequest) return this.#flow.send(worker, envelope.bytes, envelope.start, envelope.end + 1)
    if (worker.outstanding.size === worker.ownerless.size) worker.lastActivityMs = this.#core.nowMs
    const request = this.#core.requests.open(envelope, client, worker)
    const { requestTimeoutMs } = worker.pool.spec.limits
    if (requestTimeoutMs > 0) {
      request.timer = this.#core.timers.set(this.#core.nowMs + requestTimeoutMs, () => this.#timeOut(request))
    }
    if (request.spelling === undefined) this.#flow.send(worker, envelope.bytes, envelope.start, envelope.end + 1)
    else this.#flow.sendLine(worker, splice(envelope, [replace(envelope, FIELD.id, spell(request.key))]))
  }

  #timeOut(request: Request): void {
    const { client } = request
    if (client === undefined) return
    this.#core.requests.disown(request)
    this.#core.countRefusal('request_timeout')
    this.#flow.sendLine(client, faultLine(request.idSpelling, 'request_timeout'))
    if (client.state === 'half-closed') this.#host.maybeFinish(client)
    this.supervisor.maybeDismiss(request.worker)
  }

  /** No worker is ready: the message waits for one that is coming, in order (contract 7.2). */
  #waitForWorker(client: Client, pool: Pool, isRequest: boolean): void {
    if (!pool.isExpectingWorker || this.#core.phase !== 'running') {
      const why = pool.workers.find((worker) => worker.lastError !== undefined)?.lastError
      return this.#refuse(client, isRequest, 'no_worker', { pool: pool.spec.id, ...(why === undefined ? {} : { why }) })
    }
    const { bytes, start, end } = this.#envelope
    const line = Buffer.from(bytes.subarray(start, end + 1))
    pool.waiting.push({ client, line, isRequest, untilMs: this.#core.nowMs + FIXED.workerWaitMs })
    pool.waitingBytes += line.length
    if (isRequest) client.pendingCount++
    if (pool.waiting.length === 1) this.#armWait(pool)
    const limitBytes = pool.spec.limits.maxOutputQueueBytes
    if (pool.waitingBytes > limitBytes && client.blockedOn === undefined) this.#flow.block(client, pool.gate)
  }

  #armWait(pool: Pool): void {
    const first = pool.waiting[0]
    if (first === undefined) return
    this.#core.timers.set(first.untilMs, () => {
      this.#failWaiting(pool, (waiting) => waiting.untilMs <= this.#core.nowMs)
      this.#armWait(pool)
    })
  }

  #failWaiting(pool: Pool, isOver: (waiting: Pool['waiting'][number]) => boolean): void {
    const over = pool.waiting.filter(isOver)
    this.#setWaiting(
      pool,
      pool.waiting.filter((waiting) => !isOver(waiting)),
    )
    for (const { client, line, isRequest } of over) {
      if (!isRequest) {
        this.#core.drop('no_worker')
        continue
      }
      client.pendingCount--
      this.#envelope.read(line, 0, line.length - 1)
      const reason = this.#core.phase === 'running' ? 'no_worker' : 'shutting_down'
      this.#core.countRefusal(reason)
      this.#flow.sendLine(client, faultLine(this.#envelope.idSpelling(), reason, { pool: pool.spec.id }))
      if (client.state === 'half-closed') this.#host.maybeFinish(client)
    }
  }

  #setWaiting(pool: Pool, waiting: Pool['waiting']): void {
    pool.waiting = waiting
    pool.waitingBytes = waiting.reduce((bytes, { line }) => bytes + line.length, 0)
    if (pool.waitingBytes * 2 < pool.spec.limits.maxOutputQueueBytes || waiting.length === 0) {
      this.#flow.release(pool.gate)
    }
  }

  /** A worker of the pool is ready: those who waited go first, in order. */
  serveWaiting(pool: Pool): void {
    const { waiting } = pool
    if (waiting.length === 0) return
    pool.waiting = []
    pool.waitingBytes = 0
    for (const { client, line, isRequest } of waiting) {
      if (isRequest) client.pendingCount--
      this.#envelope.read(line, 0, line.length - 1)
      this.#route(client, isRequest)
    }
    if (pool.waiting.length === 0) this.#flow.release(pool.gate)
  }

  /** Nobody will come: those who wait are told at once. */
  poolEmptied(pool: Pool): void {
    this.#failWaiting(pool, () => true)
  }

  // ---- refusals ----

  /** A request is answered; a notification can only be counted. */
  #refuse(client: Client, isRequest: boolean, reason: Reason, detail?: Record<string, unknown>): void {
    if (!isRequest) return this.#core.drop(reason)
    this.#core.countRefusal(reason)
    this.#flow.sendLine(client, faultLine(this.#envelope.idSpelling(), reason, detail))
  }

  #closeFor(client: Client, reason: Reason, idSpelling: string, problem?: string): void {
    this.#core.countRefusal(reason)
    this.#core.log('warn', `client closed: ${problem ?? FAULTS[reason].message}`, { client: client.id, reason })
    this.#flow.sendLine(client, faultLine(idSpelling, reason, problem === undefined ? undefined : { problem }))
    this.#host.closeClient(client)
  }

  /** The line was longer than allowed; what was seen of it may tell its id (contract 8.2). */
  overflowed(peer: Peer): void {
    if (peer.kind === 'client') {
      return this.#closeFor(
        peer,
        'message_too_large',
        idSeenIn(peer.splitter.head),
        `a line may have ${peer.splitter.maxLineBytes} bytes`,
      )
    }
    this.supervisor.endBroken(peer, 'worker_exited', { why: 'it wrote a line longer than max_input_buffer' })
  }

  // ---- from a worker ----

  #fromWorker(worker: Worker, shape: number): void {
    this.#core.totals.linesFromWorkers++
    if (shape === SHAPE.response) return this.#deliverAnswer(worker)
    if (shape === SHAPE.request || shape === SHAPE.notification)
      return this.#deliverCall(worker, shape === SHAPE.request)
    this.#dropJunk(worker, shape)
  }

  #dropJunk(worker: Worker, shape: number): void {
    const { bytes, start, end, problem } = this.#envelope
    this.#core.drop(shape === SHAPE.bad ? 'worker_bad_envelope' : 'junk_line')
    const why = shape === SHAPE.bad ? problem : 'it is not JSON'
    this.#core.log('warn', `worker wrote a line that was dropped: ${why}`, about(worker))
    const head = bytes.toString('latin1', start, Math.min(end, start + 80))
    this.#core.log('debug', 'first bytes of the dropped line', { ...about(worker), head })
  }

  #deliverAnswer(worker: Worker): void {
    const envelope = this.#envelope
    const key = envelope.key(FIELD.id)
    if (key === undefined) return this.#core.drop('null_id_error')
    const request = this.#core.requests.close(worker, key)
    if (request === undefined) return this.#core.drop('unknown_answer')
    if (worker.state === 'retiring') this.supervisor.maybeDismiss(worker)
    const { client } = request
    if (client === undefined) return this.#core.drop('late_answer')
    if (request.spelling === undefined) this.#flow.send(client, envelope.bytes, envelope.start, envelope.end + 1)
    else this.#flow.sendLine(client, splice(envelope, [replace(envelope, FIELD.id, request.spelling)]))
    if (client.state === 'half-closed') this.#host.maybeFinish(client)
  }

  /** A notification or a question: to the owner of the session it names (contract 6.2, 6.5). */
  #deliverCall(worker: Worker, isQuestion: boolean): void {
    const envelope = this.#envelope
    const name = envelope.text(FIELD.sessionId) ?? envelope.text(FIELD.paramsSessionId)
    const session = name === undefined ? undefined : worker.sessions.get(name)
    if (session === undefined) {
      const reason = name === undefined ? 'unroutable' : 'unknown_session'
      this.#core.log(
        'warn',
        `worker sent a message that names no session of a client; it was ${isQuestion ? 'refused' : 'dropped'}`,
        about(worker),
      )
      if (isQuestion) return this.#refuseQuestion(worker, envelope.idSpelling(), 'no_client')
      return this.#core.drop(reason)
    }
    const { client } = session
    if (!isQuestion) return this.#flow.send(client, envelope.bytes, envelope.start, envelope.end + 1)
    this.#ask(worker, client)
  }

  #ask(worker: Worker, client: Client): void {
    const envelope = this.#envelope
    if (client.state !== 'open') return this.#refuseQuestion(worker, envelope.idSpelling(), 'client_gone')
    if (client.questions.size >= this.#core.spec.limits.maxPendingPerClient) {
      return this.#refuseQuestion(worker, envelope.idSpelling(), 'overloaded')
    }
    const question = this.#core.requests.ask(envelope, worker, client)
    if (question.isAliased)
      this.#flow.sendLine(client, splice(envelope, [replace(envelope, FIELD.id, spell(question.key))]))
    else this.#flow.send(client, envelope.bytes, envelope.start, envelope.end + 1)
  }

  #refuseQuestion(worker: Worker, idSpelling: string, reason: Reason): void {
    this.#core.countRefusal(reason)
    this.#flow.sendLine(worker, faultLine(idSpelling, reason))
  }

  /** A client answers what a worker asked it. */
  #takeAnswer(client: Client): void {
    const envelope = this.#envelope
    const key = envelope.key(FIELD.id)
    if (key === undefined) return this.#core.drop('null_id_error')
    const question = client.questions.get(key)
    if (question === undefined) return this.#core.drop('unasked_answer')
    this.#core.requests.settle(question)
    const { worker } = question
    if (worker.generation !== question.generation || !worker.isAlive) return this.#core.drop('late_answer')
    if (question.isAliased)
      this.#flow.sendLine(worker, splice(envelope, [replace(envelope, FIELD.id, question.spelling)]))
    else this.#flow.send(worker, envelope.bytes, envelope.start, envelope.end + 1)
  }

  // ---- peers that go ----

  /** The client has ended its writing side: questions put to it are answered at once (contract 4.1.2). */
  refuseQuestionsOf(client: Client): void {
    for (const question of [...client.questions.values()]) {
      this.#core.requests.settle(question)
      const { worker } = question
      if (worker.generation !== question.generation || !worker.isAlive) continue
      this.#refuseQuestion(worker, question.spelling.toString(), 'client_gone')
    }
  }

  /** The client is gone: nothing of it stays but the ids that are still taken (contract 7.3). */
  clientGone(client: Client): void {
    this.refuseQuestionsOf(client)
    const workers = new Set<Worker>()
    while (client.newest !== undefined) {
      workers.add(client.newest.worker)
      this.#core.requests.disown(client.newest)
    }
    for (const session of client.sessions.values()) workers.add(session.worker)
    this.#core.sessions.endAllOf(client)
    for (const pool of this.#core.pools.values()) {
      if (pool.waiting.some((waiting) => waiting.client === client)) {
        this.#setWaiting(
          pool,
          pool.waiting.filter((waiting) => waiting.client !== client),
        )
      }
    }
    for (const worker of workers) this.supervisor.maybeDismiss(worker)
  }

  /** The worker is gone: everything it owed is answered, exactly once (contract 7.1). */
  workerEnded(worker: Worker): void {
    const { reason, detail } = worker.ending ?? { reason: 'worker_exited' as const, detail: {} }
    const outstanding = [...worker.outstanding.values()]
    for (const request of outstanding) {
      const { client } = request
      this.#core.requests.close(worker, request.key)
      if (client === undefined) continue
      this.#answerFor(request, client, reason, detail)
    }
    for (const question of [...worker.questions.values()]) this.#core.requests.settle(question)
    this.#core.sessions.loseAllOf(worker)
  }

  #answerFor(request: Request, client: Client, reason: Reason, detail: Record<string, unknown>): void {
    const cause = this.#core.phase === 'running' ? reason : 'shutting_down'
    this.#core.countRefusal(cause)
    this.#flow.sendLine(client, faultLine(request.idSpelling, cause, { pool: request.worker.pool.spec.id, ...detail }))
    if (client.state === 'half-closed') this.#host.maybeFinish(client)
  }

  /** The drain is over: what is still outstanding is answered (contract 7.4). */
  failOutstanding(): void {
    for (const worker of this.#core.workers.values()) {
      for (const request of [...worker.outstanding.values()]) {
        const { client } = request
        if (client === undefined) continue
        this.#core.requests.disown(request)
        this.#answerFor(request, client, 'shutting_down', {})
      }
    }
    for (const pool of this.#core.pools.values()) this.#failWaiting(pool, () => true)
  }

  /** Unanswered requests of clients that are still there. */
  get owedCount(): number {
    let owed = 0
    for (const client of this.#core.clients.values()) owed += client.pendingCount
    return owed
  }
}

function isBlank(bytes: Buffer, start: number, end: number): boolean {
  let i = start
  while (i < end && isSpace(bytes[i]!)) i++
  return i === end
}

const MAX_HEAD_BYTES = 4_096

/** Looks for a top-level id in the beginning of a line that is too long; what is not surely one is `null`. */
function idSeenIn(head: Buffer): string {
  const text = head.toString('utf8', 0, MAX_HEAD_BYTES)
  const found =
    /^\s*\{(?:\s*"(?!id")[^"\\]*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)\s*,)*?\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*[,}]/.exec(
      text,
    )
  return found?.[1] ?? 'null'
}
