/**
 * Sessions that outlive their clients, as the rest of the kernel meets them (contract 12): what comes for one, what is said
 * in one, who goes, and when one ends.
 *
 * Only pools that say so keep sessions; for all others nothing here is ever called. Invariant: a session ends once, by
 * `end` or `lose`, and nothing that waits for it is left.
 */
import { Envelope } from '../../wire/envelope.ts'
import { FIELD } from '../../wire/fields.ts'
import type { KeepingWords, WorkerRow } from '../dialect-table.ts'
import type { BusEvent } from '../events.ts'
import { FIXED } from '../limits.ts'
import type { Request } from '../owed.ts'
import type { Client, Worker } from '../peers.ts'
import type { Pool } from '../pools.ts'
import type { Route } from '../route.ts'
import type { Session } from '../sessions.ts'
import type { Switchboard } from '../switchboard.ts'
import type { PoolId, Principal, SessionId } from '../vocabulary.ts'
import { KeptClaims } from './claims.ts'
import { History } from './history.ts'
import type { KeptSession } from './kept-session.ts'
import { paramsOf, resultOf } from './lines.ts'
import { Participants } from './participants.ts'
import { KeptQuestions } from './questions.ts'
import { SessionList } from './session-list.ts'
import { KeptTable } from './table.ts'
import { KeptTurns } from './turns.ts'

export class Kept {
  readonly #board: Switchboard
  readonly history: History
  readonly table: KeptTable
  readonly participants: Participants
  readonly turns: KeptTurns
  readonly questions: KeptQuestions
  readonly claims: KeptClaims
  readonly #lists: SessionList
  readonly #reader = new Envelope()
  /** Of each pool, those that were left by everybody, the first one first; some may have somebody again. */
  readonly #detached = new Map<PoolId, Set<KeptSession>>()

  constructor(board: Switchboard) {
    this.#board = board
    this.history = new History(board)
    this.table = new KeptTable(board, this.history)
    this.participants = new Participants(board, this.history)
    this.turns = new KeptTurns(board, this.history, this.participants)
    this.questions = new KeptQuestions(board, this.history)
    this.claims = new KeptClaims(board, this)
    this.#lists = new SessionList(board, this)
    this.history.onCount = (kept, bytesBefore) => this.table.count(kept, bytesBefore)
    this.participants.onDriver = (kept) => this.questions.move(kept)
    this.participants.onDetached = (kept) => this.#detach(kept)
  }

  // ---- from clients ----

  /** True: the message has been answered or refused here, or waits. */
  take(route: Route): boolean {
    const { row, session, client, pool } = route
    if (row?.cancels !== undefined && route.request === undefined) return this.turns.withdraw(route)
    if (session === undefined || row?.session === 'announced') return false
    if (row?.session === 'claimed') return this.claims.take(route)
    const kept = client.sessions.get(session)?.kept
    if (kept === undefined) return this.#takeUnowned(route, session, pool.spec.id)
    if (row?.isTurn && route.request?.kept === undefined) {
      if (this.turns.hold(kept, route)) return true
      this.turns.begin(kept, route)
    }
    if (row?.stopsTurn) this.turns.stop(kept, client)
    if (row?.session !== 'ended' || row.deletes || kept.participants.length < 2 || route.request === undefined)
      return false
    this.participants.leave(kept.seatOf(client)!)
    this.#board.answerRequest(route.request, '"result":{}')
    return true
  }

  /** A session that is not the client's: what is known of it decides. */
  #takeUnowned(route: Route, id: SessionId, pool: PoolId): boolean {
    const { client } = route
    const known = this.table.find(client.principal, id)
    if (known !== undefined && !known.isLive && route.row?.session !== 'ended') {
      this.#board.refuse(route, 'session_lost', { sessionId: id })
      return true
    }
    // One that lives is for those who take part in it; to delete it, it need not be loaded.
    const isOthers = known?.isLive === true && route.row?.deletes !== true
    if (!isOthers && !this.table.isForeign(client.principal, id, pool)) return false
    this.#board.refuse(route, 'session_not_owned', { sessionId: id })
    return true
  }

  /** The agent has been told to stop a turn: nothing that it asks of others holds it up. */
  stopped({ client, session }: Route): void {
    const kept = client.sessions.get(session!)?.kept
    if (kept !== undefined) this.questions.stop(kept, client)
  }

  /** The request has been answered by the worker, for a client that may have gone. */
  answered(request: Request, line: Envelope): void {
    const { row, client, sessionId } = request
    const about = request.kept ?? request.keptFor
    if (about !== undefined) about.lastLineMs = this.#board.core.nowMs
    if (request.kept !== undefined) this.turns.answered(request, line)
    if (row === undefined || sessionId === undefined || !line.has(FIELD.result)) return
    const kept = request.keptFor
    if (kept === undefined) return
    if (row.sets === 'mode') this.#holds(kept, { mode: request.wish })
    if (row.sets === 'options') this.#holds(kept, { options: resultOf(line)['configOptions'] })
    if (row.session === 'ended') this.end(kept, { by: client === undefined ? 'bus' : 'client' }, row.deletes)
  }

  /** True: what the worker is asked is served here. */
  serve(route: Route, worker: Worker): boolean {
    if (route.row?.session === 'claimed') return this.claims.serve(route, worker)
    return route.row?.listsSessions === true && this.#lists.serve(route, worker)
  }

  /** Some pool keeps sessions. */
  get isOn(): boolean {
    return this.#board.core.spec.pools.some(({ keeping }) => keeping !== undefined)
  }

  /** What the answer will need of the message. */
  prepare({ client, line, row, session, dialect }: Route, request: Request): void {
    if (row?.session === 'announced' || row?.session === 'claimed') {
      const { cwd } = paramsOf(line)
      if (typeof cwd === 'string') request.wish = cwd
      return
    }
    const kept = session === undefined ? undefined : client.sessions.get(session)?.kept
    if (row?.sets === undefined && row?.session !== 'ended') return
    request.keptFor = kept ?? (row.deletes ? this.table.find(client.principal, session!) : undefined)
    const wish = row.sets === 'mode' ? paramsOf(line)[dialect!.table.keeping!.modeKey] : undefined
    if (typeof wish === 'string') request.wish = wish
  }

  // ---- from workers ----

  /** A worker has made a session for the client. */
  announce(row: Session, client: Client, request: Request, line: Envelope): void {
    const kept = this.bind(row, client, request.dialect!)
    kept.cwd = request.wish ?? ''
    this.open(kept)
    this.keepAnswer(kept, resultOf(line))
    const seat = this.participants.join(kept, client, { next: 1, isParticipant: true, isNumbered: false })
    this.participants.greet(seat)
    this.participants.drive(seat)
  }

  /** A worker has made a session, or brought one back. */
  bind(row: Session, client: Client, dialect: NonNullable<Worker['dialect']>): KeptSession {
    const { core } = this.#board
    const { id, principal, worker } = row
    const pool = worker.pool.spec.id
    const before = this.table.find(principal, id)
    const isBack = before !== undefined && before.claim !== undefined
    const kept = isBack ? before : this.table.add({ id, pool, principal })
    kept.keeping = worker.pool.spec.keeping
    kept.journal.partBytes = Math.min(FIXED.maxPartBytes, Math.ceil(kept.keeping!.maxBytes / 8))
    kept.dialect = dialect
    kept.isLost = false
    kept.lastLineMs = core.nowMs
    kept.createdAtMs ||= core.calendarMs
    kept.updatedAtMs = core.calendarMs
    row.kept = kept
    kept.rows = [row]
    client.lost.delete(id)
    return kept
  }

  open(kept: KeptSession): void {
    const { key, id: session, pool, principal, cwd } = kept
    const atMs = Math.floor(this.#board.core.calendarMs)
    this.history.order(kept, { order: 'open', key, session, pool, principal, cwd, atMs })
  }

  /** A session of the agent's belongs to one that is kept. */
  adopt(kept: KeptSession, worker: Worker, id: SessionId): void {
    const owner = kept.driver?.client ?? kept.participants[0]?.client
    if (owner === undefined || worker.sessions.has(id) || kept.rows.length > FIXED.maxChildSessions) return
    this.participants.adopt(kept, this.#board.core.sessions.bind(id, owner, worker))
  }

  /** What a worker says in a session. */
  say(kept: KeptSession, worker: Worker, row: WorkerRow, line: Envelope): void {
    const { core } = this.#board
    kept.lastLineMs = core.nowMs
    if (!row.isUpdate) return this.#passOn(kept, line)
    const words = kept.dialect!.table.keeping!
    const kind = line.has(FIELD.updateKind) ? line.text(FIELD.updateKind) : undefined
    if (this.turns.isFirstWords(kept, kind, line)) this.turns.firstWords(kept, kind)
    const bytes = Buffer.from(line.bytes.subarray(line.start, line.end + 1))
    const entry = this.history.say(kept, kind === words.fleeting ? 'fleeting' : 'update', bytes, { source: worker })
    if (kind === undefined) return
    if (words.states.includes(kind)) this.#noteState(kept, words, kind, { line, seq: entry.seq, bytes })
    if (kind === words.turnIs.kind) this.turns.toldState(kept, line)
  }

  /** What the agent has told of a session that it has brought back. */
  sayAgain(kept: KeptSession, bytes: Buffer): void {
    const line = this.#reader
    line.read(bytes, 0, bytes.length - 1)
    const words = kept.dialect!.table.keeping!
    const kind = line.has(FIELD.updateKind) ? line.text(FIELD.updateKind) : undefined
    const entry = this.history.say(kept, kind === words.fleeting ? 'fleeting' : 'update', bytes)
    if (kind !== undefined && words.states.includes(kind))
      this.#noteState(kept, words, kind, { line, seq: entry.seq, bytes })
  }

  /** What is no history is for those who are there. */
  #passOn(kept: KeptSession, line: Envelope): void {
    if (kept.participants.length === 0) return this.#board.core.drop('client_gone')
    for (const { client } of kept.participants) this.#board.forward(client, line)
  }

  #noteState(kept: KeptSession, words: KeepingWords, kind: string, { line, seq, bytes }: Stated): void {
    kept.journal.noteState(kind, { seq, kind: 'update', bytes })
    this.history.order(kept, { order: 'note', key: kept.key, state: { kind, seq, bytes } })
    const { update } = paramsOf(line) as { update?: Record<string, unknown> }
    if (kind === words.modeIs) this.#holds(kept, { mode: update?.['currentModeId'] })
    if (kind === words.optionsAre) this.#holds(kept, { options: update?.['configOptions'] })
    const title = kind === words.sessionIs ? update?.['title'] : undefined
    if (typeof title !== 'string' || title === '') return
    kept.title = title.slice(0, FIXED.maxTitle)
    this.history.note(kept)
  }

  /** What a client that comes later is told of the session. */
  #holds(kept: KeptSession, { mode, options }: { readonly mode?: unknown; readonly options?: unknown }): void {
    const answer = kept.answer === undefined ? {} : (JSON.parse(kept.answer) as Record<string, unknown>)
    const { modes } = answer as { modes?: object }
    if (typeof mode === 'string' && typeof modes === 'object' && modes !== null)
      answer['modes'] = { ...modes, currentModeId: mode }
    else if (Array.isArray(options)) answer['configOptions'] = options
    else return
    this.keepAnswer(kept, answer)
  }

  keepAnswer(kept: KeptSession, answer: Readonly<Record<string, unknown>>): void {
    const { sessionId: _id, ...rest } = answer
    kept.answer = JSON.stringify(rest)
    this.history.note(kept)
  }

  // ---- clients and workers go ----

  clientGone(client: Client): void {
    for (const { kept } of client.seats) this.turns.orphan(kept, client)
    this.participants.leaveAll(client)
  }

  /** Nobody takes part any more: the agent goes on, for a while (contract 12.4). */
  #detach(kept: KeptSession): void {
    const { core } = this.#board
    kept.detachedAtMs = core.nowMs
    this.#expectEnd(kept)
    const { maxKept } = kept.worker!.pool.spec.keeping ?? { maxKept: 0 }
    const detached = this.#detachedOf(kept.pool)
    detached.delete(kept)
    detached.add(kept)
    // Those that somebody has come to are looked for only when it matters.
    if (detached.size > maxKept) for (const each of detached) if (!each.isDetached) detached.delete(each)
    if (detached.size > maxKept) this.end(oldestIdle(detached) ?? kept, { by: 'max_kept' })
  }

  #detachedOf(pool: PoolId): Set<KeptSession> {
    const known = this.#detached.get(pool)
    if (known !== undefined) return known
    const detached = new Set<KeptSession>()
    this.#detached.set(pool, detached)
    return detached
  }

  #expectEnd(kept: KeptSession): void {
    const { core } = this.#board
    if (kept.timer !== undefined) core.timers.cancel(kept.timer)
    kept.timer = core.timers.set(this.endsAtMs(kept), () => {
      if (!kept.isDetached) return
      if (this.endsAtMs(kept) > core.nowMs) this.#expectEnd(kept)
      else this.end(kept, { by: 'keep_sec' })
    })
  }

  /** When a session that stays without a client ends, by the clock of the bus. */
  endsAtMs({ detachedAtMs, lastLineMs, keeping }: KeptSession): number {
    const keptMs = Math.max(detachedAtMs, lastLineMs) + (keeping?.keepMs ?? 0)
    return Math.min(keptMs, detachedAtMs + FIXED.maxDetachedMs)
  }

  /** A place is wanted: the session that is idle without a client for longest gives way; false: there is none. */
  giveWay(pool: Pool): boolean {
    const candidates = [...this.#detachedOf(pool.spec.id)].filter(
      ({ isDetached, worker }) => isDetached && worker?.isKept && worker.pool.trunk === pool.trunk,
    )
    const kept = oldestIdle(candidates)
    if (kept === undefined) return false
    this.end(kept, { by: 'max_instances' })
    return true
  }

  /** The session ends, with the duties towards its agent (contract 7.3). */
  end(kept: KeptSession, why: Readonly<Record<string, unknown>>, isDeleted = false): void {
    const { worker } = kept
    if (kept.isLive) {
      if (why['by'] !== 'client') this.#tellAgent(kept)
      this.#conclude(kept, 'ended', why)
    }
    if (isDeleted) this.delete(kept)
    else if (!kept.isLive) this.#remember(kept)
    if (worker !== undefined) this.#board.assignment.maybeDismissKept(worker)
    if (worker !== undefined) this.#board.supervisor.maybeDismiss(worker)
  }

  /** Its turn is cancelled, what it asks is answered, and it is closed, by an agent that can. */
  #tellAgent(kept: KeptSession): void {
    const { dialect, worker, turn, id: sessionId } = kept
    const departure = dialect?.table.departure
    if (departure === undefined || worker?.isAlive !== true) return
    if (turn !== undefined)
      this.#board.tell(worker, { jsonrpc: '2.0', method: departure.cancelTurn, params: { sessionId } })
    this.questions.dismiss(kept)
    if (worker.isToldOfEnds) this.#board.ask(worker, { method: departure.closeSession, params: { sessionId } })
  }

  delete(kept: KeptSession): void {
    this.history.order(kept, { order: 'delete', key: kept.key })
    for (const seat of kept.seats) this.participants.leave(seat)
    this.table.remove(kept)
  }

  /** The worker has ended, and all its sessions with it (contract 12.16). */
  lose(worker: Worker): void {
    const all = new Set([...worker.sessions.values()].flatMap(({ kept }) => kept ?? []))
    for (const kept of all) {
      kept.isLost = !this.claims.can(worker, 'load')
      this.#conclude(kept, 'lost', {})
      this.#remember(kept)
    }
  }

  /** It lives no more; those who look on may go on reading. */
  #conclude(kept: KeptSession, what: 'ended' | 'lost', more: Readonly<Record<string, unknown>>): void {
    const { core } = this.#board
    const { rows } = kept
    this.questions.dismiss(kept)
    // First, or the end of the turn would begin the next.
    this.turns.dismiss(kept)
    this.turns.end(kept, { error: what })
    if (kept.timer !== undefined) core.timers.cancel(kept.timer)
    this.history.tell(kept, what, { more })
    this.participants.dismiss(kept)
    for (const row of rows) {
      core.sessions.end(row)
      row.kept = undefined
    }
    kept.rows = []
    this.#detached.get(kept.pool)?.delete(kept)
    kept.terminals = new Map()
    kept.sentTo = 0
    for (const seat of kept.seats) this.history.advance(seat)
  }

  /** What was said in memory only goes after a while. */
  #remember(kept: KeptSession): void {
    this.history.note(kept)
    if (kept.keeping?.isJournaled === false) this.#forgetLater(kept, kept.keeping.keepMs)
  }

  #forgetLater(kept: KeptSession, waitMs: number): void {
    const { core } = this.#board
    core.timers.set(core.nowMs + waitMs, () => {
      if (kept.isLive) return
      // Somebody reads it, or its agent is just bringing it back.
      if (kept.seats.length > 0 || kept.claim !== undefined) this.#forgetLater(kept, waitMs)
      else this.table.forget(kept)
    })
  }

  /** The principal may use the pool no more (contract 9.10). */
  endAllOf(principal: Principal, pool: PoolId): void {
    for (const kept of [...this.table.all])
      if (kept.isLive && kept.principal === principal && kept.pool === pool) this.end(kept, { by: 'rights' })
  }

  // ---- the journal ----

  opened({ sessions }: Extract<BusEvent, { type: 'journal-opened' }>): void {
    this.table.restore(sessions)
  }

  changed(isWriting: boolean): void {
    this.history.journalChanged(isWriting, this.table.all)
  }

  written({ upTo }: Extract<BusEvent, { type: 'journal-written' }>): void {
    for (const [key, life, seq] of upTo) this.history.written(this.table.byKey(key), life, seq)
  }

  /** Turns under way whose client has gone: the bus waits for them before it ends (contract 12.6). */
  get detachedTurns(): number {
    let count = 0
    for (const { turn } of this.table.all) if (turn !== undefined && turn.client === undefined) count++
    return count
  }

  get figures(): { readonly kept: number; readonly detached: number; readonly bytes: number } {
    let kept = 0
    let detached = 0
    for (const each of this.table.all) {
      if (each.isLive) kept++
      if (each.isDetached) detached++
    }
    return { kept, detached, bytes: this.table.bytes }
  }
}

interface Stated {
  readonly line: Envelope
  readonly seq: number
  readonly bytes: Buffer
}

function oldestIdle(detached: Iterable<KeptSession>): KeptSession | undefined {
  let oldest: KeptSession | undefined
  for (const kept of detached)
    if (kept.isIdle && (oldest === undefined || kept.detachedAtMs < oldest.detachedAtMs)) oldest = kept
  return oldest
}
