/**
 * From a client to a worker that share a protocol (contract 6.4, 6.6, 6.7).
 *
 * One generic piece: what a protocol adds stands in the rows of its dialect. The client stays with its worker; sessions are
 * recorded from answers; what refers to an id or a token follows it.
 */
import { FIELD } from '../wire/fields.ts'
import { Bond } from './bonds.ts'
import type { ClientRow } from './dialect.ts'
import type { Reason } from './faults.ts'
import type { Ledger } from './ledger.ts'
import type { Links } from './links.ts'
import type { Client, Worker } from './peers.ts'
import type { Pool } from './pools.ts'
import { remember } from './remember.ts'
import { type Request, spell } from './requests.ts'
import { hasRoomForSession } from './sessions.ts'
import type { SharedDuties } from './shared-duties.ts'
import { type Edit, replace, splice } from './splice.ts'
import type { Switchboard } from './switchboard.ts'
import { isDiscovery, type Tongue } from './tongue.ts'
import type { SessionId } from './vocabulary.ts'

export class Spoken {
  readonly #board: Switchboard
  readonly #links: Links
  readonly #ledger: Ledger
  readonly #duties: SharedDuties

  constructor(board: Switchboard, links: Links, ledger: Ledger, duties: SharedDuties) {
    this.#board = board
    this.#links = links
    this.#ledger = ledger
    this.#duties = duties
  }

  /** The message at hand, of a client that speaks `tongue` with the pool. */
  route(
    client: Client,
    pool: Pool,
    tongue: Tongue,
    isRequest: boolean,
    top: SessionId | undefined,
    inner: SessionId | undefined,
  ): void {
    const row = tongue.client.find(this.#board.envelope)
    const named = tongue.dialect.hasSessions ? (inner ?? top) : undefined
    const fault = this.#faultOf(client, pool, tongue, row, named, isRequest)
    if (fault !== undefined)
      return this.#board.refuse(client, isRequest, fault, named === undefined ? undefined : { sessionId: named })
    const parking = client.bonds.get(pool.spec.id)
    if (parking?.isParking && this.#links.handshakes.parks(parking, isRequest)) return
    const bound = named === undefined ? this.#taskWorker(client, pool, row) : client.sessions.get(named)?.worker
    const { assignment } = this.#links
    const host = isAnsweredHere(row, isRequest) ? assignment.hostOf(client, pool) : undefined
    const worker = host ?? assignment.choose(client, pool, isRequest, bound)
    if (worker === undefined) return
    this.#speak(client, worker, tongue, row, named, isRequest)
    // What the bus answered itself holds no lease.
    assignment.maybeRelease(worker)
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
    if (isRequest && !isOwn && this.#isUnproven(tongue, worker)) return this.#links.handshakes.discover(client, worker)
    if (!isOwn && (this.#isUnproven(tongue, worker) || (worker.tongue ?? tongue) !== tongue))
      return this.#board.refuse(client, isRequest, 'protocol_mismatch')
    const bond = this.#bind(client, pool, tongue, worker)
    if (this.#links.handshakes.parks(bond, isRequest)) return
    if (!isOwn && row !== undefined && this.#duties.serve(client, worker, bond, row, isRequest)) return
    if (row?.isOptional && isRequest && this.#endsForWorker(client, worker, named)) return
    this.#send(client, worker, tongue, row, named, isRequest)
  }

  #faultOf(
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
    if (row?.session === 'announced' && !hasRoomForSession(this.#board.core, client, comingSessions(client)))
      return 'too_many_sessions'
    if (named === undefined || client.sessions.has(named)) return undefined
    if (this.#isClaimedByOther(client, named) || this.#board.core.sessions.isForeign(named, client))
      return 'session_not_owned'
    if (row?.session === 'claimed' && this.#isLiveElsewise(pool, named)) return 'session_not_owned'
    if (row?.session === 'claimed')
      return hasRoomForSession(this.#board.core, client, comingSessions(client)) ? undefined : 'too_many_sessions'
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
    if (bond.initialize === undefined || isOpening || isKnown) this.#duties.takeUp(bond)
    else this.#links.handshakes.repeat(bond, () => this.#duties.takeUp(bond))
    return bond
  }

  /** Behind one client there may be many that come and go; what is over for them must not count as in use for ever. */
  #endsForWorker(client: Client, worker: Worker, named: SessionId | undefined): boolean {
    const { core } = this.#board
    const session = named === undefined ? undefined : client.sessions.get(named)
    if (core.sessionNames === undefined || session === undefined) return false
    if (!worker.hasWelcomed || worker.isToldOfEnds) return false
    core.sessions.end(session)
    return this.#duties.pong(client)
  }

  #send(
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
    if (client.isInternal && !this.#ledger.isTold(client, worker, isRequest)) return
    if (!isRequest) return this.#board.forward(worker, edits)
    const request = this.#ledger.open(client, worker)
    request.row = row
    request.tongue = tongue
    request.sessionId = named
    request.sessionAtWorker = sessionAtWorker
    if (request.spelling !== undefined) edits.push(this.#ledger.idEdit(request))
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
    this.#links.assignment.maybeRelease(worker)
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

/** The handshake and pings, where the bus does them for all clients of a worker. */
function isAnsweredHere(row: ClientRow | undefined, isRequest: boolean): boolean {
  if (row === undefined) return false
  return row.confirms === true || (isRequest && (row.opens === 'once' || row.local === 'pong'))
}

/** Sessions that answers under way may bring. */
function comingSessions(client: Client): number {
  let coming = 0
  for (let request = client.newest; request !== undefined; request = request.older)
    if (request.row?.session === 'announced' || request.row?.session === 'claimed') coming++
  return coming
}
