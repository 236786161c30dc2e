/**
 * From a client to a worker (contract 6.1, 6.3, 6.4, 6.6).
 *
 * One generic piece: what a protocol adds stands in the rows of its dialect. Every request is recorded before it is sent.
 */
import { FIELD } from '../wire/fields.ts'
import type { Assignment } from './assignment.ts'
import { Bond, LEVELS, rankOf } from './bonds.ts'
import type { ClientRow } from './dialect.ts'
import { faultOf, type Reason } from './faults.ts'
import type { Handshakes } from './handshakes.ts'
import type { Client, Worker } from './peers.ts'
import { PoolChoice } from './pool-choice.ts'
import type { Pool } from './pools.ts'
import { type Request, spell } from './requests.ts'
import { type Edit, replace, splice } from './splice.ts'
import type { Switchboard } from './switchboard.ts'
import { isDiscovery, type Tongue } from './tongue.ts'
import type { SessionId } from './vocabulary.ts'

type Local = NonNullable<ClientRow['local']>

export class Inbound {
  readonly #board: Switchboard
  readonly poolChoice: PoolChoice
  assignment!: Assignment
  handshakes!: Handshakes
  readonly #locals: Readonly<Record<Local, (client: Client, worker: Worker, bond: Bond, isRequest: boolean) => boolean>>

  constructor(board: Switchboard) {
    this.#board = board
    this.poolChoice = new PoolChoice(board)
    this.#locals = {
      pong: (client) => this.#pong(client),
      level: (client, worker, bond) => this.#setLevel(client, worker, bond),
      subscribe: (client, worker) => this.#subscribe(client, worker),
      unsubscribe: (client, worker, bond) => this.#unsubscribe(client, worker, bond),
    }
  }

  /** The request or notification at hand. */
  route(client: Client, isRequest: boolean): void {
    const { core, envelope } = this.#board
    // It waited, and its client has gone meanwhile.
    if (client.state === 'closed') return
    if (isRequest && !this.#mayAsk(client)) return this.#board.refuse(client, true, 'shutting_down')
    const limit = core.spec.limits.maxPendingPerClient
    if (isRequest && client.pendingCount >= limit)
      return this.#board.refuse(client, true, 'too_many_pending', { limit })
    const hasSessions = !client.isInternal
    const top = hasSessions && envelope.has(FIELD.sessionId) ? envelope.text(FIELD.sessionId) : undefined
    const inner = hasSessions && envelope.has(FIELD.paramsSessionId) ? envelope.text(FIELD.paramsSessionId) : undefined
    const known = this.#knownSession(client, top, inner)
    const pool = known?.pool ?? this.poolChoice.choose(client, isRequest)
    if (pool === undefined) return
    if (pool.spec.isAioOnly) return this.#board.refuse(client, isRequest, 'aio_only', { pool: pool.spec.id })
    const tongue = this.#tongueOf(client, pool)
    if (tongue !== undefined) return this.#routeSpoken(client, pool, tongue, isRequest, top, inner)
    if (top === undefined && inner === undefined) return this.#routeFree(client, pool, isRequest)
    this.#routeSession(client, pool, isRequest, top, inner === top ? undefined : inner)
  }

  /** In the drain nothing new is begun, but the calls under way may still need a worker (contract 7.4). */
  #mayAsk(client: Client): boolean {
    const { phase } = this.#board.core
    return phase === 'running' || (client.isInternal && phase === 'draining')
  }

  /** An exchange of the gateway's is on its way; it is not sent to a worker that does not read (aio.md 3.8). */
  #isTold(client: Client, worker: Worker, isRequest: boolean): boolean {
    const { core } = this.#board
    if (worker.outbox.isFull) {
      this.#board.refuse(client, isRequest, 'overloaded', { pool: worker.pool.spec.id })
      return false
    }
    core.actions.push({ do: 'routed', client: client.id, worker: worker.id, generation: worker.generation })
    return true
  }

  #knownSession(client: Client, top: SessionId | undefined, inner: SessionId | undefined): Worker | undefined {
    const session =
      (top === undefined ? undefined : client.sessions.get(top)) ??
      (inner === undefined ? undefined : client.sessions.get(inner))
    return session?.worker
  }

  /** What this client speaks with the pool: what it has shown, or what the pool's workers are known to speak. */
  #tongueOf(client: Client, pool: Pool): Tongue | undefined {
    const { protocol, era } = pool.spec
    const { tongues, envelope } = this.#board
    if (protocol === 'plain') return undefined
    if (protocol === 'acp') return tongues.acp
    const bond = client.bonds.size === 0 ? undefined : client.bonds.get(pool.spec.id)
    if (bond !== undefined && pool.spec.sharing !== 'isolated') return bond.tongue
    const shown = tongues.recognise(envelope)
    if (shown !== undefined) client.shown.set(pool.spec.id, shown)
    const known = shown ?? bond?.tongue ?? client.shown.get(pool.spec.id) ?? pool.tongue
    if (known !== undefined) return known
    return protocol === 'mcp' ? (era === 'modern' ? tongues.mcpModern : tongues.mcpLegacy) : undefined
  }

  // ---- plain: the seed's own contract ----

  #routeFree(client: Client, pool: Pool, isRequest: boolean): void {
    const worker = this.assignment.choose(client, pool, isRequest)
    if (worker !== undefined) this.#sendPlain(client, worker, isRequest)
  }

  /** Sessions are named, at the top or in params or both: each must be the client's own or new (contract 4.2.2, 6.4). */
  #routeSession(
    client: Client,
    pool: Pool,
    isRequest: boolean,
    top: SessionId | undefined,
    inner: SessionId | undefined,
  ): void {
    const { core } = this.#board
    const names = [top, inner].filter((name) => name !== undefined)
    let coming = 0
    for (const name of names) {
      const reason = this.#sessionFault(client, name, coming)
      if (reason !== undefined) return this.#board.refuse(client, isRequest, reason, { sessionId: name })
      if (!client.sessions.has(name)) coming++
    }
    const known = this.#knownSession(client, top, inner)
    const worker = this.assignment.choose(client, pool, isRequest, known)
    if (worker === undefined) return
    for (const name of names) {
      const session = client.sessions.get(name)
      if (session === undefined || session.worker === worker) continue
      this.#board.refuse(client, isRequest, 'session_id_conflict', { sessionId: name })
      return this.assignment.maybeRelease(worker)
    }
    for (const name of names) if (!client.sessions.has(name)) core.sessions.bind(name, client, worker)
    this.#sendPlain(client, worker, isRequest)
  }

  #sessionFault(client: Client, name: SessionId, coming: number): Reason | undefined {
    if (client.sessions.has(name)) return undefined
    if (client.lost.has(name)) return 'session_lost'
    if (this.#board.core.sessions.isForeign(name, client)) return 'session_not_owned'
    return this.#hasRoomForSession(client, coming) ? undefined : 'too_many_sessions'
  }

  #hasRoomForSession(client: Client, coming: number): boolean {
    return client.sessions.size + client.lost.size + coming < this.#board.core.spec.limits.maxSessionsPerClient
  }

  #sendPlain(client: Client, worker: Worker, isRequest: boolean): void {
    if (client.isInternal && !this.#isTold(client, worker, isRequest)) return
    if (!isRequest) return this.#board.forward(worker, undefined)
    const request = this.#open(client, worker)
    this.#board.forward(worker, request.spelling === undefined ? undefined : [this.#idEdit(request)])
  }

  #idEdit(request: Request): Edit {
    return replace(this.#board.envelope, FIELD.id, spell(request.key))
  }

  #open(client: Client, worker: Worker): Request {
    const { core, envelope } = this.#board
    if (worker.outstanding.size === worker.ownerless.size) worker.lastActivityMs = core.nowMs
    const request = core.requests.open(envelope, client, worker)
    const { requestTimeoutMs } = worker.pool.spec.limits
    if (requestTimeoutMs > 0) {
      request.timer = core.timers.set(core.nowMs + requestTimeoutMs, () => this.#timeOut(request))
    }
    return request
  }

  #timeOut(request: Request): void {
    const { client } = request
    if (client === undefined || request.row?.isLongLived) return
    this.#board.core.requests.disown(request)
    this.#board.tellCancelled(request)
    this.#board.observation.failed(request, faultOf('request_timeout'))
    this.#board.fail(client, request.idSpelling, 'request_timeout')
    this.#board.supervisor.maybeDismiss(request.worker)
    this.assignment.maybeRelease(request.worker)
  }

  // ---- spoken: a client and a worker that share a protocol ----

  #routeSpoken(
    client: Client,
    pool: Pool,
    tongue: Tongue,
    isRequest: boolean,
    top: SessionId | undefined,
    inner: SessionId | undefined,
  ): void {
    const row = tongue.client.find(this.#board.envelope)
    const named = tongue.dialect.hasSessions ? (inner ?? top) : undefined
    const fault = this.#spokenFault(client, pool, tongue, row, named, isRequest)
    if (fault !== undefined)
      return this.#board.refuse(client, isRequest, fault, named === undefined ? undefined : { sessionId: named })
    const parking = client.bonds.get(pool.spec.id)
    if (parking?.isParking && this.handshakes.parks(parking, isRequest)) return
    const bound = named === undefined ? this.#taskWorker(client, pool, row) : client.sessions.get(named)?.worker
    const worker = this.assignment.choose(client, pool, isRequest, bound)
    if (worker === undefined) return
    this.#speak(client, worker, tongue, row, named, isRequest)
    // What the bus answered itself holds no lease.
    this.assignment.maybeRelease(worker)
  }

  /** A task is known where it was started only. */
  #taskWorker(client: Client, pool: Pool, row: ClientRow | undefined): Worker | undefined {
    const taskId = row?.task === undefined ? undefined : this.#board.envelope.text(row.task)
    if (taskId === undefined) return undefined
    return pool.workers.find((worker) => worker.isReady && worker.tasks.get(taskId) === client)
  }

  #speak(
    client: Client,
    worker: Worker,
    tongue: Tongue,
    row: ClientRow | undefined,
    named: SessionId | undefined,
    isRequest: boolean,
  ): void {
    const { pool } = worker
    const isOwn = pool.spec.sharing === 'isolated'
    if (isRequest && !isOwn && this.#isUnproven(tongue, worker)) return this.handshakes.discover(client, worker)
    if (!isOwn && (this.#isUnproven(tongue, worker) || (worker.tongue ?? tongue) !== tongue))
      return this.#board.refuse(client, isRequest, 'protocol_mismatch')
    const bond = this.#bind(client, pool, tongue, worker)
    if (this.handshakes.parks(bond, isRequest)) return
    if (!isOwn && row !== undefined && this.#serveLocally(client, worker, bond, row, isRequest)) return
    if (row?.isOptional && isRequest && this.#endsForWorker(client, worker, named)) return
    this.#sendSpoken(client, worker, tongue, row, named, isRequest)
  }

  #spokenFault(
    client: Client,
    pool: Pool,
    tongue: Tongue,
    row: ClientRow | undefined,
    named: SessionId | undefined,
    isRequest: boolean,
  ): Reason | undefined {
    if (pool.tongue !== undefined && pool.tongue !== tongue && !isDiscovery(this.#board.envelope))
      return 'protocol_mismatch'
    if (row?.isUnknown && pool.tongue === tongue) return 'unknown_method'
    if (isRequest && row !== undefined && isNotification(row)) return 'unknown_method'
    if (row?.unlessShared && pool.spec.sharing === 'shared') return 'not_when_shared'
    if (row?.isLongLived && pool.spec.sharing === 'lease') return 'not_with_lease'
    if (row?.session === 'announced' && !this.#hasRoomForSession(client, comingSessions(client)))
      return 'too_many_sessions'
    if (named === undefined || client.sessions.has(named)) return undefined
    if (this.#isClaimedByOther(client, named) || this.#board.core.sessions.isForeign(named, client))
      return 'session_not_owned'
    if (row?.session === 'claimed' && this.#isLiveElsewise(pool, named)) return 'session_not_owned'
    if (row?.session === 'claimed')
      return this.#hasRoomForSession(client, comingSessions(client)) ? undefined : 'too_many_sessions'
    return client.lost.has(named) ? 'session_lost' : undefined
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

  /** A client shows an era, and nobody knows yet whether the worker is of it. */
  #isUnproven(tongue: Tongue, { pool, tongue: spoken }: Worker): boolean {
    const { mcpModern, acp } = this.#board.tongues
    if (tongue !== mcpModern || pool.spec.era === 'modern') return false
    return pool.tongue !== mcpModern && spoken !== mcpModern && spoken !== acp
  }

  /** The client stays with this worker; a worker that is new to it hears its `initialize` first. */
  #bind(client: Client, pool: Pool, tongue: Tongue, worker: Worker): Bond {
    const bond = client.bonds.get(pool.spec.id)
    if (pool.spec.sharing === 'isolated') worker.tongue = tongue
    worker.tongue ??= tongue
    if (pool.spec.era === 'modern' && pool.spec.sharing !== 'isolated') pool.tongue ??= tongue
    if (bond === undefined) {
      const made = new Bond(client, tongue, worker)
      client.bonds.set(pool.spec.id, made)
      return made
    }
    bond.tongue = tongue
    if (bond.worker === worker && bond.generation === worker.generation) return bond
    bond.moveTo(worker)
    const isOpening = tongue.client.find(this.#board.envelope)?.opens !== undefined
    const isKnown = bond.introduced.get(worker) === worker.generation
    if (bond.initialize === undefined || isOpening || isKnown) this.#takeUp(bond)
    else this.handshakes.repeat(bond, () => this.#takeUp(bond))
    return bond
  }

  /** A worker of a handshake that the bus does itself is there again: its clients need not do anything (mcp.md 1.3). */
  workerOpened(worker: Worker): void {
    for (const bond of worker.bonds) {
      if (bond.generation === worker.generation || bond.initialize !== undefined || worker.greeting !== 'done') continue
      bond.generation = worker.generation
      this.#takeUp(bond)
    }
  }

  /** A new worker learns what the client had told the old one. */
  #takeUp({ client, worker, uris }: Bond): void {
    for (const uri of uris) this.#join(client, worker, uri)
    if (worker.greeting === 'done') this.#tellLevel(worker)
  }

  /** What the bus answers itself where several clients share a worker; true when the message is done with. */
  #serveLocally(client: Client, worker: Worker, bond: Bond, row: ClientRow, isRequest: boolean): boolean {
    if (row.opens === 'once' && isRequest) {
      this.handshakes.welcome(client, worker)
      return true
    }
    if (row.confirms) return true
    return row.local !== undefined && isRequest && this.#locals[row.local](client, worker, bond, isRequest)
  }

  /** Behind one client there may be many that come and go; what is over for them must not count as in use for ever. */
  #endsForWorker(client: Client, worker: Worker, named: SessionId | undefined): boolean {
    const { core } = this.#board
    const session = named === undefined ? undefined : client.sessions.get(named)
    if (core.sessionNames === undefined || session === undefined) return false
    if (!worker.hasWelcomed || worker.isToldOfEnds) return false
    core.sessions.end(session)
    return this.#pong(client)
  }

  #pong(client: Client): boolean {
    this.#board.answer(client, this.#board.envelope.idSpelling(), '{}')
    return true
  }

  /** The worker is told the most verbose level anybody wants; each client gets what it asked for. */
  #setLevel(client: Client, worker: Worker, bond: Bond): boolean {
    const rank = rankOf(this.#board.envelope.text(FIELD.level))
    if (rank === -1) return false
    bond.level = rank
    this.#tellLevel(worker)
    return this.#pong(client)
  }

  #tellLevel(worker: Worker): void {
    let lowest: number = LEVELS.length
    for (const { level } of worker.bonds) if (level !== undefined) lowest = Math.min(lowest, level)
    if (lowest === LEVELS.length || lowest === worker.level) return
    worker.level = lowest
    this.#board.ask(worker, worker.tongue!.dialect.words!.setLevel, { level: LEVELS[lowest] }, () => {})
  }

  /** The worker hears of a resource once, however many clients subscribe to it. */
  #subscribe(client: Client, worker: Worker): boolean {
    const uri = this.#board.envelope.text(FIELD.uri)
    const subscribers = uri === undefined ? undefined : worker.subscriptions.get(uri)
    if (subscribers === undefined || subscribers.size === 0) return false
    subscribers.add(client)
    client.bonds.get(worker.pool.spec.id)?.uris.add(uri!)
    return this.#pong(client)
  }

  #unsubscribe(client: Client, worker: Worker, bond: Bond): boolean {
    const uri = this.#board.envelope.text(FIELD.uri)
    if (uri === undefined) return false
    bond.uris.delete(uri)
    const subscribers = worker.subscriptions.get(uri)
    subscribers?.delete(client)
    if (subscribers !== undefined && subscribers.size > 0) return this.#pong(client)
    worker.subscriptions.delete(uri)
    return false
  }

  #join(client: Client, worker: Worker, uri: string): void {
    const subscribers = worker.subscriptions.get(uri)
    if (subscribers !== undefined) return void subscribers.add(client)
    worker.subscriptions.set(uri, new Set([client]))
    this.#board.ask(worker, worker.tongue!.dialect.words!.subscribe, { uri }, () => {})
  }

  #sendSpoken(
    client: Client,
    worker: Worker,
    tongue: Tongue,
    row: ClientRow | undefined,
    named: SessionId | undefined,
    isRequest: boolean,
  ): void {
    const { core, envelope } = this.#board
    const sessionAtWorker = named === undefined ? undefined : this.#idAtWorker(client, worker, row, named)
    const edits = this.#board.cuts(tongue.dialect)
    if (core.sessionNames !== undefined) edits.push(...this.#board.renamesTo(worker, client, tongue.dialect))
    if (row?.cancels !== undefined) return this.#sendCancel(client, worker, row, edits)
    if (row?.answersToken !== undefined) return this.#sendToAsker(client, row, edits)
    if (row?.task !== undefined && worker.tasks.get(envelope.text(row.task) ?? '') !== client) {
      return this.#board.refuse(client, isRequest, 'task_not_owned')
    }
    if (client.isInternal && !this.#isTold(client, worker, isRequest)) return
    if (!isRequest) return this.#board.forward(worker, edits)
    const request = this.#open(client, worker)
    request.row = row
    request.tongue = tongue
    request.sessionId = named
    request.sessionAtWorker = sessionAtWorker
    if (request.spelling !== undefined) edits.push(this.#idEdit(request))
    if (row !== undefined) this.#prepare(client, worker, row, request)
    const { progressToken } = tongue.dialect
    if (progressToken !== undefined && envelope.has(progressToken)) {
      core.requests.lendToken(envelope, progressToken, request)
      if (request.tokenSpelling !== undefined) edits.push(replace(envelope, progressToken, spell(request.token!)))
      request.wantsLog = envelope.has(FIELD.metaLogLevel)
    } else if (envelope.has(FIELD.metaLogLevel)) request.wantsLog = true
    if (worker.pool.spec.trace) this.#board.observation.opened(request, client, worker)
    this.#board.forward(worker, edits)
  }

  #idAtWorker(client: Client, worker: Worker, row: ClientRow | undefined, name: SessionId): SessionId {
    const session = client.sessions.get(name)
    if (session !== undefined) return session.idAtWorker
    const names = this.#board.core.sessionNames
    if (names === undefined) return name
    return row?.session === 'claimed' ? names.claim(worker.pool.spec.id, name) : (names.find(name)?.id ?? name)
  }

  /** What must be known before the answer comes. */
  #prepare(client: Client, worker: Worker, row: ClientRow, request: Request): void {
    if (row.task !== undefined) request.taskId = this.#board.envelope.text(row.task)
    if (row.local === 'subscribe') request.uri = this.#board.envelope.text(FIELD.uri)
    if (row.opens !== undefined) this.#record(client.bonds.get(worker.pool.spec.id)!)
    if (row.session === 'announced') {
      worker.announcing++
      this.#lendServers(client, worker)
    }
    if (row.session === 'claimed' && request.sessionId !== undefined && !client.sessions.has(request.sessionId)) {
      worker.claims.set(request.sessionAtWorker!, request)
    }
  }

  /** The `initialize` as the worker gets it, to be repeated to the next one. */
  #record(bond: Bond): void {
    bond.initialize = splice(this.#board.envelope, this.#board.cuts(bond.tongue.dialect))
    bond.introduced.set(bond.worker, bond.generation)
  }

  /** Servers that the client itself offers to the session (ACP `mcpServers` of type `acp`). */
  #lendServers(client: Client, worker: Worker): void {
    const { bytes, start, end } = this.#board.envelope
    if (bytes.subarray(start, end).indexOf('"acp"') === -1) return
    const servers: unknown = JSON.parse(bytes.utf8Slice(start, end))?.params?.mcpServers
    if (!Array.isArray(servers)) return
    for (const server of servers) {
      if (server?.type === 'acp' && typeof server.id === 'string') remember(worker.servers, server.id, client)
    }
  }

  /** A cancel names a request of this client, by the id the worker knows; others' requests are out of reach. */
  #sendCancel(client: Client, worker: Worker, row: ClientRow, edits: Edit[]): void {
    const { core, envelope } = this.#board
    const key = envelope.key(row.cancels!)
    const request = key === undefined ? undefined : core.requests.find(client, worker, key)
    if (request === undefined) return core.drop('cancel_for_nothing')
    if (request.spelling !== undefined) edits.push(replace(envelope, row.cancels!, spell(request.key)))
    this.#board.forward(worker, edits)
    if (!row.isFinal) return
    this.#board.waive(request)
    this.assignment.maybeRelease(worker)
  }

  /** Progress of something the client was asked: to whoever asked. */
  #sendToAsker(client: Client, row: ClientRow, edits: readonly Edit[]): void {
    const key = this.#board.envelope.key(row.answersToken!)
    for (const question of client.questions.values()) {
      if (key === undefined || question.token !== key) continue
      if (question.worker.generation === question.generation) return this.#board.forward(question.worker, edits)
    }
    this.#board.core.drop('late_progress')
  }
}

/** What such a row says has no answer; sent with an id it is refused, since a worker may stay silent. */
function isNotification({ cancels, answersToken, confirms }: ClientRow): boolean {
  return cancels !== undefined || answersToken !== undefined || confirms === true
}

/** Sessions that answers under way may bring. */
function comingSessions(client: Client): number {
  let coming = 0
  for (let request = client.newest; request !== undefined; request = request.older)
    if (request.row?.session === 'announced' || request.row?.session === 'claimed') coming++
  return coming
}

const MAX_REMEMBERED = 10_000

/** Bounded: the oldest is forgotten. */
export function remember<Value>(table: Map<string, Value>, key: string, value: Value): void {
  table.delete(key)
  table.set(key, value)
  if (table.size <= MAX_REMEMBERED) return
  for (const oldest of table.keys()) {
    table.delete(oldest)
    return
  }
}
