/**
 * Who comes to a kept session, who goes, and who drives it (contract 12.3, 12.15, 12.18, 12.19).
 *
 * Whoever takes part finds the session among its own; the last one that came or prompted drives. When the drive moves,
 * everybody is told, and what the agent asks moves with it. A session that nobody takes part in any more is detached.
 */
import { ownMap, ownSet } from '../empty.ts'
import { FIXED } from '../limits.ts'
import type { Client } from '../peers.ts'
import type { Session } from '../sessions.ts'
import type { Switchboard } from '../switchboard.ts'
import type { History } from './history.ts'
import type { KeptSession } from './kept-session.ts'
import { eventLine, MARK, noticeLine } from './lines.ts'
import { Seat } from './seat.ts'

export interface Joining {
  readonly next: number
  readonly isParticipant: boolean
  /** It came by a method of the bus, and gets every number. */
  readonly isNumbered: boolean
}

/** Why a client does not get what it has asked for: it may ask again, or the session is no more. */
type Unheard = 'session_busy' | 'session_lost'

export class Participants {
  readonly #board: Switchboard
  readonly #history: History
  #seats = 0
  /** Told when somebody else is to be asked, and when nobody takes part any more. */
  onDriver: (kept: KeptSession) => void = () => {}
  onDetached: (kept: KeptSession) => void = () => {}

  constructor(board: Switchboard, history: History) {
    this.#board = board
    this.#history = history
    history.onLagging = (seat) => this.#drop(seat)
  }

  hasRoom(kept: KeptSession, client: Client): boolean {
    return kept.seats.length < FIXED.maxSessionClients || kept.seatOf(client) !== undefined
  }

  /** The client is there from now on; it drives when it has come to what is live. */
  join(kept: KeptSession, client: Client, { next, isParticipant, isNumbered }: Joining): Seat {
    const { core } = this.#board
    // Also where it still reads what was said in an earlier session of the name: nobody could tell the two apart.
    for (const before of [...client.seats]) {
      if (before.kept.key !== kept.key) continue
      this.#giveUpReplay(before, 'session_busy')
      this.#unseat(before)
    }
    const wish = { number: ++this.#seats, next, isParticipant, isNumbered }
    const seat = new Seat(kept, client, wish, core.calendarMs)
    kept.seats = [...kept.seats, seat]
    client.seats = ownSet(client.seats).add(seat)
    if (isParticipant) this.#own(kept, client)
    if (isParticipant) kept.participants = [...kept.participants, seat]
    if (isParticipant && kept.timer !== undefined) core.timers.cancel(kept.timer)
    return seat
  }

  /** One that took part only looks on from now on, or is gone. */
  stepBack(kept: KeptSession, before: Client | undefined): void {
    this.#settleDriver(kept, before)
    if (kept.participants.length === 0 && kept.isLive) this.onDetached(kept)
  }

  /** The others are told that it is there. */
  greet(seat: Seat): void {
    const { kept, isParticipant } = seat
    if (!kept.isLive || isUnseen(seat)) return
    this.#history.tell(kept, 'joined', { more: { name: nameOf(seat), role: isParticipant ? 'drive' : 'observe' } })
  }

  /** It has come last, or prompts: it drives. */
  drive(seat: Seat): void {
    const { kept } = seat
    const before = kept.rows[0]?.driver
    if (!seat.isParticipant) return
    kept.participants = [...kept.participants.filter((each) => each !== seat), seat]
    this.#settleDriver(kept, before)
  }

  /** Who drives may be another now. */
  #settleDriver(kept: KeptSession, before: Client | undefined): void {
    const driver = kept.driver
    for (const row of kept.rows) row.driver = driver?.client
    if (driver === undefined || driver.client === before) return
    if (before !== undefined) this.#history.tell(kept, 'driver', { more: { name: nameOf(driver) }, own: driver.client })
    this.onDriver(kept)
  }

  /** Told to a client that knows nothing of the bus, outside of all numbers. */
  notice({ client, kept, isNumbered }: Seat, mark: string, value: unknown): void {
    const words = kept.dialect?.table.keeping
    if (isNumbered || words === undefined) return
    this.#board.flow.sendAside(client, noticeLine(words, kept.id, mark, value))
  }

  /** The client leaves the session; it is still there. */
  leave(seat: Seat, reason: Unheard = seat.kept.isLive ? 'session_busy' : 'session_lost'): void {
    const { kept } = seat
    const before = kept.rows[0]?.driver
    this.#giveUpReplay(seat, reason)
    const isParticipant = this.#unseat(seat)
    if (kept.isLive && !isUnseen(seat)) this.#history.tell(kept, 'left', { more: { name: nameOf(seat) } })
    if (isParticipant) this.stepBack(kept, before)
  }

  /** The client has gone. */
  leaveAll(client: Client): void {
    for (const seat of [...client.seats]) this.leave(seat)
  }

  /** It cannot be asked any more, and is not gone yet. */
  closing(client: Client): void {
    for (const { kept, isParticipant } of client.seats)
      if (isParticipant) this.#settleDriver(kept, kept.rows[0]?.driver)
  }

  /** A session at the worker goes with this one. */
  adopt(kept: KeptSession, row: Session): void {
    row.kept = kept
    row.driver = kept.driver?.client
    kept.rows = [...kept.rows, row]
    for (const { client } of kept.participants) client.sessions = ownMap(client.sessions).set(row.id, row)
  }

  #own({ rows }: KeptSession, client: Client): void {
    for (const row of rows) client.sessions = ownMap(client.sessions).set(row.id, row)
    for (const row of rows) client.lost.delete(row.id)
  }

  /** The session lives no more: nobody takes part, and those who count, or read what was said, may go on reading. */
  dismiss(kept: KeptSession): void {
    for (const seat of [...kept.participants]) {
      const { client, replay } = seat
      this.#unseat(seat)
      client.lost = ownSet(client.lost).add(kept.id)
      if (!seat.isNumbered && replay === undefined) continue
      seat.isParticipant = false
      this.#history.expect(seat)
      if (replay !== undefined) seat.replay = { ...replay, until: kept.journal.seq, isLost: true }
      kept.seats = [...kept.seats, seat]
      client.seats = ownSet(client.seats).add(seat)
    }
  }

  /** What it has asked for it does not get: it is told so. */
  #giveUpReplay(seat: Seat, reason: Unheard): void {
    const { replay, client, kept } = seat
    seat.replay = undefined
    if (replay === undefined || client.state !== 'open') return
    const detail = { sessionId: kept.id }
    if (replay.isRefused) this.#board.fail(client, replay.request.idSpelling, reason, detail)
    else this.#board.settle(replay.request, reason, detail)
  }

  /** True: it took part. */
  #unseat(seat: Seat): boolean {
    const { kept, client, isParticipant } = seat
    this.#history.forget(seat)
    client.seats.delete(seat)
    kept.seats = kept.seats.filter((each) => each !== seat)
    if (!isParticipant) return false
    kept.participants = kept.participants.filter((each) => each !== seat)
    kept.sentTo = Math.max(kept.sentTo, seat.next - 1)
    for (const row of kept.rows) if (client.sessions.get(row.id) === row) client.sessions.delete(row.id)
    return true
  }

  /** It does not read what others are sent: it may come again, from where it is. */
  #drop(seat: Seat): void {
    const { client, kept } = seat
    const head = this.#history.headOf(kept, 'dropped', seat.next - 1)
    if (seat.isNumbered) this.#board.flow.sendAside(client, eventLine(head))
    else this.notice(seat, MARK.dropped, true)
    const before = kept.rows[0]?.driver
    const wasParticipant = this.#unseat(seat)
    if (!isUnseen(seat)) this.#history.tell(kept, 'dropped', { more: { name: nameOf(seat) } })
    this.#board.core.drop('session_client_dropped')
    if (wasParticipant) this.stepBack(kept, before)
  }
}

/** It looks on, and nothing that is written down would tell of it. */
export function isUnseen({ client, isParticipant }: Seat): boolean {
  return client.isQuiet && !isParticipant
}

/** As it calls itself, or whoever it is. */
export function nameOf({ client, kept }: Seat): string {
  const words = kept.dialect?.table.keeping
  const told = client.introductions.get(kept.pool)?.initialize
  const params = told === undefined ? undefined : (JSON.parse(told.toString()) as { params?: unknown }).params
  for (const key of words?.namesAt ?? []) {
    const info = (params as Record<string, { title?: unknown; name?: unknown }> | undefined)?.[key]
    for (const name of [info?.title, info?.name])
      if (typeof name === 'string' && name !== '') return name.slice(0, FIXED.maxPromptTitle)
  }
  return client.identity?.name ?? client.principal
}
