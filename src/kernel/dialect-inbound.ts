/**
 * From a client to a worker that share a protocol (contract 6.4, 6.6, 6.7).
 *
 * One generic piece: what a protocol adds stands in the rows of its dialect. The client stays with its worker; sessions are
 * recorded from answers; what refers to an id or a token follows it.
 */
import { FIELD } from '../wire/fields.ts'
import { type Edit, replace, splice } from '../wire/splice.ts'
import { isSpread, versionOf } from './assignment.ts'
import type { ClientRow } from './dialect-table.ts'
import type { Dialect } from './dialects.ts'
import { ownMap } from './empty.ts'
import type { Reason } from './faults.ts'
import { mismatchOf } from './handshakes.ts'
import { type Bond, Introduction } from './introductions.ts'
import { FIXED } from './limits.ts'
import { type Request, spell } from './owed.ts'
import type { Client, Worker } from './peers.ts'
import type { Pool } from './pools.ts'
import { remember } from './remember.ts'
import type { Route } from './route.ts'
import { comingSessions, hasRoomForSession } from './sessions.ts'
import type { SharedDuties } from './shared-duties.ts'
import type { Switchboard } from './switchboard.ts'
import { taskOwnerOf } from './tasks.ts'
import type { SessionId } from './vocabulary.ts'

const NO_URIS: ReadonlySet<string> = new Set()

export class DialectInbound {
  readonly #board: Switchboard
  readonly #duties: SharedDuties

  constructor(board: Switchboard, duties: SharedDuties) {
    this.#board = board
    this.#duties = duties
  }

  place(route: Route): void {
    const { assignment, waiting } = this.#board
    const { client, pool, session } = route
    if (route.row?.session === 'claimed' && this.#board.places.mustSeek(route)) return
    if (route.row?.listsSessions && this.#board.places.gathers(route)) return
    if (keepsSessions(route) && this.#board.kept.take(route)) return
    const fault = this.#faultOf(route)
    if (fault !== undefined) return this.#refuse(route, fault)
    const bound =
      route.promised ?? (session === undefined ? this.#taskWorker(route) : client.sessions.get(session)?.worker)
    const held = bound === undefined ? client.introductions.get(pool.spec.id)?.home?.held : undefined
    if (held !== undefined) return void waiting.enter(route, held)
    const host = isAnsweredHere(route) ? assignment.hostOf(client, pool) : undefined
    const worker = host ?? assignment.place(route, bound)
    if (worker === undefined) return
    this.#speak(route, worker)
    // What the bus answered itself holds no lease.
    assignment.maybeRelease(worker)
  }

  #refuse(route: Route, reason: Reason): void {
    const { session, line } = route
    if (reason === 'unknown_method') return this.#board.refuse(route, reason, { method: line.text(FIELD.method) })
    this.#board.refuse(route, reason, session === undefined ? undefined : { sessionId: session })
  }

  /** A task is known where it was started only. */
  #taskWorker({ client, pool, row, line }: Route): Worker | undefined {
    const taskId = row?.task === undefined ? undefined : line.text(row.task)
    if (taskId === undefined) return undefined
    return pool.workers.find((worker) => worker.isReady && worker.tasks.get(taskId) === taskOwnerOf(client))
  }

  #speak(route: Route, worker: Worker): void {
    const { handshakes, waiting } = this.#board
    const { dialect, row, pool, request } = route
    const isOwn = pool.spec.sharing === 'isolated'
    if (!isOwn && this.#mustProve(route, worker)) return
    if (!isOwn && handshakes.mustWait(route, worker)) return handshakes.holdForAnswer(route, worker)
    const bond = this.#bind(route, worker)
    if (bond.held !== undefined) return void waiting.enter(route, bond.held)
    if (bond.isMismatched && row?.opens === undefined)
      return this.#board.refuse(route, 'protocol_mismatch', { pool: pool.spec.id })
    if (!isOwn && row?.opens === 'each' && request !== undefined && worker.takesOneHandshake) {
      this.#record(bond, route)
      return handshakes.answerAgain(route, worker)
    }
    if (!isOwn && row !== undefined && this.#duties.serve(route, bond)) return
    if (row?.isOptional && request !== undefined && this.#endsForWorker(route, worker)) return
    if (row !== undefined && keepsSessions(route) && this.#board.kept.serve(route, worker)) return
    this.#send(route, worker, dialect!)
  }

  /** True: the message was refused or waits, since nobody knows whether the worker speaks as its client does. */
  #mustProve(route: Route, worker: Worker): boolean {
    const { handshakes } = this.#board
    const { dialect, pool, request } = route
    const isProven = worker.isProven ? worker.dialect === dialect : pool.dialect === dialect
    if (isProven || (!worker.isProven && dialect!.table.probe === undefined)) {
      if (request === undefined || !handshakes.mustGreet(route, worker)) return false
      handshakes.hold(route, worker)
      return true
    }
    if (worker.isProven || request === undefined) handshakes.turnAway(route, worker.dialect)
    else handshakes.hold(route, worker)
    return true
  }

  #faultOf(route: Route): Reason | undefined {
    const { client, pool, dialect, row, session, request } = route
    if (pool.dialect !== undefined && pool.dialect !== dialect) return mismatchOf(route, pool.dialect)
    if (row?.isUnknown && pool.dialect === dialect) return 'unknown_method'
    if (request !== undefined && row !== undefined && isNotification(row)) return 'unknown_method'
    if (row?.unlessShared && pool.spec.sharing === 'shared') return 'not_when_shared'
    if (row?.isLongLived && pool.spec.sharing === 'lease') return 'not_with_lease'
    if (row?.local === 'subscribe' && !hasRoomForResource(route)) return 'too_many_subscriptions'
    if (row?.session === 'announced' && !this.#hasRoom(route)) return 'too_many_sessions'
    if (session === undefined || client.sessions.has(session)) return undefined
    if (row?.session === 'claimed') return this.#claimFault(route, session)
    if (this.#isForeign(route, session)) return 'session_not_owned'
    return client.lost.has(session) ? 'session_lost' : undefined
  }

  /** Who has a worker of its own takes nothing from anybody by loading a session there (contract 6.4). */
  #claimFault(route: Route, session: SessionId): Reason | undefined {
    // Whose it is has been looked at.
    if (keepsSessions(route)) return this.#hasRoom(route) ? undefined : 'too_many_sessions'
    const isAlone = route.pool.spec.sharing === 'isolated'
    if (!isAlone && (this.#isForeign(route, session) || this.#isLiveElsewise(route.pool, session)))
      return 'session_not_owned'
    return this.#hasRoom(route) ? undefined : 'too_many_sessions'
  }

  #hasRoom({ client, request }: Route): boolean {
    return hasRoomForSession(this.#board.core, client, comingSessions(client, request))
  }

  #isForeign({ client }: Route, session: SessionId): boolean {
    return this.#isClaimedByOther(client, session) || this.#board.core.sessions.isForeign(session, client)
  }

  /** What the client wants to have back has been made anew meanwhile, and is known by another name. */
  #isLiveElsewise(pool: Pool, name: SessionId): boolean {
    const known = this.#board.core.sessionNames?.find(name)
    if (known === undefined || known.pool !== pool.spec.id) return false
    return pool.workers.some((worker) => worker.sessions.has(known.id))
  }

  #isClaimedByOther(client: Client, name: SessionId): boolean {
    for (const worker of this.#board.core.workers.values()) {
      const claim = worker.claims.get(name)
      if (claim?.client !== undefined && claim.client !== client) return true
    }
    return false
  }

  /** The client stays with this worker; a worker that is new to it hears its handshake first. */
  #bind(route: Route, worker: Worker): Bond {
    const { pool, dialect, row } = route
    const isOwn = pool.spec.sharing === 'isolated'
    if (isOwn) worker.dialect = dialect
    worker.dialect ??= dialect
    const introduction = introductionTo(route, route.pool)
    introduction.dialect = dialect!
    if (worker.isProven && dialect!.table.probe !== undefined) introduction.isWelcomed = true
    const known = introduction.bonds.get(worker)
    const bond = known ?? introduction.bondWith(worker)
    const isNew = known === undefined || known.generation !== worker.generation
    // A session that is spread, or bound elsewhere, does not move its client.
    if (route.session === undefined && !isSpread(route)) this.#moveHome(introduction, bond)
    else introduction.home ??= bond
    if (!isNew) return bond
    bond.generation = worker.generation
    bond.isMismatched = false
    if (introduction.initialize === undefined || row?.opens !== undefined) this.#duties.takeUp(bond)
    else if (worker.takesOneHandshake) this.#duties.takeUp(bond)
    else {
      route.promise(worker)
      this.#board.handshakes.repeat(bond, () => this.#duties.takeUp(bond))
    }
    return bond
  }

  #moveHome(introduction: Introduction, bond: Bond): void {
    const before = introduction.home
    if (before === bond) return
    introduction.home = bond
    if (before === undefined || before.isCurrent) return
    introduction.leave(before)
  }

  /** Behind one client there may be many that come and go; what is over for them must not count as in use for ever. */
  #endsForWorker({ client, session: named, request }: Route, worker: Worker): boolean {
    const { core } = this.#board
    const session = named === undefined ? undefined : client.sessions.get(named)
    if (core.sessionNames === undefined || session === undefined) return false
    if (!worker.isProven || worker.isToldOfEnds) return false
    core.sessions.end(session)
    this.#board.answerRequest(request!, '"result":{}')
    return true
  }

  #send(route: Route, worker: Worker, { table }: Dialect): void {
    const { core } = this.#board
    const { client, line, row, request } = route
    const edits = this.#board.cuts(line, table)
    if (core.sessionNames !== undefined) edits.push(...this.#board.renamesTo(worker, client, line))
    if (row?.cancels !== undefined) return this.#sendCancel(route, worker, edits)
    if (row?.answersToken !== undefined) return this.#sendToAsker(route, edits)
    if (row?.task !== undefined && worker.tasks.get(line.text(row.task) ?? '') !== taskOwnerOf(client))
      return this.#board.refuse(route, 'task_not_owned')
    if (client.isToldOfRoutes && !this.#board.mayTell(client, worker, request)) return
    if (request === undefined) return this.#sendNotification(route, worker, edits)
    this.#sendRequest(route, worker, request, edits)
  }

  #sendNotification(route: Route, worker: Worker, edits: readonly Edit[]): void {
    this.#board.forward(worker, route.line, edits)
    if (route.row?.stopsTurn && keepsSessions(route)) this.#board.kept.stopped(route)
  }

  #sendRequest(route: Route, worker: Worker, request: Request, edits: Edit[]): void {
    const { core, observation } = this.#board
    const { client, line, row, dialect, session } = route
    const sessionAtWorker = session === undefined ? undefined : this.#idAtWorker(route, worker, session)
    this.#board.send(request, line, worker)
    request.dialect = dialect
    if (row !== undefined) request.row = row
    if (session !== undefined) {
      request.sessionId = session
      request.sessionAtWorker = sessionAtWorker
    }
    if (request.isAliased) edits.push(replace(line, FIELD.id, spell(request.key)))
    if (row !== undefined) this.#prepare(route, worker, row, request)
    const { progressToken } = dialect!.table
    if (progressToken !== undefined && line.has(progressToken)) {
      core.owed.lendToken(line, progressToken, request)
      if (request.tokenSpelling !== undefined) edits.push(replace(line, progressToken, spell(request.token!)))
    }
    if (line.has(FIELD.metaLogLevel)) request.wantsLog = true
    if (worker.pool.spec.trace) observation.opened(request, client, worker, line)
    this.#board.forward(worker, line, edits)
  }

  #idAtWorker({ client, row }: Route, worker: Worker, name: SessionId): SessionId {
    const session = client.sessions.get(name)
    if (session !== undefined) return session.idAtWorker
    const names = this.#board.core.sessionNames
    if (names === undefined) return name
    return row?.session === 'claimed' ? names.claim(worker.pool.spec.id, name) : (names.find(name)?.id ?? name)
  }

  /** What must be known before the answer comes. */
  #prepare(route: Route, worker: Worker, row: ClientRow, request: Request): void {
    const { client, line, session } = route
    if (keepsSessions(route)) this.#board.kept.prepare(route, request)
    if (row.task !== undefined) request.taskId = line.text(row.task)
    if (row.local === 'subscribe') request.uri = line.text(FIELD.uri)
    if (row.isTurn && session !== undefined) this.#noteTurn(client, session)
    if (row.opens !== undefined) {
      request.version = versionOf(route)
      worker.askedVersion ??= request.version
      this.#record(client.introductions.get(worker.pool.spec.id)!.bonds.get(worker)!, route)
    }
    if (row.session === 'announced') {
      worker.announcing++
      this.#lendServers(route, worker)
    }
    if (row.session === 'claimed' && request.sessionId !== undefined && !client.sessions.has(request.sessionId))
      worker.claims = ownMap(worker.claims).set(request.sessionAtWorker!, request)
  }

  #noteTurn(client: Client, name: SessionId): void {
    const session = client.sessions.get(name)
    if (session !== undefined) session.hadTurn = true
  }

  /** The handshake as the worker gets it, to be repeated to the next one. */
  #record(bond: Bond, route: Route): void {
    const { introduction } = bond
    bond.isMismatched = false
    introduction.initialize = splice(route.line, this.#board.cuts(route.line, introduction.dialect.table))
    introduction.version = versionOf(route)
    // When those are well again, their workers hear it too.
    for (const pool of route.passed) introductionTo(route, pool).takeOver(introduction)
  }

  /** Servers that the client itself offers to the session. */
  #lendServers({ client, line, dialect }: Route, worker: Worker): void {
    const { lends } = dialect!.table
    const { bytes, start, end } = line
    if (lends === undefined || bytes.subarray(start, end).indexOf(`"${lends.type}"`) === -1) return
    const servers: unknown = JSON.parse(bytes.utf8Slice(start, end))?.params?.[lends.list]
    if (!Array.isArray(servers)) return
    for (const server of servers) {
      if (server?.type !== lends.type || typeof server.id !== 'string') continue
      worker.servers = remember(worker.servers, server.id, client)
    }
  }

  /** A cancel names a request of this client, by the id the worker knows; others' requests are out of reach. */
  #sendCancel({ client, line, row, cameBefore }: Route, worker: Worker, edits: Edit[]): void {
    const { core, assignment } = this.#board
    const key = line.key(row!.cancels!)
    const isMeant = (each: Request): boolean =>
      each.serial < cameBefore && (each.worker === worker || (row!.isFinal === true && isWaitingFor(each, worker.pool)))
    const request = key === undefined ? undefined : core.owed.find(client, key, isMeant)
    if (request === undefined) return core.drop('cancel_for_nothing')
    if (request.isAliased) edits.push(replace(line, row!.cancels!, spell(request.key)))
    if (request.worker !== undefined) this.#board.forward(worker, line, edits)
    if (!row!.isFinal) return
    this.#board.waive(request)
    assignment.maybeRelease(worker)
  }

  /** Progress of something the client was asked: to whoever asked. */
  #sendToAsker({ client, line, row }: Route, edits: readonly Edit[]): void {
    const key = line.key(row!.answersToken!)
    for (const question of client.questions.values()) {
      if (key === undefined || question.token !== key) continue
      if (question.worker.generation === question.generation) return this.#board.forward(question.worker, line, edits)
    }
    this.#board.core.drop('late_progress')
  }
}

function introductionTo({ client, dialect, introducedBy }: Route, pool: Pool): Introduction {
  const known = client.introductions.get(pool.spec.id)
  if (known !== undefined) return known
  const introduction = new Introduction(client, dialect!)
  if (introducedBy !== undefined) introduction.takeOver(introducedBy)
  client.introductions = ownMap(client.introductions).set(pool.spec.id, introduction)
  return introduction
}

/** Sessions of the pool outlive their clients, and the message is of a protocol that has some (contract 12). */
function keepsSessions({ pool, dialect }: Route): boolean {
  if (pool.spec.keeping === undefined || dialect?.table.keeping === undefined) return false
  return pool.dialect === undefined || pool.dialect === dialect
}

function isWaitingFor({ route }: Request, pool: Pool): boolean {
  return route?.pool === pool
}

/** What such a row says has no answer; sent with an id it is refused, since a worker may stay silent. */
function isNotification({ cancels, answersToken, confirms }: ClientRow): boolean {
  return cancels !== undefined || answersToken !== undefined || confirms === true
}

/** The handshake and pings, where the bus does them for all clients of a worker. */
function isAnsweredHere({ row, request }: Route): boolean {
  if (row === undefined) return false
  return row.confirms === true || (request !== undefined && (row.opens === 'once' || row.local === 'pong'))
}

/** Whether the client may subscribe to one more resource; those under way count, each once. */
function hasRoomForResource({ client, pool, line, request: own }: Route): boolean {
  const uris = client.introductions.get(pool.spec.id)?.uris ?? NO_URIS
  const uri = line.text(FIELD.uri)
  if (uri === undefined || uris.has(uri)) return true
  const coming = new Set([uri])
  for (let request = client.newest; request !== undefined; request = request.older) {
    if (uris.size + coming.size > FIXED.maxSubscriptions) return false
    if (request === own || (request.row ?? request.route?.row)?.local !== 'subscribe') continue
    const other = request.uri ?? request.route?.line.text(FIELD.uri)
    if (other !== undefined && !uris.has(other)) coming.add(other)
  }
  return uris.size + coming.size <= FIXED.maxSubscriptions
}
