/**
 * From a worker to the client that is entitled to it, or to nobody (contract 6.2, 6.5, 6.8, 6.9).
 *
 * An answer goes to whoever asked. Everything else is addressed by the row of its method; what cannot be attributed to
 * exactly one client is dropped and counted, or, being a question, refused. Nothing is ever broadcast that has content
 * of anybody's.
 */
import { FIELD } from '../wire/fields.ts'
import type { Announcements } from './announcements.ts'
import type { Assignment } from './assignment.ts'
import { rankOf } from './bonds.ts'
import type { Address, WorkerRow } from './dialect.ts'
import type { Client, Worker } from './peers.ts'
import { remember } from './remember.ts'
import { type Question, Request, spell } from './requests.ts'
import { type Edit, replace } from './splice.ts'
import { about } from './supervisor.ts'
import type { Switchboard } from './switchboard.ts'
import { beginTask, endTask, isOver } from './tasks.ts'

interface Target {
  readonly clients: Iterable<Client>
  readonly edit?: Edit | undefined
  /** What the message is about. */
  readonly subject?: Request | Question
}

const LOWER_T = 0x74

const BY_SESSION: WorkerRow = { to: ['session'] }

export class Outbound {
  readonly #board: Switchboard
  readonly #announcements: Announcements
  readonly #assignment: Assignment
  readonly #addresses: Readonly<Record<Address, (worker: Worker) => Target | undefined>>

  constructor(board: Switchboard, announcements: Announcements, assignment: Assignment) {
    this.#board = board
    this.#announcements = announcements
    this.#assignment = assignment
    this.#addresses = {
      session: (worker) => this.#bySession(worker),
      request: (worker) => this.#byRequest(worker),
      question: (worker) => this.#byQuestion(worker),
      token: (worker) => this.#byToken(worker),
      task: (worker) => only(worker.tasks.get(this.#text(FIELD.metaTaskId) ?? this.#text(FIELD.taskId) ?? '')),
      elicitation: (worker) => only(worker.elicitations.get(this.#text(FIELD.elicitationId) ?? '')),
      server: (worker) => only(worker.servers.get(this.#text(FIELD.serverId) ?? '')),
      subscription: (worker) => this.#bySubscription(worker),
      subscribers: (worker) => this.#bySubscribers(worker),
      log: (worker) => this.#byLog(worker),
      everyone: (worker) => ({ clients: [...worker.bonds].map((bond) => bond.client) }),
      sole: (worker) => this.#bySole(worker),
    }
  }

  // ---- answers ----

  deliverAnswer(worker: Worker): void {
    const { core, envelope } = this.#board
    const key = envelope.key(FIELD.id)
    if (key === undefined) return core.drop('null_id_error')
    if (envelope.has(FIELD.partial) && this.#isPartial() && this.deliverLoose(worker)) return
    const request = core.requests.close(worker, key)
    if (request === undefined) return core.drop('unknown_answer')
    if (request.onAnswer !== undefined) return request.onAnswer(envelope.has(FIELD.result))
    this.#board.observation.answered(request)
    if (request.row !== undefined) this.#announcements.settle(request, worker)
    const client = request.client ?? lateReader(request)
    if (client === undefined) core.drop('late_answer')
    else this.#answer(client, request, worker)
    if (request.row?.session === 'announced')
      this.#announcements.releaseHeld(worker, (line) => this.#deliverHeld(worker, line))
    if (worker.state === 'retiring') this.#board.supervisor.maybeDismiss(worker)
    if (worker.holder !== undefined) this.#assignment.maybeRelease(worker)
  }

  #isPartial(): boolean {
    const { envelope } = this.#board
    return envelope.bytes[envelope.startOf(FIELD.partial)] === LOWER_T
  }

  /**
   * A part of an answer, or one in a spelling that only the gateway knows: to an exchange of the gateway's, which decides
   * when it is over. False: it is for nobody.
   */
  deliverLoose(worker: Worker): boolean {
    const { envelope } = this.#board
    const key = envelope.key(FIELD.id)
    const request = key === undefined ? undefined : worker.outstanding.get(key)
    const client = request?.client ?? request?.formerClient
    if (request === undefined || client === undefined || !client.isInternal) return false
    const { spelling } = request
    if (request.client === undefined) this.#dropLoose(request)
    else this.#board.forward(client, spelling === undefined ? undefined : [replace(envelope, FIELD.id, spelling)])
    return true
  }

  /** The exchange is over: after a part its id stays taken, for the worker will say more under it. */
  #dropLoose(request: Request): void {
    const { core, envelope } = this.#board
    core.drop('late_answer')
    if (envelope.has(FIELD.partial) && this.#isPartial()) return
    core.requests.close(request.worker, request.key)
  }

  #answer(client: Client, request: Request, worker: Worker): void {
    const { envelope } = this.#board
    if (request.tongue !== undefined) return this.#answerSpoken(client, request, worker)
    const edits = request.spelling === undefined ? undefined : [replace(envelope, FIELD.id, request.spelling)]
    if (worker.tongue?.dialect.hasSessions && !client.isInternal) this.#answerUnintroduced(client, worker, edits ?? [])
    else this.#board.forward(client, edits)
    if (client.state === 'half-closed') this.#board.host.maybeFinish(client)
  }

  /** Who has not shown what it speaks may still make sessions at an agent that others use, and ask for those there are. */
  #answerUnintroduced(client: Client, worker: Worker, edits: Edit[]): void {
    const isList = this.#board.envelope.has(FIELD.resultSessions)
    this.#announcements.adopt(worker, client, this.#text(FIELD.resultSessionId))
    this.#board.forward(client, isList ? [...edits, ...this.#announcements.hideSessions(client, worker)] : edits)
  }

  #answerSpoken(client: Client, request: Request, worker: Worker): void {
    const { envelope } = this.#board
    const conflict = this.#announcements.conflictOf(request, client)
    if (conflict !== undefined)
      return this.#board.fail(client, request.idSpelling, 'session_id_conflict', { sessionId: conflict })
    const edits: Edit[] = request.row === undefined ? [] : this.#announcements.editsFor(request, client, worker)
    if (request.spelling !== undefined) {
      edits.push(replace(envelope, FIELD.id, request.spelling))
      if (envelope.has(FIELD.resultSubscriptionId))
        edits.push(replace(envelope, FIELD.resultSubscriptionId, request.spelling))
    }
    this.#noteTask(client, worker, request)
    this.#board.forward(client, edits)
    if (client.state === 'half-closed') this.#board.host.maybeFinish(client)
  }

  #noteTask(client: Client, worker: Worker, request: Request): void {
    if (request.row?.endsTask) return endTask(worker, request.taskId!)
    const taskId = this.#text(FIELD.resultInnerTaskId) ?? this.#text(FIELD.resultTaskId)
    if (taskId !== undefined) beginTask(worker, taskId, client, request)
  }

  /** Nobody waits for the session that the request was to announce: what is held for it waits no longer either. */
  abandon({ row, worker }: Request): void {
    if (row?.session !== 'announced') return
    worker.announcing--
    if (worker.held.length === 0) return
    const { bytes, start, end } = this.#board.envelope
    this.#announcements.releaseHeld(worker, (line) => this.#deliverHeld(worker, line))
    // Whoever gave it up is not done with the line at hand.
    this.#board.envelope.read(bytes, start, end)
  }

  /** It waited for its session; any other address would have found its client before, and must not now, out of order. */
  #deliverHeld(worker: Worker, line: Buffer): void {
    this.#board.envelope.read(line, 0, line.length - 1)
    const isQuestion = this.#board.envelope.has(FIELD.id)
    const owner = this.#bySession(worker)
    if (owner === undefined) this.#discard(worker, BY_SESSION, isQuestion)
    else this.#deliver(worker, this.#rowFor(worker), owner, isQuestion)
  }

  // ---- notifications and questions ----

  deliverCall(worker: Worker, isQuestion: boolean): void {
    const row = this.#rowFor(worker)
    if (row.to[0] === 'everyone' && this.#board.core.spec.gateway === 'all')
      this.#board.core.actions.push({ do: 'list-changed', pool: worker.pool.spec.id })
    if (row.local === 'pong' && isQuestion) return this.#board.answer(worker, this.#board.envelope.idSpelling(), '{}')
    for (const address of row.to) {
      const target = this.#addresses[address](worker)
      if (target !== undefined) return this.#deliver(worker, row, target, isQuestion)
    }
    if (this.#announcements.maybeHold(worker, row)) return
    this.#discard(worker, row, isQuestion)
  }

  #rowFor(worker: Worker): WorkerRow {
    const { tongue } = worker
    return tongue === undefined
      ? BY_SESSION
      : (tongue.worker.find(this.#board.envelope) ?? tongue.dialect.otherFromWorker)
  }

  #deliver(worker: Worker, row: WorkerRow, { clients, edit, subject }: Target, isQuestion: boolean): void {
    if (isQuestion) {
      for (const client of clients) return this.#ask(worker, client, row, edit)
      return this.#discard(worker, row, true)
    }
    if (worker.pool.spec.trace) this.#board.observation.said(worker, subject, undefined)
    const edits = this.#editsOf(worker, edit)
    for (const client of clients) {
      this.#board.forward(client, edits)
      if (row.adopts !== undefined) this.#announcements.adopt(worker, client, this.#text(row.adopts))
    }
    if (row.tellsTask) this.#heedTask(worker)
    if (row.isFinal && subject !== undefined) this.#conclude(subject)
  }

  #editsOf(worker: Worker, edit: Edit | undefined): Edit[] | undefined {
    const edits = edit === undefined ? undefined : [edit]
    if (this.#board.core.sessionNames === undefined) return edits
    return [...(edits ?? []), ...this.#board.renamesFrom(worker)]
  }

  #heedTask(worker: Worker): void {
    const { bytes, start, end } = this.#board.envelope
    const params = JSON.parse(bytes.utf8Slice(start, end))?.params
    if (typeof params?.taskId === 'string' && isOver(params.status)) endTask(worker, params.taskId)
  }

  #conclude(subject: Request | Question): void {
    if (subject instanceof Request) this.#board.waive(subject)
    else this.#board.core.requests.settle(subject)
  }

  #ask(worker: Worker, client: Client, row: WorkerRow, edit: Edit | undefined): void {
    const { core, envelope } = this.#board
    if (client.state !== 'open') return this.#board.refuseQuestion(worker, envelope.idSpelling(), 'client_gone')
    if (client.questions.size >= core.spec.limits.maxPendingPerClient) {
      return this.#board.refuseQuestion(worker, envelope.idSpelling(), 'overloaded')
    }
    const question = core.requests.ask(envelope, worker, client)
    question.answerWhenGone = row.answerWhenGone
    if (worker.pool.spec.trace) this.#board.observation.said(worker, undefined, question)
    question.token = envelope.key(FIELD.metaProgressToken)
    const elicitationId = this.#text(FIELD.elicitationId)
    if (elicitationId !== undefined) remember(worker.elicitations, elicitationId, client)
    const edits = this.#editsOf(worker, edit) ?? []
    if (question.isAliased) edits.push(replace(envelope, FIELD.id, spell(question.key)))
    this.#board.forward(client, edits)
  }

  #discard(worker: Worker, row: WorkerRow, isQuestion: boolean): void {
    const { core, envelope } = this.#board
    const isNamed = this.#board.sessionNamed() !== undefined
    const fate = isQuestion ? 'refused' : 'dropped'
    core.log('warn', `worker sent a message that no client can be told it is for; it was ${fate}`, about(worker))
    if (isQuestion) return this.#board.refuseQuestion(worker, envelope.idSpelling(), 'no_client')
    core.drop(
      isNamed
        ? 'unknown_session'
        : row.to.includes('token')
          ? 'late_progress'
          : row === BY_SESSION
            ? 'unroutable'
            : 'unattributable',
    )
  }

  // ---- addresses ----

  #text(field: Parameters<Switchboard['textOf']>[0]): string | undefined {
    return this.#board.envelope.has(field) ? this.#board.envelope.text(field) : undefined
  }

  #bySession(worker: Worker): Target | undefined {
    const top = this.#text(FIELD.sessionId)
    const name = top ?? this.#text(FIELD.paramsSessionId) ?? this.#text(FIELD.innerSessionId)
    if (name === undefined) return undefined
    return only(worker.sessions.get(name)?.client ?? worker.claims.get(name)?.client)
  }

  #byRequest(worker: Worker): Target | undefined {
    const key = this.#board.envelope.key(FIELD.requestId)
    return this.#ofRequest(key === undefined ? undefined : worker.outstanding.get(key), FIELD.requestId)
  }

  #ofRequest(request: Request | undefined, field: Parameters<Switchboard['textOf']>[0]): Target | undefined {
    if (request?.client === undefined) return undefined
    const edit = request.spelling === undefined ? undefined : replace(this.#board.envelope, field, request.spelling)
    return { clients: [request.client], edit, subject: request }
  }

  #byQuestion(worker: Worker): Target | undefined {
    const key = this.#board.envelope.key(FIELD.requestId)
    const question = key === undefined ? undefined : worker.questions.get(key)
    if (question === undefined) return undefined
    const edit = question.isAliased ? replace(this.#board.envelope, FIELD.requestId, spell(question.key)) : undefined
    return { clients: [question.client], edit, subject: question }
  }

  #byToken(worker: Worker): Target | undefined {
    const key = this.#board.envelope.key(FIELD.progressToken)
    const request = key === undefined ? undefined : worker.tokens.get(key)
    if (request?.client === undefined) return undefined
    const { tokenSpelling } = request
    const edit =
      tokenSpelling === undefined ? undefined : replace(this.#board.envelope, FIELD.progressToken, tokenSpelling)
    return { clients: [request.client], edit, subject: request }
  }

  /** A subscription has the id of the request that opened it, as a string or as it is. */
  #bySubscription(worker: Worker): Target | undefined {
    const key = this.#board.envelope.key(FIELD.metaSubscriptionId)
    if (key === undefined) return undefined
    const request =
      worker.outstanding.get(key) ?? (typeof key === 'string' ? worker.outstanding.get(Number(key)) : undefined)
    const target = this.#ofRequest(request, FIELD.metaSubscriptionId)
    if (target?.edit === undefined || typeof key === typeof request!.key) return target
    return { ...target, edit: replace(this.#board.envelope, FIELD.metaSubscriptionId, quoted(request!.spelling!)) }
  }

  #bySubscribers(worker: Worker): Target | undefined {
    const subscribers = worker.subscriptions.get(this.#text(FIELD.uri) ?? '')
    if (worker.holder !== undefined) return only(worker.holder)
    return subscribers === undefined || subscribers.size === 0 ? undefined : { clients: [...subscribers] }
  }

  /** A log line says nothing of whom it is about: it is delivered only if just one client can be meant. */
  #byLog(worker: Worker): Target | undefined {
    const client = this.#soleClient(worker, worker.tongue === this.#board.tongues.mcpModern)
    if (client === undefined) return undefined
    const level = client.bonds.get(worker.pool.spec.id)?.level
    return level !== undefined && rankOf(this.#text(FIELD.level)) < level ? { clients: [] } : only(client)
  }

  /** Only what has no address: who names a session means its owner, and nobody else when that one has gone. */
  #bySole(worker: Worker): Target | undefined {
    if (worker.tongue?.dialect.hasSessions && this.#board.sessionNamed() !== undefined) return undefined
    return only(this.#soleClient(worker, false))
  }

  /** The one client a worker works for, unless it may still be at work for one that has gone or cancelled. */
  #soleClient(worker: Worker, wantsLog: boolean): Client | undefined {
    const client = worker.holder ?? soleInFlight(worker, wantsLog)
    if (client === undefined || this.#board.core.requests.mayBeAboutAnother(worker, client, wantsLog)) return undefined
    return client
  }
}

/** A number as a string of the same digits, which is how some servers give an id back. */
function quoted(spelling: string): string {
  return JSON.stringify(spelling)
}

/** A waived request has no owner any more, but who wanted it may still be there. */
function lateReader({ isWaived, formerClient }: Request): Client | undefined {
  return isWaived && formerClient?.state === 'open' ? formerClient : undefined
}

function only(client: Client | undefined): Target | undefined {
  return client === undefined ? undefined : { clients: [client] }
}

function soleInFlight(worker: Worker, wantsLog: boolean): Client | undefined {
  let sole: Client | undefined
  for (const { client, wantsLog: wants } of worker.outstanding.values()) {
    if (client === undefined || client === sole || (wantsLog && !wants)) continue
    if (sole !== undefined) return undefined
    sole = client
  }
  return sole
}
