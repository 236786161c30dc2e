/**
 * From a worker to the client that is entitled to it, or to nobody (contract 6.2, 6.5, 6.8, 6.9).
 *
 * An answer goes to whoever asked. Everything else is addressed by the row of its method; what cannot be attributed to
 * exactly one client is dropped and counted, or, being a question, refused. Nothing is ever broadcast that has content
 * of anybody's.
 */
import type { Envelope } from '../wire/envelope.ts'
import { FIELD, type Field } from '../wire/fields.ts'
import { isForBus } from '../wire/method-names.ts'
import { type Edit, replace } from '../wire/splice.ts'
import { BAD_LIST, hideTools } from '../wire/tool-list.ts'
import { LOOP } from '../wire/via.ts'
import { Announcements } from './announcements.ts'
import type { Address, WorkerRow } from './dialect-table.ts'
import { ownMap } from './empty.ts'
import type { KeptSession } from './kept/kept-session.ts'
import { FIXED } from './limits.ts'
import { type Question, Request, spell } from './owed.ts'
import type { Client, Worker } from './peers.ts'
import { remember } from './remember.ts'
import { mayUseTool } from './rights.ts'
import { about } from './supervisor.ts'
import { type Switchboard, sessionNamed } from './switchboard.ts'
import { beginTask, endTask, taskClientOf } from './tasks.ts'
import { saysLoop } from './via.ts'

interface Target {
  readonly clients: Iterable<Client>
  readonly edit?: Edit | undefined
  /** What the message is about. */
  readonly subject?: Request | Question
  /** The session that has clients of its own. */
  readonly kept?: KeptSession
}

const LOWER_T = 0x74

const NOBODY: readonly Client[] = []

const BY_SESSION: WorkerRow = { to: ['session'] }
/** From another node comes only what is for the one client of the stream. */
const FROM_NODE: WorkerRow = { to: ['session', 'holder'] }

export class Outbound {
  readonly #board: Switchboard
  readonly #announcements: Announcements
  readonly #addresses: Readonly<Record<Address, (worker: Worker, line: Envelope) => Target | undefined>>

  constructor(board: Switchboard) {
    this.#board = board
    this.#announcements = new Announcements(board)
    board.core.owed.onDisowned = (request) => this.#abandon(request)
    this.#addresses = {
      session: (worker, line) => this.#bySession(worker, line),
      request: (worker, line) => this.#byRequest(worker, line),
      question: (worker, line) => this.#byQuestion(worker, line),
      token: (worker, line) => this.#byToken(worker, line),
      task: (worker, line) =>
        only(taskClientOf(worker, textOf(line, FIELD.metaTaskId) ?? textOf(line, FIELD.taskId) ?? '')),
      elicitation: (worker, line) => only(worker.elicitations.get(textOf(line, FIELD.elicitationId) ?? '')),
      server: (worker, line) => only(worker.servers.get(textOf(line, FIELD.serverId) ?? '')),
      subscription: (worker, line) => this.#bySubscription(worker, line),
      subscribers: (worker, line) => this.#bySubscribers(worker, line),
      log: (worker, line) => this.#byLog(worker, line),
      everyone: (worker) => ({
        clients: [...worker.bonds].map(({ client }) => client).filter((client) => !awaitsWelcome(client, worker)),
      }),
      sole: (worker, line) => this.#bySole(worker, line),
      holder: ({ holder }) => (holder === undefined ? undefined : only(holder)),
    }
  }

  // ---- answers ----

  deliverAnswer(worker: Worker, line: Envelope): void {
    const { core, assignment } = this.#board
    const key = line.key(FIELD.id)
    if (key === undefined) return this.#dropUnasked(worker, line)
    if (line.has(FIELD.partial) && isPartial(line) && this.deliverLoose(worker, line)) return
    const request = worker.outstanding.get(key)
    if (request === undefined) return core.drop('unknown_answer')
    const { client } = request
    if (line.has(FIELD.error) && (request.deed ?? request.traffic) !== undefined) request.outcome = 'error'
    core.owed.settle(request)
    if (request.onAnswer !== undefined) return request.onAnswer(line, line.has(FIELD.result))
    this.#board.observation.answered(request, line)
    if (request.row !== undefined) this.#announcements.settle(request, client, worker, line)
    this.#hand(request, worker, line)
    if (request.row !== undefined) this.#follow(request, client, worker, line)
    if (worker.state === 'retiring') this.#board.supervisor.maybeDismiss(worker)
    if (worker.holder !== undefined) assignment.maybeRelease(worker)
  }

  /** An error without an id answers nobody; another bus may say with it why it does not want us any more. */
  #dropUnasked(worker: Worker, line: Envelope): void {
    const { core, supervisor } = this.#board
    core.drop('null_id_error')
    if (worker.pool.spec.isRemote && saysLoop(line)) supervisor.refused(worker, LOOP)
  }

  /** The answer goes to whoever asked, if that is still there. */
  #hand(request: Request, worker: Worker, line: Envelope): void {
    const { core, kept } = this.#board
    const isDone = request.claimed !== undefined && kept.claims.settle(request, worker, line)
    const reader = request.client ?? lateReader(request)
    if (reader !== undefined && !isDone) this.#answer(reader, request, worker, line)
    // The end of a turn is kept, whoever began it (contract 12.3).
    else if (reader === undefined && request.kept === undefined) core.drop('late_answer')
    if (request.claimed !== undefined) kept.claims.follow(request)
    if (request.kept !== undefined || request.keptFor !== undefined) kept.answered(request, line)
  }

  /** What comes behind an answer: lines that waited for the session it announces, whoever waited for the handshake. */
  #follow({ row, dialect, version }: Request, client: Client | undefined, worker: Worker, line: Envelope): void {
    const { handshakes } = this.#board
    if (row!.session === 'announced') this.#announcements.releaseHeld(worker, (held) => this.#deliverHeld(worker, held))
    if (row!.opens !== 'each') return
    const isWelcome = line.has(FIELD.result)
    if (client !== undefined && isWelcome) handshakes.tellRemembered(client, worker)
    handshakes.answered(worker, dialect!, version, line)
  }

  /**
   * A part of an answer, or one in a spelling that only the gateway knows: to an exchange of the gateway's, which decides
   * when it is over. False: it is for nobody.
   */
  deliverLoose(worker: Worker, line: Envelope): boolean {
    const key = line.key(FIELD.id)
    const request = key === undefined ? undefined : worker.outstanding.get(key)
    const client = request?.client ?? request?.formerClient
    if (request === undefined || client === undefined || !client.isExchange) return false
    if (request.client === undefined) this.#dropLoose(request, line)
    else this.#board.forward(client, line, this.#idRestored(request, line))
    return true
  }

  /** The exchange is over: after a part its id stays taken, for the worker will say more under it. */
  #dropLoose(request: Request, line: Envelope): void {
    const { core } = this.#board
    core.drop('late_answer')
    if (line.has(FIELD.partial) && isPartial(line)) return
    core.owed.settle(request)
  }

  #idRestored(request: Request, line: Envelope): Edit[] {
    return request.isAliased ? [replace(line, FIELD.id, request.idSpelling)] : []
  }

  #answer(client: Client, request: Request, worker: Worker, line: Envelope): void {
    if (request.hidesTools) return this.#answerInPart(client, request, worker, line)
    if (request.dialect !== undefined) return this.#answerSpoken(client, request, worker, line)
    const edits = request.isAliased ? this.#idRestored(request, line) : undefined
    if (worker.dialect?.table.hasSessions && !client.isInternal)
      this.#board.forward(client, line, [...(edits ?? []), ...this.#editsForUnintroduced(client, worker, line)])
    else this.#board.forward(client, line, edits)
    if (client.state === 'half-closed') this.#board.host.maybeFinish(client)
  }

  /** A list of tools, of which the caller sees those it may use (contract 9.20). */
  #answerInPart(client: Client, request: Request, { pool }: Worker, line: Envelope): void {
    const { rights } = client.owner!
    const edits = hideTools(line.bytes, line.start, line.end, (tool) => mayUseTool(rights, pool.spec.id, tool))
    if (edits === BAD_LIST) return this.#board.fail(client, request.idSpelling, 'bad_list')
    this.#board.forward(client, line, [...edits, ...this.#idRestored(request, line)])
    if (client.state === 'half-closed') this.#board.host.maybeFinish(client)
  }

  /** Who has not shown what it speaks may still make sessions at an agent that others use, and ask for those there are. */
  #editsForUnintroduced(client: Client, worker: Worker, line: Envelope): Edit[] {
    this.#announcements.adopt(worker, client, textOf(line, FIELD.resultSessionId))
    return line.has(FIELD.resultSessions) ? this.#announcements.hideSessions(client, worker, line) : []
  }

  #answerSpoken(client: Client, request: Request, worker: Worker, line: Envelope): void {
    const conflict = this.#announcements.conflictOf(request, client, line)
    if (conflict !== undefined)
      return this.#board.fail(client, request.idSpelling, 'session_id_conflict', { sessionId: conflict })
    const welcome = this.#welcomeInstead(request, worker, line)
    if (welcome !== undefined) this.#board.handshakes.welcomeAgain(client, worker, welcome)
    else this.#board.forward(client, line, this.#editsFor(client, request, worker, line))
    if (client.state === 'half-closed') this.#board.host.maybeFinish(client)
  }

  #editsFor(client: Client, request: Request, worker: Worker, line: Envelope): Edit[] {
    const edits: Edit[] = request.row === undefined ? [] : this.#announcements.editsFor(request, client, worker, line)
    if (request.row?.opens === 'each' && worker.pool.spec.keeping !== undefined && line.has(FIELD.result))
      edits.push(this.#welcomeOf(worker, line))
    if (request.isAliased) {
      edits.push(replace(line, FIELD.id, request.idSpelling))
      if (line.has(FIELD.resultSubscriptionId))
        edits.push(replace(line, FIELD.resultSubscriptionId, request.idSpelling))
    }
    this.#noteTask(client, worker, request, line)
    return edits
  }

  /** With what the bus does in the place of the worker (contract 12.2). */
  #welcomeOf(worker: Worker, line: Envelope): Edit {
    const result = line.bytes.subarray(line.startOf(FIELD.result), line.endOf(FIELD.result))
    return replace(line, FIELD.result, this.#board.kept.claims.welcome(worker, result, line).toString())
  }

  /** An agent that refuses a second handshake has welcomed somebody before: so is this client (contract 6.6). */
  #welcomeInstead({ row, version, idSpelling }: Request, worker: Worker, line: Envelope): Buffer | undefined {
    const { welcome } = worker
    if (row?.opens !== 'each' || line.has(FIELD.result) || welcome === undefined) return undefined
    if (worker.pool.spec.sharing === 'isolated' || (version ?? welcome.version) !== welcome.version) return undefined
    const result = this.#board.kept.claims.welcome(worker, welcome.result)
    return Buffer.from(`{"jsonrpc":"2.0","id":${idSpelling},"result":${result}}\n`)
  }

  #noteTask(client: Client, worker: Worker, request: Request, line: Envelope): void {
    if (request.row?.endsTask) return endTask(worker, request.taskId!)
    const taskId = textOf(line, FIELD.resultInnerTaskId) ?? textOf(line, FIELD.resultTaskId)
    if (taskId !== undefined) beginTask(worker, taskId, client, request)
  }

  /** Nobody waits for the session that the request was to announce: what is held for it waits no longer either. */
  #abandon({ row, worker }: Request): void {
    if (row?.session !== 'announced') return
    worker!.announcing--
    this.#announcements.releaseHeld(worker!, (held) => this.#deliverHeld(worker!, held))
  }

  /** It waited for its session; any other address would have found its client before, and must not now, out of order. */
  #deliverHeld(worker: Worker, line: Envelope): void {
    const owner = this.#bySession(worker, line)
    if (owner === undefined) this.#discard(worker, BY_SESSION, line)
    else this.#deliver(worker, this.#rowFor(worker, line), line, owner)
  }

  // ---- notifications and questions ----

  deliverCall(worker: Worker, line: Envelope): void {
    const { core } = this.#board
    const row = this.#rowFor(worker, line)
    if (row.to[0] === 'everyone' && core.spec.gateway === 'all')
      core.actions.push({ do: 'list-changed', pool: worker.pool.spec.id })
    if (row.isRemembered) rememberLine(worker, line)
    if (row.local === 'pong' && line.has(FIELD.id)) return this.#board.answerQuestion(worker, line.idSpelling(), '{}')
    for (const address of row.to) {
      const target = this.#addresses[address](worker, line)
      if (target !== undefined) return this.#deliver(worker, row, line, target)
    }
    if (this.#announcements.maybeHold(worker, row, line)) return
    if (row.to[0] === 'question' && this.#board.kept.questions.cancel(worker, line)) return
    this.#discard(worker, row, line)
  }

  #rowFor({ dialect, pool }: Worker, line: Envelope): WorkerRow {
    if (pool.spec.placeOf !== undefined && (dialect === undefined || isForBus(line))) return FROM_NODE
    return dialect === undefined ? BY_SESSION : (dialect.worker.find(line) ?? dialect.table.otherFromWorker)
  }

  #deliver(worker: Worker, row: WorkerRow, line: Envelope, target: Target): void {
    const { clients, edit, subject, kept } = target
    if (kept !== undefined) return this.#deliverKept(worker, row, line, kept)
    if (subject instanceof Request && subject.claimed !== undefined && row.isUpdate)
      this.#board.kept.claims.replayed(subject, line)
    if (line.has(FIELD.id)) {
      for (const client of clients) return this.#ask(worker, client, row, { line, edit })
      return this.#discard(worker, row, line)
    }
    if (worker.pool.spec.trace) this.#board.observation.said(worker, line, subject)
    const edits = this.#editsOf(worker, line, edit)
    for (const client of clients) {
      this.#board.forward(client, line, edits)
      if (row.adopts !== undefined) this.#announcements.adopt(worker, client, textOf(line, row.adopts))
    }
    if (row.tellsTask) this.#heedTask(worker, line)
    if (row.isFinal && subject !== undefined) this.#conclude(subject)
  }

  /** In a session that outlives its clients (contract 12). */
  #deliverKept(worker: Worker, row: WorkerRow, line: Envelope, session: KeptSession): void {
    const { kept, observation } = this.#board
    if (worker.pool.spec.trace) observation.said(worker, line, undefined)
    if (line.has(FIELD.id)) return kept.questions.ask(session, worker, row, line)
    kept.say(session, worker, row, line)
    const child = row.adopts === undefined ? undefined : textOf(line, row.adopts)
    if (child !== undefined) kept.adopt(session, worker, child)
  }

  #editsOf(worker: Worker, line: Envelope, edit: Edit | undefined): Edit[] {
    const edits = edit === undefined ? [] : [edit]
    return this.#board.core.sessionNames === undefined ? edits : [...edits, ...this.#board.renamesFrom(worker, line)]
  }

  #heedTask(worker: Worker, { bytes, start, end }: Envelope): void {
    const params = JSON.parse(bytes.utf8Slice(start, end))?.params
    const isOver = worker.dialect?.table.taskEnds?.includes(params?.status) === true
    if (typeof params?.taskId === 'string' && isOver) endTask(worker, params.taskId)
  }

  #conclude(subject: Request | Question): void {
    if (subject instanceof Request) this.#board.waive(subject)
    else this.#board.core.owed.settleQuestion(subject)
  }

  #ask(worker: Worker, client: Client, row: WorkerRow, { line, edit, moves = 0 }: Said): void {
    const { core, observation } = this.#board
    const id = line.idSpelling()
    if (client.state !== 'open') return this.#refuseGone(worker, row, id)
    if (!canAnswer(client, worker, row)) return this.#board.refuseQuestion(worker, id, 'not_offered')
    if (client.questions.size >= core.spec.limits.maxPendingPerClient)
      return this.#board.refuseQuestion(worker, id, 'overloaded')
    const question = core.owed.ask(line, worker, client)
    question.answerWhenGone = row.answerWhenGone
    if (client.isExchange && moves < FIXED.maxQuestionMoves && isServed(worker, row)) {
      const moved = { line: line.keep(), edit: undefined, moves: moves + 1 }
      question.putElsewhere = () => this.#putElsewhere(worker, row, moved)
    }
    if (worker.pool.spec.trace) observation.said(worker, line, undefined, question)
    question.token = line.key(FIELD.metaProgressToken)
    const elicitationId = textOf(line, FIELD.elicitationId)
    if (elicitationId !== undefined) worker.elicitations = remember(worker.elicitations, elicitationId, client)
    const edits = this.#editsOf(worker, line, edit)
    if (question.isAliased) edits.push(replace(line, FIELD.id, spell(question.key)))
    this.#board.forward(client, line, edits)
  }

  /** The call that it was put to may have been another than the one it is about, and has ended. */
  #putElsewhere(worker: Worker, row: WorkerRow, said: Said): boolean {
    const client = this.#servedCall(worker, said.line)
    if (client === undefined) return false
    this.#ask(worker, client, row, said)
    return true
  }

  /** The client hears nothing more: what it would have been asked is answered for it, never with consent. */
  #refuseGone(worker: Worker, { answerWhenGone }: WorkerRow, idSpelling: string): void {
    if (answerWhenGone === undefined) this.#board.refuseQuestion(worker, idSpelling, 'client_gone')
    else this.#board.answerQuestion(worker, idSpelling, answerWhenGone)
  }

  #discard(worker: Worker, row: WorkerRow, line: Envelope): void {
    const { core } = this.#board
    const isQuestion = line.has(FIELD.id)
    const fate = isQuestion ? 'refused' : 'dropped'
    core.log('warn', `worker sent a message that no client can be told it is for; it was ${fate}`, about(worker))
    if (isQuestion) return this.#board.refuseQuestion(worker, line.idSpelling(), 'no_client')
    if (sessionNamed(line) !== undefined) return core.drop('unknown_session')
    if (row.to.includes('token')) return core.drop('late_progress')
    core.drop(row === BY_SESSION ? 'unroutable' : 'unattributable')
  }

  // ---- addresses ----

  #bySession(worker: Worker, line: Envelope): Target | undefined {
    const top = textOf(line, FIELD.sessionId)
    const name = top ?? textOf(line, FIELD.paramsSessionId) ?? textOf(line, FIELD.innerSessionId)
    if (name === undefined) return undefined
    const session = worker.sessions.get(name)
    if (session?.kept !== undefined) return { clients: NOBODY, kept: session.kept }
    const claim = session === undefined ? worker.claims.get(name) : undefined
    if (claim?.claimed !== undefined && claim.client !== undefined) return { clients: [claim.client], subject: claim }
    return only(session?.driver ?? claim?.client)
  }

  #byRequest(worker: Worker, line: Envelope): Target | undefined {
    const key = line.key(FIELD.requestId)
    return this.#ofRequest(key === undefined ? undefined : worker.outstanding.get(key), line, FIELD.requestId)
  }

  #ofRequest(request: Request | undefined, line: Envelope, field: Field): Target | undefined {
    if (request?.client === undefined) return undefined
    const edit = request.isAliased ? replace(line, field, request.idSpelling) : undefined
    return { clients: [request.client], edit, subject: request }
  }

  #byQuestion(worker: Worker, line: Envelope): Target | undefined {
    const key = line.key(FIELD.requestId)
    const question = key === undefined ? undefined : worker.questions.get(key)
    if (question === undefined) return undefined
    const edit = question.isAliased ? replace(line, FIELD.requestId, spell(question.key)) : undefined
    return { clients: [question.client], edit, subject: question }
  }

  #byToken(worker: Worker, line: Envelope): Target | undefined {
    const key = line.key(FIELD.progressToken)
    const request = key === undefined ? undefined : worker.tokens.get(key)
    if (request?.client === undefined) return undefined
    const { tokenSpelling } = request
    const edit = tokenSpelling === undefined ? undefined : replace(line, FIELD.progressToken, tokenSpelling)
    return { clients: [request.client], edit, subject: request }
  }

  /** A subscription has the id of the request that opened it, as a string or as it is. */
  #bySubscription(worker: Worker, line: Envelope): Target | undefined {
    const key = line.key(FIELD.metaSubscriptionId)
    if (key === undefined) return undefined
    const request =
      worker.outstanding.get(key) ?? (typeof key === 'string' ? worker.outstanding.get(Number(key)) : undefined)
    const target = this.#ofRequest(request, line, FIELD.metaSubscriptionId)
    if (target?.edit === undefined || typeof key === typeof request!.key) return target
    return { ...target, edit: replace(line, FIELD.metaSubscriptionId, quoted(request!.idSpelling)) }
  }

  #bySubscribers(worker: Worker, line: Envelope): Target | undefined {
    const subscribers = worker.subscriptions.get(textOf(line, FIELD.uri) ?? '')
    if (worker.holder !== undefined) return only(worker.holder)
    return subscribers === undefined || subscribers.size === 0 ? undefined : { clients: [...subscribers] }
  }

  /** A log line says nothing of whom it is about: it is delivered only if just one client can be meant. */
  #byLog(worker: Worker, line: Envelope): Target | undefined {
    const { dialect, pool } = worker
    const client = this.#soleClient(worker, dialect!.table.asksForLogs === true)
    if (client === undefined) return undefined
    const level = client.introductions.get(pool.spec.id)?.level
    return level !== undefined && dialect!.rankOf(textOf(line, FIELD.level)) < level ? { clients: [] } : only(client)
  }

  /** Only what has no address: who names a session means its owner, and nobody else when that one has gone. */
  #bySole(worker: Worker, line: Envelope): Target | undefined {
    if (worker.dialect?.table.hasSessions && sessionNamed(line) !== undefined) return undefined
    return only(this.#soleClient(worker, false) ?? this.#servedCall(worker, line))
  }

  /** What the bus answers itself may be asked for any call that the worker has, as long as all are one principal's. */
  #servedCall(worker: Worker, line: Envelope): Client | undefined {
    if (!isServed(worker, this.#rowFor(worker, line))) return undefined
    let newest: Client | undefined
    for (const { client, formerClient } of worker.outstanding.values()) {
      const caller = client ?? formerClient
      // The bus itself asks for lists.
      if (caller === undefined || (caller.isDelegate && caller.behalf === undefined)) continue
      const isAlike = newest === undefined || newest.behalf?.principal === caller.behalf?.principal
      if (!caller.isExchange || !isAlike) return undefined
      if (client?.state === 'open') newest = client
    }
    return newest
  }

  /** The one client a worker works for, unless it may still be at work for one that has gone or cancelled. */
  #soleClient(worker: Worker, wantsLog: boolean): Client | undefined {
    const client = worker.holder ?? soleInFlight(worker, wantsLog)
    if (client === undefined || this.#board.core.owed.mayBeAboutAnother(worker, client, wantsLog)) return undefined
    return client
  }
}

/** A message of a worker, with what is to be replaced in it. */
interface Said {
  readonly line: Envelope
  readonly edit: Edit | undefined
  /** Of a question: how many calls that it was put to have ended. */
  readonly moves?: number
}

/** The worker owes the client the answer to its handshake. */
function awaitsWelcome({ newest }: Client, worker: Worker): boolean {
  for (let request = newest; request !== undefined; request = request.older)
    if (request.worker === worker && request.row?.opens !== undefined) return true
  return false
}

function isPartial(line: Envelope): boolean {
  return line.bytes[line.startOf(FIELD.partial)] === LOWER_T
}

function textOf(line: Envelope, field: Field): string | undefined {
  return line.has(field) ? line.text(field) : undefined
}

/** What a worker says once per process is kept for those who come later, if it is short. */
function rememberLine(worker: Worker, { bytes, start, end }: Envelope): void {
  if (end - start > FIXED.maxRememberedBytes) return
  const line = Buffer.from(bytes.subarray(start, end + 1))
  worker.remembered = ownMap(worker.remembered).set(JSON.parse(line.toString()).method, line)
}

/** The worker was told that it may ask this, because the bus answers it for calls of the gateway (contract 13.16). */
function isServed({ pool }: Worker, { needs }: WorkerRow): boolean {
  const { offers } = pool.spec
  return needs !== undefined && offers !== undefined && Object.hasOwn(offers, needs)
}

/** Whoever did not offer what the worker may ask of others is not asked: the bus answers in its place. */
function canAnswer(client: Client, worker: Worker, row: WorkerRow): boolean {
  const { sharing, id } = worker.pool.spec
  const isOffered = isServed(worker, row)
  if (row.needs === undefined || (isOffered && client.isExchange)) return true
  if (sharing !== 'lease' && !(sharing === 'shared' && isOffered)) return true
  const offers = client.introductions.get(id)?.offers
  return offers !== undefined && Object.hasOwn(offers, row.needs)
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
