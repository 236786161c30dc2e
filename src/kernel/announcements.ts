/**
 * Sessions that a worker's answers make, bring back or end, and what a worker says of a session before it has announced
 * it (contract 6.4, 6.6, 6.9).
 *
 * Lines for a session that is not known yet wait while a request that may announce it is under way, and follow its answer.
 * The worker is never paused for them; beyond the bound they are dropped and counted.
 */
import type { Envelope } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { elementsOf, memberOf, type Span } from '../wire/json-array.ts'
import { dropTrailingComma, type Edit, insertMember, replace } from '../wire/splice.ts'
import { hasBatches, type WorkerRow } from './dialect-table.ts'
import type { Dialect } from './dialects.ts'
import { ownMap } from './empty.ts'
import { FIXED } from './limits.ts'
import type { Request } from './owed.ts'
import type { Client, Worker } from './peers.ts'
import { comingSessions, hasRoomForSession, type Session } from './sessions.ts'
import { type Switchboard, sessionNamed } from './switchboard.ts'
import type { SessionId } from './vocabulary.ts'

export class Announcements {
  readonly #board: Switchboard

  constructor(board: Switchboard) {
    this.#board = board
  }

  /** The answer to a request whose row says something of sessions or subscriptions. */
  settle(request: Request, client: Client | undefined, worker: Worker, line: Envelope): void {
    const { row, sessionId, sessionAtWorker } = request
    const { core } = this.#board
    const isResult = line.has(FIELD.result)
    if (row?.session === 'announced') this.#settleAnnounced(request, client, worker, line)
    if (sessionAtWorker !== undefined && worker.claims.get(sessionAtWorker) === request)
      worker.claims.delete(sessionAtWorker)
    if (client === undefined || !isResult) return
    if (row?.session === 'claimed' && sessionId !== undefined && !client.sessions.has(sessionId))
      this.#bind(sessionId, client, worker, sessionAtWorker)
    if (row?.session === 'ended' && sessionId !== undefined) {
      const session = client.sessions.get(sessionId)
      if (session !== undefined && session.kept === undefined) core.sessions.end(session)
    }
    if (row?.opens === 'each') this.#learnCapabilities(request, client, worker, line)
    if (row?.opens === 'once') this.#learnRevision(client, worker, request, line)
    if (row?.local === 'subscribe') this.#subscribed(client, worker, request)
  }

  /** Where it lives is told where others ask for it (contract 14.6). */
  #bind(name: SessionId, client: Client, worker: Worker, id?: SessionId): Session {
    const { core } = this.#board
    const { id: pool, placeOf } = worker.pool.spec
    if (core.spec.node !== undefined && placeOf === undefined)
      core.actions.push({ do: 'session-opened', pool, session: name })
    return core.sessions.bind(name, client, worker, id)
  }

  #settleAnnounced(request: Request, client: Client | undefined, worker: Worker, line: Envelope): void {
    if (client !== undefined) worker.announcing--
    const id = line.has(FIELD.result) ? line.text(FIELD.resultSessionId) : undefined
    if (id === undefined) return
    // Nobody is left to own it.
    if (client === undefined) return this.#closeOrphan(worker, id, request)
    if (worker.sessions.has(id)) return
    const { sessionNames } = this.#board.core
    const name = sessionNames?.announce(worker.pool.spec.id, id) ?? id
    const { kept } = this.#board
    const isKept = worker.pool.spec.keeping !== undefined && request.dialect?.table.keeping !== undefined
    if (client.sessions.has(name) || (isKept && kept.table.isHeld(client.principal, name))) return
    const session = this.#bind(name, client, worker, id)
    if (isKept) kept.announce(session, client, request, line)
  }

  /** The client that asked for the session has gone: an agent that can is told to close it. */
  #closeOrphan(worker: Worker, sessionId: SessionId, { dialect }: Request): void {
    const departure = dialect?.table.departure
    if (departure === undefined || !worker.isToldOfEnds) return
    this.#board.ask(worker, { method: departure.closeSession, params: { sessionId } })
  }

  /** The worker has announced a session under an id that its client has elsewhere, or another client has here. */
  conflictOf({ row, worker }: Request, client: Client, line: Envelope): SessionId | undefined {
    if (row?.session !== 'announced') return undefined
    const name = line.text(FIELD.resultSessionId)
    if (name === undefined) return undefined
    return worker!.sessions.get(name)?.driver === client ? undefined : name
  }

  #learnCapabilities({ dialect }: Request, client: Client, worker: Worker, line: Envelope): void {
    worker.canClose = offersClose(dialect!, line)
    const introduction = client.introductions.get(worker.pool.spec.id)
    if (introduction === undefined) return
    const version = line.key(FIELD.resultProtocolVersion)
    introduction.welcome(typeof version === 'number' ? version : undefined)
  }

  /** A worker of the client's own has welcomed it: both speak the revision that the answer names. */
  #learnRevision(client: Client, worker: Worker, { dialect }: Request, line: Envelope): void {
    const revision = line.text(FIELD.resultProtocolVersion)
    client.hasBatches = worker.hasBatches = hasBatches(dialect!.table, revision)
  }

  #subscribed(client: Client, worker: Worker, { uri }: Request): void {
    if (uri === undefined) return
    const subscribers = worker.subscriptions.get(uri) ?? new Set<Client>()
    worker.subscriptions = ownMap(worker.subscriptions).set(uri, subscribers.add(client))
    client.introductions.get(worker.pool.spec.id)?.note(uri)
  }

  /** A list of sessions shows a client its own and what can be loaded, never another client's live ones. */
  editsFor({ row }: Request, client: Client, worker: Worker, line: Envelope): Edit[] {
    if (!row?.listsSessions || !line.has(FIELD.resultSessions)) return this.#renameResult(worker, line)
    const edits = this.hideSessions(client, worker, line)
    const isPartial = worker.pool.spec.balance === 'session' && worker.pool.workers.length > 1
    return isPartial ? [...edits, insertMember(line, FIELD.result, PARTIAL_LIST)] : edits
  }

  /** The edits that take other clients' live sessions out of a list. */
  hideSessions(client: Client, worker: Worker, envelope: Envelope): Edit[] {
    const edits: Edit[] = []
    const renames: Edit[] = []
    for (const element of elementsOf(
      envelope.bytes,
      envelope.startOf(FIELD.resultSessions),
      envelope.endOf(FIELD.resultSessions),
    )) {
      const name: unknown = JSON.parse(envelope.bytes.utf8Slice(element.start, element.end))?.sessionId
      const owner = typeof name === 'string' ? worker.sessions.get(name)?.driver : undefined
      const isForeign =
        typeof name === 'string' &&
        (owner ?? (this.#board.core.sessions.isForeign(name, client) ? undefined : client)) !== client
      if (isForeign) edits.push({ start: element.start, end: element.cutEnd, text: '' })
      else if (typeof name === 'string') renames.push(...this.#renameListed(worker, envelope, element, name))
    }
    return [...dropTrailingComma(envelope.bytes, edits, envelope.endOf(FIELD.resultSessions)), ...renames]
  }

  #renameResult(worker: Worker, line: Envelope): Edit[] {
    const id = this.#board.core.sessionNames === undefined ? undefined : line.text(FIELD.resultSessionId)
    const name = id === undefined ? undefined : this.#board.nameAtClient(worker, id)
    return name === id ? [] : [replace(line, FIELD.resultSessionId, JSON.stringify(name))]
  }

  #renameListed(worker: Worker, { bytes }: Envelope, { start, end }: Span, id: SessionId): Edit[] {
    const name = this.#board.nameAtClient(worker, id)
    const value = name === id ? undefined : memberOf(bytes, start, end, 'sessionId')
    return value === undefined ? [] : [{ ...value, text: JSON.stringify(name) }]
  }

  /** A child session belongs to the client of its parent from the moment it is named. */
  adopt(worker: Worker, client: Client, name: SessionId | undefined): void {
    if (name === undefined || worker.sessions.has(name)) return
    const known = this.#board.nameAtClient(worker, name)
    if (client.sessions.has(known) || !hasRoomForSession(this.#board.core, client, comingSessions(client))) return
    this.#board.core.sessions.bind(known, client, worker, name)
  }

  /** True when the message waits for the answer that may announce its session. */
  maybeHold(worker: Worker, row: WorkerRow, line: Envelope): boolean {
    if (worker.announcing === 0 || !row.to.includes('session')) return false
    const sessionId = sessionNamed(line)
    // What is told again for somebody who has gone is for nobody who comes.
    if (sessionId === undefined || worker.claims.has(sessionId)) return false
    const bytes = line.end - line.start + 1
    if (worker.held.length >= FIXED.maxHeldLines || worker.heldBytes + bytes > FIXED.maxHeldBytes) {
      this.#board.core.drop('session_held_too_long')
      return !line.has(FIELD.id)
    }
    worker.held.push({ sessionId, line: line.keep() })
    worker.heldBytes += bytes
    return true
  }

  /** What was held for sessions that are known now follows; when nothing more can be announced, the rest is dropped. */
  releaseHeld(worker: Worker, deliver: (line: Envelope) => void): void {
    if (worker.held.length === 0) return
    const { held } = worker
    const isOver = worker.announcing === 0
    worker.held = isOver ? [] : held.filter(({ sessionId }) => !worker.sessions.has(sessionId))
    worker.heldBytes = worker.held.reduce((bytes, { line }) => bytes + line.bytes.length, 0)
    for (const { sessionId, line } of held) if (isOver || worker.sessions.has(sessionId)) deliver(line)
    this.#board.flow.account(worker)
  }
}

/** A list of one worker where the sessions of a client are spread over several (contract 6.6). */
const PARTIAL_LIST = '"_meta":{"stdio-bus/partial":true}'

/** By its answer to a handshake the worker is one that is told of the end of a session. */
export function offersClose({ table }: Dialect, line: Envelope): boolean {
  const result: unknown = JSON.parse(line.bytes.utf8Slice(line.startOf(FIELD.result), line.endOf(FIELD.result)))
  return (table.closesAt ?? []).some((path) => isOffered(result, path))
}

/** The value at the path is there, and says yes. */
function isOffered(value: unknown, path: readonly string[]): boolean {
  let at = value
  for (const key of path) at = (at as Record<string, unknown> | null | undefined)?.[key]
  return at !== undefined && at !== null && at !== false
}
