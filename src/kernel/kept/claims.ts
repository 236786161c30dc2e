/**
 * Coming back to a session (contract 12.2, 12.12, 12.13, 12.16): by load everything is told again, by resume what nobody
 * was told. While the agent's process lives it is not asked; afterwards it is asked once, if it can bring sessions back.
 *
 * What the agent brings back replaces what was written down; where it cannot, that is shown, and nobody pretends that the
 * session goes on.
 */
import type { Envelope } from '../../wire/envelope.ts'
import { FIELD } from '../../wire/fields.ts'
import { withMember } from '../../wire/json-edit.ts'
import type { KeepingWords } from '../dialect-table.ts'
import { ownSet } from '../empty.ts'
import type { Request } from '../owed.ts'
import type { Client, Worker } from '../peers.ts'
import type { Route } from '../route.ts'
import { comingSessions, hasRoomForSession } from '../sessions.ts'
import type { Switchboard } from '../switchboard.ts'
import type { Kept } from './kept.ts'
import type { KeptSession, Replayed } from './kept-session.ts'
import { lostLine, MARK, paramsOf, resultOf } from './lines.ts'
import type { Seat } from './seat.ts'

interface Revival {
  readonly line: Envelope
  readonly cwd: string | undefined
}

type Ability = keyof KeepingWords['abilities']

export class KeptClaims {
  readonly #board: Switchboard
  readonly #kept: Kept

  constructor(board: Switchboard, kept: Kept) {
    this.#board = board
    this.#kept = kept
    kept.history.onCaughtUp = (seat) => this.#caughtUp(seat)
    kept.history.onArrived = (seat) => kept.participants.drive(seat)
  }

  /** True: the claim is served here, refused, or waits; else the agent is asked. */
  take(route: Route): boolean {
    const { client, session, pool, request } = route
    const { table } = this.#kept
    const kept = table.find(client.principal, session!)
    if (kept === undefined || kept.pool !== pool.spec.id) return this.#takeUnknown(route)
    if (kept.claim !== undefined && kept.claim === request) return false
    if (kept.claim !== undefined) this.#kept.turns.wait(kept, route)
    else if (kept.isLive) this.#attach(kept, route)
    else if (request !== undefined && table.isTaken(kept)) this.#showLost(kept, request, wantsReplay(route))
    else return this.#takeStored(kept, route)
    return true
  }

  /** The bus knows nothing of it: the agent may. */
  #takeUnknown(route: Route): boolean {
    const { client, session, pool } = route
    const { table } = this.#kept
    if (table.isForeign(client.principal, session!, pool.spec.id)) {
      this.#board.refuse(route, 'session_not_owned', { sessionId: session })
      return true
    }
    const kept = table.add({ id: session!, pool: pool.spec.id, principal: client.principal })
    return this.#takeStored(kept, route)
  }

  #takeStored(kept: KeptSession, route: Route): boolean {
    const { request } = route
    if (request === undefined) return false
    kept.claim = request
    this.#forgetReplayed(kept)
    request.claimed = kept
    return false
  }

  /** A worker is at hand for a claim: it is asked only for what it says that it can; true: it is not asked. */
  serve(route: Route, worker: Worker): boolean {
    const { client, session, request } = route
    if (request === undefined || worker.welcome === undefined) return false
    const isReplayed = wantsReplay(route)
    if (this.can(worker, isReplayed ? 'load' : 'resume')) return false
    const kept = this.#kept.table.find(client.principal, session!)
    if (kept === undefined || isUnknown(kept)) this.#board.refuse(route, 'unknown_session', { sessionId: session })
    else {
      this.#showLost(kept, request, isReplayed)
      this.#kept.turns.proceed(kept)
    }
    return true
  }

  can({ welcome, dialect }: Worker, ability: Ability): boolean {
    const paths = dialect?.table.keeping?.abilities[ability]
    if (welcome === undefined || paths === undefined) return false
    const result: unknown = JSON.parse(welcome.result.toString())
    return paths.some((path) => isThere(result, path))
  }

  // ---- the agent's process lives ----

  #attach(kept: KeptSession, route: Route): void {
    const { client, request } = route
    const { participants, history } = this.#kept
    if (request === undefined) return this.#board.refuse(route, 'unknown_method')
    if (!participants.hasRoom(kept, client))
      return this.#board.refuse(route, 'too_many_clients', { sessionId: kept.id })
    if (!client.sessions.has(kept.id) && !hasRoomForSession(this.#board.core, client, comingSessions(client, request)))
      return this.#board.refuse(route, 'too_many_sessions', { sessionId: kept.id })
    const { seq } = kept.journal
    const sentTo = sentOf(kept)
    const isReplayed = wantsReplay(route)
    const next = isReplayed ? 1 : sentTo + 1
    const seat = participants.join(kept, client, { next, isParticipant: true, isNumbered: false })
    seat.replay = { until: isReplayed ? seq : 0, request, isLost: false }
    participants.greet(seat)
    if (!isReplayed) {
      this.#answer(seat)
      history.sendStates(seat, 0, next)
      this.#greet(seat)
    }
    history.advance(seat)
  }

  /** All that was said before is there. */
  #caughtUp(seat: Seat): void {
    const { replay, kept } = seat
    if (replay === undefined) return
    if (replay.isLost) return this.#endLost(seat)
    this.#answer(seat)
    if (kept.isLive) this.#greet(seat)
  }

  #answer(seat: Seat): void {
    const { kept, replay } = seat
    seat.replay = undefined
    const outcome = `"result":${this.#resultFor(kept)}`
    if (replay!.isRefused) this.#board.answerSettled(replay!.request, outcome)
    else this.#board.answerRequest(replay!.request, outcome)
  }

  #resultFor(kept: KeptSession): string {
    const { _meta, ...rest } = JSON.parse(kept.answer ?? '{}') as { _meta?: object }
    const session = { seq: kept.journal.seq, turn: kept.turnState }
    return JSON.stringify({ ...rest, _meta: { ..._meta, [MARK.session]: session } })
  }

  /** It hears what it cannot know, and drives when it has heard what was said meanwhile. */
  #greet(seat: Seat): void {
    const { kept } = seat
    const isOwnTurn = kept.turn?.client === seat.client
    if (kept.turn !== undefined && !isOwnTurn && !kept.worker?.takesOneHandshake)
      this.#kept.participants.notice(seat, MARK.turn, { state: 'running' })
    seat.isArriving = true
  }

  // ---- the agent's process has gone ----

  /** The agent has answered: `isDone` when its answer is not for the client. */
  settle(request: Request, worker: Worker, line: Envelope): boolean {
    const kept = request.claimed
    if (kept === undefined) return false
    const { client } = request
    const isResult = line.has(FIELD.result)
    if (isResult && client !== undefined) this.#revive(kept, client, worker, { line, cwd: request.wish })
    this.#endClaim(kept)
    const isShown = !isResult && client !== undefined && !isUnknown(kept)
    if (isShown) this.#showLost(kept, request, request.row?.replays === true)
    return isShown
  }

  /** Its client has been answered: others that asked for the session go on. */
  follow({ claimed }: Request): void {
    if (claimed !== undefined) this.#kept.turns.proceed(claimed)
  }

  /** The request by which it was asked has ended without an answer of the agent. */
  abandon(request: Request): void {
    const kept = request.claimed
    if (kept === undefined || kept.claim !== request) return
    this.#endClaim(kept)
    this.#kept.turns.proceed(kept)
  }

  /** Of what was never there nothing is remembered. */
  #endClaim(kept: KeptSession): void {
    kept.claim = undefined
    this.#forgetReplayed(kept)
    if (isUnknown(kept) && kept.journal.seq === 0) this.#kept.table.remove(kept)
  }

  /** What the agent has told again takes the place of what was written down. */
  #revive(kept: KeptSession, client: Client, worker: Worker, { line, cwd }: Revival): void {
    const isFresh = isUnknown(kept)
    const { history, participants } = this.#kept
    const row = client.sessions.get(kept.id)
    if (row === undefined) return
    // It has heard what the agent has told again; to whom the session is just shown as lost, it is not: they ask again.
    for (const seat of kept.seats)
      if (seat.client === client || seat.replay !== undefined) participants.leave(seat, 'session_busy')
    this.#kept.bind(row, client, worker.dialect!)
    if (isFresh) {
      kept.cwd = cwd ?? ''
      this.#kept.open(kept)
    }
    const { journal, key, replayed } = kept
    if (replayed.length > 0) {
      const bytesBefore = journal.bytes
      kept.isRecalled = true
      journal.restart()
      this.#kept.table.count(kept, bytesBefore)
      history.order(kept, { order: 'trim', key, before: journal.firstSeq, isRestart: true })
      for (const { bytes } of replayed) this.#kept.sayAgain(kept, bytes)
    }
    this.#kept.keepAnswer(kept, resultOf(line))
    const seat = participants.join(kept, client, { next: journal.seq + 1, isParticipant: true, isNumbered: false })
    participants.greet(seat)
    participants.drive(seat)
  }

  /** What the agent says while it brings a session back. */
  replayed(request: Request, line: Envelope): void {
    const kept = request.claimed
    if (kept === undefined || request.row?.replays !== true) return
    const bytes = Buffer.from(line.bytes.subarray(line.start, line.end + 1))
    kept.replayed.push({ kind: line.has(FIELD.updateKind) ? line.text(FIELD.updateKind) : undefined, bytes })
    kept.replayedBytes += bytes.length
    const maxBytes = this.#board.core.pools.get(kept.pool)?.spec.keeping?.maxBytes ?? 0
    if (kept.replayedBytes > maxBytes) this.#forgetOldest(kept, request.dialect!.table.keeping!.states)
  }

  /** Of the older half only the newest of each state is held: no more is kept of what is told again than of anything. */
  #forgetOldest(kept: KeptSession, states: readonly string[]): void {
    const { replayed } = kept
    const half = Math.ceil(replayed.length / 2)
    const held = new Map<string, Replayed>()
    for (const each of replayed.slice(0, half))
      if (each.kind !== undefined && states.includes(each.kind)) held.set(each.kind, each)
    kept.replayed = [...held.values(), ...replayed.slice(half)]
    kept.replayedBytes = kept.replayed.reduce((sum, { bytes }) => sum + bytes.length, 0)
  }

  #forgetReplayed(kept: KeptSession): void {
    kept.replayed = []
    kept.replayedBytes = 0
  }

  #showLost(kept: KeptSession, request: Request, isReplayed: boolean): void {
    const { history, participants } = this.#kept
    const { client } = request
    kept.claim = undefined
    if (client === undefined) return
    if (!kept.isLost) {
      kept.isLost = true
      history.note(kept)
    }
    client.lost = ownSet(client.lost).add(kept.id)
    const isRefused = request.isSettled
    if (!isReplayed) return this.#refuseLost(kept, request)
    const seat = participants.join(kept, client, { next: 1, isParticipant: false, isNumbered: false })
    seat.replay = { until: kept.journal.seq, request, isLost: true, isRefused }
    history.advance(seat)
  }

  #refuseLost({ id: sessionId }: KeptSession, request: Request): void {
    if (request.isSettled) this.#board.fail(request.client!, request.idSpelling, 'session_lost', { sessionId })
    else this.#board.settle(request, 'session_lost', { sessionId })
  }

  #endLost(seat: Seat): void {
    const { kept, client } = seat
    const words = kept.dialect?.table.keeping
    if (words !== undefined) this.#board.flow.sendAside(client, lostLine(words, kept.id))
    this.#answer(seat)
    this.#kept.participants.leave(seat)
  }

  // ---- what clients are told that they can have ----

  /** The welcome of a worker, with what the bus does in its place (contract 12.2). */
  welcome(worker: Worker, result: Buffer, line?: Envelope): Buffer {
    const { keeping, singleHandshakeFrom } = worker.dialect?.table ?? {}
    if (keeping === undefined || worker.pool.spec.keeping === undefined) return result
    const version = line === undefined ? worker.welcome?.version : line.key(FIELD.resultProtocolVersion)
    if (typeof version !== 'number' || version >= (singleHandshakeFrom ?? Number.POSITIVE_INFINITY)) return result
    return keeping.adds.reduce((text, { path, value, replaces }) => withMember(text, path, value, replaces), result)
  }
}

/** Nothing is known of it yet, or nothing but whose it is any more. */
function isUnknown({ createdAtMs, isLive }: KeptSession): boolean {
  return createdAtMs === 0 && !isLive
}

/** Up to this number somebody who takes part was sent everything. */
function sentOf({ sentTo, participants }: KeptSession): number {
  return participants.reduce((most, { next }) => Math.max(most, next - 1), sentTo)
}

/** By its method, or because it asks for everything from the start. */
function wantsReplay({ row, line, dialect }: Route): boolean {
  if (row?.replays) return true
  const { key, type } = dialect!.table.keeping!.replayFrom
  return (paramsOf(line)[key] as { type?: unknown } | undefined)?.type === type
}

function isThere(value: unknown, path: readonly string[]): boolean {
  let at = value
  for (const key of path) at = (at as Record<string, unknown> | null | undefined)?.[key]
  return at !== undefined && at !== null && at !== false
}
