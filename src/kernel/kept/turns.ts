/**
 * Turns of kept sessions: one at a time, whoever prompts (contract 12.8, 12.15).
 *
 * A prompt that comes while another client's turn is under way waits for its end. The turn goes on when its client goes;
 * its answer is kept as its end. What the person said is told to the others, unless the agent tells it itself.
 */
import type { Envelope } from '../../wire/envelope.ts'
import { FIELD } from '../../wire/fields.ts'
import { FIXED } from '../limits.ts'
import type { Request } from '../owed.ts'
import type { Client } from '../peers.ts'
import type { Route } from '../route.ts'
import type { Switchboard } from '../switchboard.ts'
import { WaitingLine } from '../waiting.ts'
import type { History } from './history.ts'
import type { KeptSession, Turn, Unsaid } from './kept-session.ts'
import { paramsOf, promptLines, resultOf, titleOf } from './lines.ts'
import { nameOf, type Participants } from './participants.ts'

export class KeptTurns {
  readonly #board: Switchboard
  readonly #history: History
  readonly #participants: Participants

  constructor(board: Switchboard, history: History, participants: Participants) {
    this.#board = board
    this.#history = history
    this.#participants = participants
  }

  /** True: the prompt waits for the end of another client's turn, or was refused. */
  hold(kept: KeptSession, route: Route): boolean {
    const { turn } = kept
    if (turn === undefined || (turn.client === route.client && !this.#isWaitedFor(kept))) return false
    if (promptsIn(kept).length >= FIXED.maxWaitingPrompts)
      this.#board.refuse(route, 'session_busy', { sessionId: kept.id })
    else this.wait(kept, route)
    return true
  }

  /** The message waits for something of the session. */
  wait(kept: KeptSession, route: Route): void {
    kept.queue ??= new WaitingLine(route.pool.spec.limits.maxOutputQueueBytes)
    this.#board.waiting.enter(route, kept.queue)
  }

  #isWaitedFor(kept: KeptSession): boolean {
    return promptsIn(kept).length > 0
  }

  /** The prompt is the next turn, or belongs to the one of its client. */
  begin(kept: KeptSession, { client, line, request, dialect }: Route): void {
    if (request === undefined || request.kept !== undefined) return
    request.kept = kept
    const words = dialect!.table.keeping!
    const seat = kept.seatOf(client)
    if (seat !== undefined) this.#participants.drive(seat)
    if (kept.title === '') this.#entitle(kept, titleOf(words, line))
    const unsaid = { request, lines: promptLines(words, kept.id, line) }
    if (kept.turn !== undefined) {
      kept.turn.requests.add(request)
      this.#sayPrompts(kept, kept.turn)
      kept.turn.unsaid = [...kept.turn.unsaid, unsaid]
      return
    }
    kept.turn = {
      client,
      requests: new Set([request]),
      unsaid: [unsaid],
      isAcknowledged: false,
      hasRun: false,
      ending: undefined,
    }
    const more = seat === undefined ? {} : { name: nameOf(seat) }
    this.#history.tell(kept, 'turn_started', { more, own: client })
  }

  #entitle(kept: KeptSession, title: string): void {
    if (title === '') return
    kept.title = title
    this.#history.note(kept)
  }

  /** The agent says something: if it does not repeat what the person said, that comes first. */
  firstWords(kept: KeptSession, kind: string | undefined): void {
    const { turn } = kept
    if (turn === undefined || turn.unsaid.length === 0) return
    const { personRepeated } = kept.dialect!.table.keeping!
    if (kind !== undefined && personRepeated.includes(kind)) turn.unsaid = turn.unsaid.filter((each) => !isHeard(each))
    else this.#sayPrompts(kept, turn)
  }

  /** What waits for a handshake the agent has not heard: nobody is told of it before. */
  #sayPrompts(kept: KeptSession, turn: Turn): void {
    const heard = turn.unsaid.filter(isHeard)
    turn.unsaid = turn.unsaid.filter((each) => !isHeard(each))
    for (const { lines } of heard)
      for (const bytes of lines) this.#history.say(kept, 'prompt', bytes, { own: turn.client })
  }

  /** The prompt has been answered: in most versions that ends the turn. */
  answered(request: Request, line: Envelope): void {
    const kept = request.kept!
    const { turn } = kept
    if (turn?.requests.delete(request) !== true) return
    const isResult = line.has(FIELD.result)
    if (isResult && kept.worker?.takesOneHandshake) {
      turn.isAcknowledged = true
      if (turn.ending !== undefined) this.end(kept, turn.ending)
      return
    }
    if (turn.requests.size > 0) return
    const { stopReason } = resultOf(line)
    const error = line.has(FIELD.errorCode) ? line.key(FIELD.errorCode) : undefined
    this.end(kept, typeof stopReason === 'string' ? { stopReason } : { error: Number(error ?? 0) })
  }

  /** What the agent says of the turn, where the answer does not; a turn may be over before its prompt is acknowledged. */
  toldState(kept: KeptSession, line: Envelope): void {
    const { turn } = kept
    if (turn === undefined) return
    const { state, stopReason } = stateIn(line)
    const isOver = state === kept.dialect?.table.keeping?.turnIs.idle
    const how = typeof stopReason === 'string' ? { stopReason } : {}
    if (!isOver) turn.hasRun = true
    if (isOver && turn.isAcknowledged) this.end(kept, how)
    else turn.ending = isOver && turn.hasRun ? how : undefined
  }

  /** That it is at work an agent says before it repeats the prompt. */
  isFirstWords({ dialect }: KeptSession, kind: string | undefined, line: Envelope): boolean {
    const { turnIs } = dialect!.table.keeping!
    return kind !== turnIs.kind || stateIn(line).state === turnIs.idle
  }

  /** There will be no answer to the prompt; one that never reached the agent was not said. */
  failed(request: Request, reason: string): void {
    const kept = request.kept!
    const { turn } = kept
    if (turn?.requests.delete(request) !== true) return
    turn.unsaid = turn.unsaid.filter((each) => isHeard(each) || each.request !== request)
    if (turn.requests.size > 0) return
    this.end(kept, { error: reason })
  }

  end(kept: KeptSession, how: Readonly<Record<string, unknown>>): void {
    const { turn } = kept
    if (turn === undefined) return
    this.#sayPrompts(kept, turn)
    kept.turn = undefined
    this.#history.tell(kept, 'turn_ended', { more: how, own: turn.client })
    this.proceed(kept)
  }

  /** What waited for the session goes on, in order, as far as it can; nothing begins at an agent that is ending. */
  proceed({ queue, worker }: KeptSession): void {
    if (queue === undefined || queue.isEmpty || worker?.isAlive === false) return
    const { waiting, router } = this.#board
    for (const route of waiting.take(queue)) router.proceed(route)
    waiting.reopen(queue)
  }

  /** The client stops the turn: its own prompts that wait are answered. */
  stop(kept: KeptSession, client: Client): void {
    for (const route of promptsIn(kept)) if (route.client === client) this.#giveUp(route)
  }

  /** A client wants its prompt that waits no more; true: it was found. */
  withdraw({ client, line, row, cameBefore }: Route): boolean {
    const key = line.key(row!.cancels!)
    const isMeant = ({ route, serial }: Request): boolean =>
      serial < cameBefore && route?.row?.isTurn === true && route.place === queueOf(route)
    const request = key === undefined ? undefined : this.#board.core.owed.find(client, key, isMeant)
    if (request?.route === undefined) return false
    this.#giveUp(request.route)
    return true
  }

  #giveUp(route: Route): void {
    this.#board.waiting.withdraw(route)
    this.#board.answerRequest(route.request!, `"result":${route.dialect!.table.keeping!.cancelled}`)
  }

  /** The session goes no further: nothing waits for it any more. */
  dismiss({ queue, id }: KeptSession): void {
    if (queue === undefined) return
    this.#board.waiting.dismiss(queue, 'session_lost', () => ({ sessionId: id }))
  }

  /** The client has gone: what it has begun goes on without it. */
  orphan(kept: KeptSession, client: Client): void {
    if (kept.turn?.client === client) kept.turn.client = undefined
  }
}

function stateIn(line: Envelope): { readonly state?: unknown; readonly stopReason?: unknown } {
  const { update } = paramsOf(line)
  return typeof update === 'object' && update !== null ? update : {}
}

/** The agent has it. */
function isHeard({ request }: Unsaid): boolean {
  return request.worker !== undefined
}

function queueOf({ client, session }: Route): WaitingLine | undefined {
  return client.sessions.get(session ?? '')?.kept?.queue
}

function promptsIn({ queue }: KeptSession): Route[] {
  return queue === undefined ? [] : [...queue.routes].filter(({ row }) => row?.isTurn)
}
