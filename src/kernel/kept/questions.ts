/**
 * What the agent of a kept session asks: put to the driver alone, and to the next one when the drive moves (contract
 * 12.14, 12.18).
 *
 * A question waits while nobody drives, for a while; then, or where nobody can answer it, it is answered for the client,
 * never with consent. Invariant: the agent gets one answer, and a late one of somebody who was asked before is dropped.
 */
import type { Envelope } from '../../wire/envelope.ts'
import { FIELD } from '../../wire/fields.ts'
import { replace } from '../../wire/splice.ts'
import type { WorkerRow } from '../dialect-table.ts'
import { FIXED } from '../limits.ts'
import { type Question, spell } from '../owed.ts'
import type { Client, Worker } from '../peers.ts'
import type { Switchboard } from '../switchboard.ts'
import type { History } from './history.ts'
import type { Asked, KeptSession } from './kept-session.ts'
import { paramsOf, resultOf } from './lines.ts'
import { nameOf } from './participants.ts'

export class KeptQuestions {
  readonly #board: Switchboard
  readonly #history: History
  /** All that is asked and has no answer yet, the oldest first. */
  readonly open = new Set<Asked>()

  constructor(board: Switchboard, history: History) {
    this.#board = board
    this.#history = history
  }

  ask(kept: KeptSession, worker: Worker, row: WorkerRow, line: Envelope): void {
    kept.lastLineMs = this.#board.core.nowMs
    if (this.#isTooMuch(kept, worker)) return this.#board.refuseQuestion(worker, line.idSpelling(), 'overloaded')
    const told = { seq: kept.journal.seq + 1, sinceMs: this.#board.core.calendarMs }
    const asked: Asked = { kept, ...told, line: line.keep(), row, worker, question: undefined, timer: undefined }
    this.open.add(asked)
    kept.asked = [...kept.asked, asked]
    const method = line.text(FIELD.method)
    const params = line.has(FIELD.params) ? `"params":${line.spelling(FIELD.params)}` : ''
    this.#history.tell(kept, 'question', { more: { method }, ready: params })
    this.#put(asked)
  }

  /** All that is asked is held, for the drive may move: so much, and one line more. */
  #isTooMuch({ asked }: KeptSession, { pool }: Worker): boolean {
    const { maxOutputQueueBytes } = pool.spec.limits
    return asked.length >= this.#board.core.spec.limits.maxPendingPerClient || bytesOf(asked) > maxOutputQueueBytes
  }

  /** No more may wait beside those that do. */
  #isCrowded(asked: Asked): boolean {
    const waiting = asked.kept.asked.filter((each) => each.question === undefined && each !== asked)
    if (waiting.length >= FIXED.maxWaitingQuestions) return true
    return bytesOf([...waiting, asked]) > FIXED.maxWaitingQuestionBytes
  }

  /** To whoever can answer it, now or when somebody drives. */
  #put(asked: Asked): void {
    const { row, line, worker } = asked
    const client = this.#whom(asked)
    if (client === 'nobody' || (client !== undefined && !canBeAsked(client, asked))) return this.#giveUp(asked)
    if (client === undefined) return this.#isCrowded(asked) ? this.#giveUp(asked) : this.#await(asked)
    this.#stopClock(asked)
    const question = this.#board.core.owed.ask(line, worker, client)
    question.answerWhenGone = row.answerWhenGone
    question.asked = asked
    asked.question = question
    const edits = question.isAliased ? [replace(line, FIELD.id, spell(question.key))] : []
    this.#board.forward(client, line, edits)
  }

  /** Its time runs while nobody can be asked. */
  #await(asked: Asked): void {
    const { core } = this.#board
    const waitMs = asked.kept.keeping?.questionMs ?? 0
    asked.timer ??= core.timers.set(core.nowMs + waitMs, () => this.#giveUp(asked))
  }

  #stopClock(asked: Asked): void {
    if (asked.timer !== undefined) this.#board.core.timers.cancel(asked.timer)
    asked.timer = undefined
  }

  /** Who has the terminal that is meant is asked, and nobody else. */
  #whom({ kept, row, line }: Asked): Client | 'nobody' | undefined {
    if (row.terminal !== 'named') return kept.driver?.client
    const { [kept.dialect!.table.keeping!.terminalPart.key]: terminal } = paramsOf(line)
    const owner = typeof terminal === 'string' ? kept.terminals.get(terminal) : undefined
    return owner?.state === 'open' && kept.isParticipant(owner) ? owner : 'nobody'
  }

  /** Somebody else drives: what was put to others is put to it. */
  move(kept: KeptSession): void {
    const client = kept.driver?.client
    for (const asked of kept.asked) {
      if (asked.row.terminal === 'named' && asked.question !== undefined) continue
      if (asked.question !== undefined && asked.question.client === client) continue
      if (asked.question !== undefined) this.#withdraw(asked)
      this.#put(asked)
    }
  }

  /** Whoever was asked is told that it need not answer. */
  #withdraw(asked: Asked): void {
    const { client, key } = asked.question!
    const cancel = asked.kept.dialect!.table.cancel!
    const told = { jsonrpc: '2.0', method: cancel.method, params: {} }
    const line = JSON.stringify(told).replace('{}', `{${JSON.stringify(cancel.key)}:${spell(key)}}`)
    this.#retract(asked)
    if (client.state === 'open') this.#board.flow.sendAside(client, Buffer.from(`${line}\n`))
  }

  #retract(asked: Asked): void {
    this.#board.core.owed.disownQuestion(asked.question!)
    asked.question = undefined
  }

  /** The client that was asked goes: somebody else is asked, or will be. */
  release({ asked, client }: Question): void {
    this.#retract(asked!)
    if (asked!.row.terminal === 'named') this.#giveUp(asked!)
    else if (asked!.kept.driver?.client !== client) this.#put(asked!)
  }

  /** A client has answered; its answer goes on to the agent. */
  answered({ asked, client }: Question, answer: Envelope): void {
    const { kept, row, line, seq } = asked!
    const seat = kept.seatOf(client)
    this.#settle(asked!)
    const { terminalPart } = kept.dialect!.table.keeping!
    const { [terminalPart.key]: terminal } = row.terminal === 'made' ? resultOf(answer) : {}
    if (typeof terminal === 'string') kept.noteTerminal(terminal, client, FIXED.maxTerminals)
    const by = seat === undefined ? client.principal : nameOf(seat)
    this.#history.tell(kept, 'answered', { more: { method: line.text(FIELD.method), question: seq, by } })
  }

  /** The client has stopped the turn: what others were asked is refused for them; what it was asked it refuses itself. */
  stop(kept: KeptSession, client: Client): void {
    for (const asked of kept.asked) {
      if (asked.row.answerWhenGone === undefined || asked.question?.client === client) continue
      if (asked.question !== undefined) this.#withdraw(asked)
      this.#giveUp(asked)
    }
  }

  /** The agent wants no answer to what waits; true: it was found. */
  cancel(worker: Worker, line: Envelope): boolean {
    const key = line.key(FIELD.requestId)
    for (const { kept } of worker.sessions.values()) {
      const asked = kept?.asked.find((each) => each.question === undefined && each.line.key(FIELD.id) === key)
      if (asked === undefined) continue
      this.#giveUp(asked)
      return true
    }
    return false
  }

  /** Nobody will answer: the session ends, or its agent has gone. */
  dismiss(kept: KeptSession): void {
    for (const asked of kept.asked) {
      if (asked.question !== undefined) this.#withdraw(asked)
      this.#giveUp(asked)
    }
  }

  #giveUp(asked: Asked): void {
    const { kept, worker, row, line, seq } = asked
    this.#settle(asked)
    if (worker.isAlive) this.#answerFor(worker, row, line.idSpelling())
    this.#history.tell(kept, 'answered', { more: { method: line.text(FIELD.method), question: seq, by: 'bus' } })
  }

  #settle(asked: Asked): void {
    const { kept } = asked
    this.#stopClock(asked)
    this.open.delete(asked)
    kept.asked = kept.asked.filter((each) => each !== asked)
  }

  #answerFor(worker: Worker, { answerWhenGone }: WorkerRow, idSpelling: string): void {
    if (answerWhenGone === undefined) this.#board.refuseQuestion(worker, idSpelling, 'client_gone')
    else this.#board.answerQuestion(worker, idSpelling, answerWhenGone)
  }
}

function bytesOf(asked: readonly Asked[]): number {
  return asked.reduce((sum, { line }) => sum + line.bytes.length, 0)
}

/** The client has said that it can do this, in the way in which it is asked. */
function canBeAsked(client: Client, { kept: { pool, dialect }, row, line }: Asked): boolean {
  const { needsAt, needsWay } = row
  if (needsAt === undefined) return true
  const way = needsWay === undefined ? undefined : paramsOf(line)[needsWay]
  const path = typeof way === 'string' ? [...needsAt, way] : needsAt
  const told = client.introductions.get(pool)?.initialize
  if (told === undefined) return false
  const { params } = JSON.parse(told.toString()) as { params?: Record<string, unknown> }
  for (const key of dialect!.table.keeping!.offersAt) {
    let at: unknown = params?.[key]
    for (const step of path)
      at = Object(at) === at && Object.hasOwn(at as object, step) ? (at as never)[step] : undefined
    if (at !== undefined && at !== null && at !== false) return true
  }
  return false
}
