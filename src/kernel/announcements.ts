/**
 * Sessions that a worker's answers make, bring back or end, and what a worker says of a session before it has announced
 * it (contract 6.4, 6.6, 6.9).
 *
 * Lines for a session that is not known yet wait while a request that may announce it is under way, and follow its answer.
 * The worker is never paused for them; beyond the bound they are dropped and counted.
 */
import { FIELD } from '../wire/fields.ts'
import { elementsOf } from '../wire/json-array.ts'
import { isSpace, skipSpace, skipValue } from '../wire/json-text.ts'
import { hasBatches, type WorkerRow } from './dialect.ts'
import { FIXED } from './limits.ts'
import type { Client, Worker } from './peers.ts'
import type { Request } from './requests.ts'
import { type Edit, replace } from './splice.ts'
import type { Switchboard } from './switchboard.ts'
import type { SessionId } from './vocabulary.ts'

const COMMA = 0x2c

export class Announcements {
  readonly #board: Switchboard

  constructor(board: Switchboard) {
    this.#board = board
  }

  /** The answer to a request whose row says something of sessions or subscriptions is at hand. */
  settle(request: Request, worker: Worker): void {
    const { client, row, sessionId, sessionAtWorker } = request
    const { core, envelope } = this.#board
    const isResult = envelope.has(FIELD.result)
    if (row?.session === 'announced') this.#settleAnnounced(request, worker, isResult)
    if (sessionAtWorker !== undefined && worker.claims.get(sessionAtWorker) === request)
      worker.claims.delete(sessionAtWorker)
    if (row?.opens === 'each' && !worker.hasWelcomed) this.#learnTongue(worker, isResult)
    if (client === undefined || !isResult) return
    if (row?.session === 'claimed' && sessionId !== undefined && !client.sessions.has(sessionId)) {
      core.sessions.bind(sessionId, client, worker, sessionAtWorker)
    }
    if (row?.session === 'ended' && sessionId !== undefined) {
      const session = client.sessions.get(sessionId)
      if (session !== undefined) core.sessions.end(session)
    }
    if (row?.opens === 'each') this.#learnCapabilities(client, worker)
    if (row?.opens === 'once') this.#learnRevision(client, worker, request)
    if (row?.local === 'subscribe') this.#subscribed(client, worker, request)
  }

  /** One client's mistake says nothing of what a worker speaks; its welcome does. */
  #learnTongue(worker: Worker, isWelcome: boolean): void {
    if (isWelcome) worker.hasWelcomed = true
    else worker.tongue = undefined
  }

  #settleAnnounced(request: Request, worker: Worker, isResult: boolean): void {
    if (request.client !== undefined) worker.announcing--
    const id = isResult ? this.#board.envelope.text(FIELD.resultSessionId) : undefined
    if (id === undefined) return
    const { client } = request
    // Nobody is left to own it.
    if (client === undefined) return this.closeOrphan(worker, id, request)
    if (worker.sessions.has(id)) return
    const { sessionNames, sessions } = this.#board.core
    const name = sessionNames?.announce(worker.pool.spec.id, id) ?? id
    if (!client.sessions.has(name)) sessions.bind(name, client, worker, id)
  }

  /** The client that asked for the session has gone: an agent that can is told to close it. */
  closeOrphan(worker: Worker, sessionId: SessionId, { tongue }: Request): void {
    const farewell = tongue?.dialect.farewell
    if (farewell === undefined || !worker.isToldOfEnds) return
    this.#board.ask(worker, farewell.closeSession, { sessionId }, () => {})
  }

  /** The worker has announced a session under an id that its client has elsewhere, or another client has here. */
  conflictOf({ row, worker }: Request, client: Client): SessionId | undefined {
    if (row?.session !== 'announced') return undefined
    const name = this.#board.envelope.text(FIELD.resultSessionId)
    if (name === undefined) return undefined
    return worker.sessions.get(name)?.client === client ? undefined : name
  }

  #learnCapabilities(client: Client, worker: Worker): void {
    const { bytes, startOf, endOf } = fieldsOf(this.#board)
    const result = JSON.parse(bytes.utf8Slice(startOf, endOf)) as Capabilities
    const session = result?.agentCapabilities?.sessionCapabilities ?? result?.capabilities?.session
    worker.canClose = session?.close !== undefined && session.close !== null && session.close !== false
    const bond = client.bonds.get(worker.pool.spec.id)
    if (bond !== undefined) bond.canClose = worker.canClose
  }

  /** A worker of the client's own has welcomed it: both speak the revision that the answer names. */
  #learnRevision(client: Client, worker: Worker, { tongue }: Request): void {
    const revision = this.#board.envelope.text(FIELD.resultProtocolVersion)
    client.hasBatches = worker.hasBatches = hasBatches(tongue!.dialect, revision)
  }

  #subscribed(client: Client, worker: Worker, { uri }: Request): void {
    if (uri === undefined) return
    const subscribers = worker.subscriptions.get(uri) ?? new Set<Client>()
    worker.subscriptions.set(uri, subscribers.add(client))
    client.bonds.get(worker.pool.spec.id)?.uris.add(uri)
  }

  /** A list of sessions shows a client its own and what can be loaded, never another client's live ones. */
  editsFor({ row }: Request, client: Client, worker: Worker): Edit[] {
    if (!row?.listsSessions || !this.#board.envelope.has(FIELD.resultSessions)) return this.#renameResult(worker)
    return this.hideSessions(client, worker)
  }

  /** The edits that take other clients' live sessions out of the list at hand. */
  hideSessions(client: Client, worker: Worker): Edit[] {
    const { envelope } = this.#board
    const edits: Edit[] = []
    const renames: Edit[] = []
    for (const element of elementsOf(
      envelope.bytes,
      envelope.startOf(FIELD.resultSessions),
      envelope.endOf(FIELD.resultSessions),
    )) {
      const name: unknown = JSON.parse(envelope.bytes.utf8Slice(element.start, element.end))?.sessionId
      const owner = typeof name === 'string' ? worker.sessions.get(name)?.client : undefined
      const isForeign =
        typeof name === 'string' &&
        (owner ?? (this.#board.core.sessions.isForeign(name, client) ? undefined : client)) !== client
      if (isForeign) edits.push({ start: element.start, end: element.cutEnd, text: '' })
      else if (typeof name === 'string') renames.push(...this.#renameListed(worker, element, name))
    }
    return [...dropTrailingComma(envelope.bytes, edits, envelope.endOf(FIELD.resultSessions)), ...renames]
  }

  #renameResult(worker: Worker): Edit[] {
    const { core, envelope } = this.#board
    const id = core.sessionNames === undefined ? undefined : envelope.text(FIELD.resultSessionId)
    const name = id === undefined ? undefined : this.#board.nameAtClient(worker, id)
    return name === id ? [] : [replace(envelope, FIELD.resultSessionId, JSON.stringify(name))]
  }

  #renameListed(worker: Worker, { start, end }: Span, id: SessionId): Edit[] {
    const name = this.#board.nameAtClient(worker, id)
    const { bytes } = this.#board.envelope
    const value = name === id ? undefined : memberOf(bytes, start, end, 'sessionId')
    return value === undefined ? [] : [{ ...value, text: JSON.stringify(name) }]
  }

  /** A child session belongs to the client of its parent from the moment it is named. */
  adopt(worker: Worker, client: Client, name: SessionId | undefined): void {
    if (name === undefined || worker.sessions.has(name)) return
    const known = this.#board.nameAtClient(worker, name)
    if (client.sessions.has(known) || client.sessions.size >= this.#board.core.spec.limits.maxSessionsPerClient) return
    this.#board.core.sessions.bind(known, client, worker, name)
  }

  /** True when the message at hand waits for the answer that may announce its session. */
  maybeHold(worker: Worker, row: WorkerRow): boolean {
    if (worker.announcing === 0 || !row.to.includes('session')) return false
    const sessionId = this.#board.sessionNamed()
    if (sessionId === undefined) return false
    const line = this.#board.copyLine()
    if (worker.held.length >= FIXED.maxHeldLines || worker.heldBytes + line.length > FIXED.maxHeldBytes) {
      this.#board.core.drop('session_held_too_long')
      return !this.#board.envelope.has(FIELD.id)
    }
    worker.held.push({ sessionId, line })
    worker.heldBytes += line.length
    return true
  }

  /** What was held for sessions that are known now follows; when nothing more can be announced, the rest is dropped. */
  releaseHeld(worker: Worker, deliver: (line: Buffer) => void): void {
    if (worker.held.length === 0) return
    const { held } = worker
    const isOver = worker.announcing === 0
    worker.held = isOver ? [] : held.filter(({ sessionId }) => !worker.sessions.has(sessionId))
    worker.heldBytes = worker.held.reduce((bytes, { line }) => bytes + line.length, 0)
    for (const { sessionId, line } of held) if (isOver || worker.sessions.has(sessionId)) deliver(line)
  }
}

interface Capabilities {
  readonly agentCapabilities?: { readonly sessionCapabilities?: { readonly close?: unknown } }
  readonly capabilities?: { readonly session?: { readonly close?: unknown } }
}

function fieldsOf({ envelope }: Switchboard): { bytes: Buffer; startOf: number; endOf: number } {
  return { bytes: envelope.bytes, startOf: envelope.startOf(FIELD.result), endOf: envelope.endOf(FIELD.result) }
}

interface Span {
  readonly start: number
  readonly end: number
}

/** Where the value of an object's last member with this key lies. */
function memberOf(bytes: Buffer, start: number, end: number, key: string): Span | undefined {
  let found: Span | undefined
  for (let at = skipSpace(bytes, start + 1, end); at < end - 1; ) {
    const keyEnd = skipValue(bytes, at, end)
    const value = skipSpace(bytes, skipSpace(bytes, keyEnd, end) + 1, end)
    const valueEnd = skipValue(bytes, value, end)
    if (JSON.parse(bytes.utf8Slice(at, keyEnd)) === key) found = { start: value, end: valueEnd }
    at = skipSpace(bytes, skipSpace(bytes, valueEnd, end) + 1, end)
  }
  return found
}

/** When the last element is cut, the comma before it goes too. */
function dropTrailingComma(bytes: Buffer, edits: Edit[], end: number): Edit[] {
  const last = edits.at(-1)
  if (last === undefined) return edits
  let behind = last.end
  while (behind < end && isSpace(bytes[behind]!)) behind++
  if (behind < end - 1) return edits
  let first = edits.length - 1
  let before = last.start - 1
  for (;;) {
    while (isSpace(bytes[before]!)) before--
    if (bytes[before] !== COMMA) return edits
    const previous = edits[first - 1]
    if (previous === undefined || previous.end !== before + 1) break
    first--
    before = edits[first]!.start - 1
  }
  edits[first] = { ...edits[first]!, start: before }
  return edits
}
