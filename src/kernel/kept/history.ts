/**
 * What is said in kept sessions: numbered, handed to the journal, and sent to everybody by their position (contract 12.8
 * to 12.13, 12.19).
 *
 * A client is sent the entry of its position and nothing else of the session; who cannot take it now goes on from there
 * later, out of what is held here or of the journal. Only the driver holds up the agent. Invariant: every client gets
 * every number that is meant for it once and in order, or is told what it missed.
 */
import { spellTime } from '../../wire/calendar.ts'
import { Envelope, SHAPE } from '../../wire/envelope.ts'
import type { BusEvent, JournalOrder } from '../events.ts'
import { FIXED } from '../limits.ts'
import type { Client, Worker } from '../peers.ts'
import type { Switchboard } from '../switchboard.ts'
import { withoutTerminals } from '../terminal-parts.ts'
import type { Entry, EntryKind, State } from './journal.ts'
import type { KeptSession } from './kept-session.ts'
import { type EventHead, eventLine, noticeOf, type SessionEvent } from './lines.ts'
import type { Seat } from './seat.ts'

export interface Saying {
  /** Whose words they are: it does not hear them again. */
  readonly own?: Client | undefined
  /** The worker that is held up for a driver who does not read. */
  readonly source?: Worker
  readonly beginsTurn?: boolean
}

export interface Told {
  readonly more?: Readonly<Record<string, unknown>>
  /** Members that are JSON already. */
  readonly ready?: string
  readonly own?: Client | undefined
}

const NOTHING = {}

export class History {
  readonly #board: Switchboard
  readonly #readers = new Map<number, Seat>()
  readonly #proof = new Envelope()
  /** Told of a seat that has read what was said before it came, that is where the others are, that cannot keep up. */
  onCaughtUp: (seat: Seat) => void = () => {}
  onArrived: (seat: Seat) => void = () => {}
  onLagging: (seat: Seat) => void = () => {}
  /** Told when more or less is kept than before. */
  onCount: (kept: KeptSession, bytesBefore: number) => void = () => {}
  /** The journal writes: what it has written need not be held here. */
  #isWriting = false

  constructor(board: Switchboard) {
    this.#board = board
  }

  order(kept: KeptSession, what: JournalOrder): void {
    if (kept.keeping?.isJournaled === true) this.#board.core.actions.push({ do: 'journal', what })
  }

  /** One line of the session, with its newline; it is the caller's no more. */
  say(kept: KeptSession, kind: EntryKind, bytes: Buffer, saying: Saying = NOTHING): Entry {
    const { journal, key } = kept
    const { core } = this.#board
    const bytesBefore = journal.bytes
    const entry = journal.append(kind, bytes, saying.beginsTurn)
    kept.updatedAtMs = core.calendarMs
    const { seq } = entry
    const atMs = Math.floor(core.calendarMs)
    this.order(kept, { order: 'append', key, life: kept.life, seq, kind, atMs, bytes })
    this.#trim(kept)
    this.onCount(kept, bytesBefore)
    const driver = kept.driver
    for (const seat of kept.seats) {
      if (saying.own === seat.client && !seat.isNumbered) seat.own.add(seq)
      this.#offer(seat, entry, seat === driver ? saying.source : undefined)
    }
    return entry
  }

  /** Something has happened in the session; `own` has done it. */
  tell(kept: KeptSession, kind: SessionEvent, { more, ready, own }: Told = NOTHING): void {
    const line = eventLine(this.headOf(kept, kind, kept.journal.seq + 1), more, ready)
    this.say(kept, 'event', line, { own, beginsTurn: kind === 'turn_started' })
  }

  headOf({ id }: KeptSession, kind: SessionEvent, seq: number): EventHead {
    return { session: id, seq, kind, at: spellTime(this.#board.core.calendarMs) }
  }

  /** The client can be sent more. */
  drained(client: Client): void {
    for (const seat of client.seats) {
      if (client.outbox.isFull) return
      this.#inTime(seat)
      if (client.outbox.isReleased) this.advance(seat)
    }
  }

  /** Sends what the seat has not got yet, as far as it is at hand and there is room. */
  advance(seat: Seat): void {
    const { client, kept } = seat
    if (!client.seats.has(seat)) return
    while (!seat.isReading && client.state !== 'closed') {
      if (this.#endReplay(seat)) continue
      if (seat.next > kept.journal.seq) return this.#arrive(seat)
      if (client.outbox.isFull) return this.#wait(seat)
      const entry = this.#entryFor(seat)
      if (entry !== undefined) this.#send(seat, entry)
    }
  }

  #arrive(seat: Seat): void {
    if (!seat.isArriving) return
    seat.isArriving = false
    this.onArrived(seat)
  }

  /** What was said is all there: what waited for that happens now. */
  #endReplay(seat: Seat): boolean {
    const { replay, kept } = seat
    if (replay === undefined || seat.next <= Math.min(replay.until, kept.journal.seq)) return false
    if (!kept.isRecalled) this.#read(seat)
    else this.onCaughtUp(seat)
    return true
  }

  /** The entry of the seat's position; undefined: the position has moved, or it is read. */
  #entryFor(seat: Seat): Entry | undefined {
    const { journal, isRecalled } = seat.kept
    if (!isRecalled) return void this.#read(seat)
    if (seat.next < journal.firstSeq) return void this.#skipTo(seat, journal.firstSeq)
    const held = journal.at(seat.next)
    if (held !== undefined) return held
    while (seat.ahead.length > 0 && seat.ahead[0]!.seq < seat.next) seat.ahead = seat.ahead.slice(1)
    const [first] = seat.ahead
    if (first?.seq === seat.next) {
      seat.ahead = seat.ahead.slice(1)
      return first
    }
    if (first !== undefined) return void this.#skipTo(seat, first.seq)
    this.#read(seat)
    return undefined
  }

  /** What is missing is told to those who count; the others get what still holds. */
  #skipTo(seat: Seat, seq: number): void {
    const { kept, client } = seat
    const from = seat.next
    seat.next = seq
    if (seat.isNumbered) {
      const head = this.headOf(kept, 'gap', seq - 1)
      return this.#board.flow.sendAside(client, eventLine(head, { from, to: seq - 1 }))
    }
    this.sendStates(seat, from, seq)
  }

  /** The newest of each state that lies between these numbers. */
  sendStates({ kept, client }: Seat, from: number, before: number): void {
    const states = [...kept.journal.states.values()].sort((a, b) => a.seq - b.seq)
    for (const { seq, bytes } of states)
      if (seq >= from && seq < before) this.#board.flow.sendAside(client, this.#shown(client, kept, bytes))
  }

  #read(seat: Seat): void {
    const { kept, next } = seat
    const { journal, key, keeping, isRecalled } = kept
    if (keeping?.isJournaled !== true || kept.isForgotten) {
      kept.isRecalled = true
      return void (seat.next <= journal.seq && this.#skipTo(seat, journal.heldFrom))
    }
    seat.isReading = true
    this.#readers.set(seat.number, seat)
    const from = Math.max(next, journal.firstSeq)
    const to = journal.heldFrom - 1
    seat.readTo = to
    const maxBytes = FIXED.maxReadBytes
    this.order(kept, { order: 'read', key, reader: seat.number, from, to, maxBytes, wantsHead: !isRecalled })
  }

  /** The journal has answered: what is not there, or is no line, is a gap. */
  lines({ reader, entries, bytes, head }: Extract<BusEvent, { type: 'journal-lines' }>): void {
    const seat = this.#readers.get(reader)
    if (seat === undefined) return
    this.#readers.delete(reader)
    seat.isReading = false
    const { kept } = seat
    const copy = Buffer.from(bytes)
    let at = 0
    const ahead: Entry[] = []
    for (const { seq, kind, length } of kept.isForgotten ? [] : entries) {
      const line = copy.subarray(at, (at += length))
      if (seq >= seat.next && this.#isLine(line)) ahead.push({ seq, kind, bytes: line })
    }
    seat.ahead = ahead
    if (!kept.isRecalled && !kept.isForgotten) {
      kept.isRecalled = true
      kept.answer ??= head?.answer
      const states = new Map<string, State>()
      for (const { kind, seq, length } of head?.states ?? [])
        states.set(kind, { seq, bytes: copy.subarray(at, (at += length)) })
      if (kept.journal.states.size === 0) kept.journal.adoptStates(states)
    }
    // Nothing came of it: what the journal should have had is lost; what it has written since is read next.
    if (ahead.length === 0 && seat.next <= seat.readTo) this.#skipTo(seat, seat.readTo + 1)
    this.advance(seat)
  }

  /** Somebody may have edited the file: one message in one line, or nothing. */
  #isLine(line: Buffer): boolean {
    const end = line.length - 1
    return end > 0 && line.indexOf(10) === end && this.#proof.read(line, 0, end) === SHAPE.notification
  }

  /** What the journal has written is its own. */
  written(kept: KeptSession | undefined, life: number, seq: number): void {
    if (kept?.keeping?.isJournaled !== true || kept.life !== life || !this.#isWriting) return
    kept.isWritten = true
    kept.journal.release(seq)
  }

  /** What has been said meanwhile is told again: the journal takes every number once. */
  journalChanged(isWriting: boolean, all: Iterable<KeptSession>): void {
    this.#isWriting = isWriting
    if (!isWriting) return
    for (const kept of all) this.#tellAgain(kept)
  }

  #tellAgain(kept: KeptSession): void {
    const { key, id: session, pool, principal, cwd, journal } = kept
    if (!kept.isLive && journal.held.length === 0) return
    const atMs = Math.floor(this.#board.core.calendarMs)
    const isAgain = kept.isWritten ? { isAgain: true as const } : {}
    this.order(kept, { order: 'open', key, session, pool, principal, cwd, atMs, ...isAgain })
    // What holds is known here, or nothing of it has been read yet.
    const isRestart = kept.isRecalled ? { isRestart: true as const } : {}
    this.order(kept, { order: 'trim', key, before: journal.firstSeq, ...isRestart })
    for (const { seq, kind, bytes } of journal.held)
      this.order(kept, { order: 'append', key, life: kept.life, seq, kind, atMs, bytes })
    for (const [kind, { seq, bytes }] of journal.states)
      this.order(kept, { order: 'note', key, state: { kind, seq, bytes } })
    this.note(kept)
  }

  /** What is known of it beside its lines. */
  note(kept: KeptSession): void {
    const { key, title, answer, isLost } = kept
    this.order(kept, { order: 'note', key, title, isLost, ...(answer === undefined ? {} : { answer }) })
  }

  /** What the journal was asked for the seat is still wanted. */
  expect(seat: Seat): void {
    if (seat.isReading) this.#readers.set(seat.number, seat)
  }

  forget(seat: Seat): void {
    this.#readers.delete(seat.number)
    this.#inTime(seat)
    seat.ahead = []
  }

  /** An entry has been made: whoever is at it gets it now. */
  #offer(seat: Seat, entry: Entry, source: Worker | undefined): void {
    const { client } = seat
    if (seat.replay !== undefined || seat.next !== entry.seq || seat.isReading) {
      if (source !== undefined && client.outbox.isFull) this.#board.flow.fill(source, client)
      return
    }
    if (source === undefined && client.outbox.isFull) return this.#wait(seat)
    this.#send(seat, entry)
    if (source !== undefined && client.outbox.isFull) this.#board.flow.fill(source, client)
  }

  #send(seat: Seat, { seq, kind, bytes }: Entry): void {
    const { client, kept, replay } = seat
    seat.next = seq + 1
    const isOwn = seat.own.delete(seq)
    if (seat.isNumbered) return this.#board.flow.sendAside(client, bytes)
    const isPast = replay !== undefined
    if (kind === 'event') return void (isPast || this.#hint(seat, bytes, isOwn))
    if (isOwn || (kind === 'fleeting' && isPast)) return
    this.#board.flow.sendAside(client, this.#shown(client, kept, bytes))
  }

  /** Who takes part and knows nothing of events is told what it must know of them, in the words of its protocol. */
  #hint({ client, kept, isParticipant }: Seat, event: Buffer, isOwn: boolean): void {
    const words = kept.dialect?.table.keeping
    if (!isParticipant || words === undefined) return
    // Newer versions tell of turns by themselves.
    const line = noticeOf(words, kept.id, event, { isOwn, knowsTurns: kept.worker?.takesOneHandshake === true })
    if (line !== undefined) this.#board.flow.sendAside(client, line)
  }

  #shown(client: Client, { dialect, terminals }: KeptSession, bytes: Buffer): Buffer {
    const part = dialect?.table.keeping?.terminalPart
    if (part === undefined) return bytes
    return withoutTerminals(bytes, part, (terminal) => terminals.get(terminal) === client)
  }

  /** The oldest goes where a session, or all of them together, say more than is kept (contract 12.11). */
  #trim(kept: KeptSession): void {
    const { journal, keeping, key } = kept
    if (keeping === undefined || journal.bytes <= keeping.maxBytes) return
    if (!journal.trim(keeping.maxBytes)) return
    this.order(kept, { order: 'trim', key, before: journal.firstSeq })
  }

  #wait(seat: Seat): void {
    const { core } = this.#board
    if (seat.fullTimer !== undefined || seat.replay !== undefined || seat.kept.driver === seat) return
    const { blockingTimeoutMs } = seat.kept.worker?.pool.spec.limits ?? core.spec.limits
    seat.fullTimer = core.timers.set(core.nowMs + blockingTimeoutMs, () => {
      seat.fullTimer = undefined
      if (seat.client.outbox.isFull) this.onLagging(seat)
    })
  }

  #inTime(seat: Seat): void {
    if (seat.fullTimer !== undefined) this.#board.core.timers.cancel(seat.fullTimer)
    seat.fullTimer = undefined
  }
}
