/**
 * What the bus is asked about kept sessions: which there are, to look on or take part, to leave, to end (contract 12.19,
 * 12.20).
 *
 * Whoever may not see a session is told that there is none. A principal sees its own; an administrator all, when it says
 * so; an observer those of its pools, and changes nothing.
 */
import type { Envelope } from '../../wire/envelope.ts'
import type { Reason } from '../faults.ts'
import { FIXED } from '../limits.ts'
import type { Request } from '../owed.ts'
import type { Client } from '../peers.ts'
import type { Switchboard } from '../switchboard.ts'
import { isFarMethod, poolSeenBy } from './far-sessions.ts'
import type { KeptSession, KeptState } from './kept-session.ts'
import { paramsOf } from './lines.ts'
import { findKept, listKept, type Viewer } from './session-view.ts'

type Params = Readonly<Record<string, unknown>>

const METHODS = ['bus::sessions.list', 'bus::sessions.attach', 'bus::sessions.detach', 'bus::sessions.end'] as const
export type SessionMethod = (typeof METHODS)[number]

export function isSessionMethod(method: string): method is SessionMethod {
  return (METHODS as readonly string[]).includes(method)
}

const STATES: readonly KeptState[] = ['attached', 'detached', 'stored', 'lost']

/** A request that is refused, and what it is told beside the reason. */
interface Refused {
  readonly refused: Reason
  readonly detail?: Record<string, unknown>
}

export class SessionMethods {
  readonly #board: Switchboard
  readonly #serve: Readonly<Record<SessionMethod, (request: Request, params: Params) => Refused | undefined>>

  constructor(board: Switchboard) {
    this.#board = board
    this.#serve = {
      'bus::sessions.list': (request, params) => this.#list(request, params),
      'bus::sessions.attach': (request, params) => this.#attach(request, params),
      'bus::sessions.detach': (request, params) => this.#detach(request, params),
      'bus::sessions.end': (request, params) => this.#end(request, params),
    }
  }

  serve(method: SessionMethod, request: Request, line: Envelope): void {
    const outcome = this.#serve[method](request, paramsOf(line))
    if (outcome === undefined) return
    const isUnknown = outcome.refused === 'unknown_session'
    if (isUnknown && isFarMethod(method) && this.#board.farSessions.ask(method, request, line)) return
    if (outcome.refused === 'not_allowed') request.client!.owner!.refused++
    this.#board.settle(request, outcome.refused, outcome.detail)
  }

  #list(request: Request, { pool, state, all, limit = 100, cursor }: Params): Refused | undefined {
    const client = request.client!
    if (pool !== undefined && typeof pool !== 'string') return bad('"pool" must be a string')
    if (state !== undefined && !STATES.includes(state as KeptState))
      return bad(`"state" must be one of ${STATES.join(', ')}`)
    if (!isWhole(limit, 1, FIXED.maxListed)) return bad(`"limit" must be a number from 1 to ${FIXED.maxListed}`)
    const wish = { pool, state: state as KeptState | undefined, wantsAll: all === true, limit, cursor }
    const page = listKept(this.#board, viewerOf(client), wish)
    if (page === undefined) return bad('"cursor" is none of this bus')
    const { sessions } = page
    this.#answer(request, { sessions, ...(page.next === undefined ? {} : { next_cursor: page.next }) })
    return undefined
  }

  #attach(request: Request, params: Params): Refused | undefined {
    const { role, from } = params
    const client = request.client!
    const kept = this.#find(client, params)
    if ('refused' in kept) return kept
    if (role !== 'observe' && role !== 'drive') return bad('"role" must be "observe" or "drive"')
    if (role === 'drive' && client.owner!.rights.role === 'observer') return { refused: 'not_allowed' }
    if (role === 'drive' && !kept.isLive) return { refused: 'session_lost', detail: { session: kept.id } }
    const { seq, firstSeq } = kept.journal
    if (from !== undefined && !isWhole(from, 0)) return bad('"from" must be a number from 0 on')
    if (from !== undefined && from > seq + 1) return { refused: 'bad_position', detail: { session: kept.id, seq } }
    const { participants, history } = this.#board.kept
    if (!participants.hasRoom(kept, client)) return { refused: 'too_many_clients', detail: { session: kept.id } }
    const next = from ?? seq + 1
    const driver = kept.rows[0]?.driver
    const stepsBack = role === 'observe' && kept.isParticipant(client)
    const seat = participants.join(kept, client, { next, isParticipant: role === 'drive', isNumbered: true })
    this.#answer(request, { session: kept.id, role, seq, first_seq: firstSeq, turn: kept.turnState })
    participants.greet(seat)
    if (stepsBack) participants.stepBack(kept, driver)
    seat.isArriving = true
    history.advance(seat)
    return undefined
  }

  #detach(request: Request, params: Params): Refused | undefined {
    const client = request.client!
    const seat = [...client.seats].find(({ kept }) => kept.id === params['session'])
    if (seat === undefined) return { refused: 'unknown_session', detail: { session: params['session'] ?? null } }
    this.#board.kept.participants.leave(seat)
    this.#answer(request, {})
    return undefined
  }

  #end(request: Request, params: Params): Refused | undefined {
    const client = request.client!
    const kept = this.#find(client, params)
    if ('refused' in kept) return kept
    if (client.owner!.rights.role === 'observer') return { refused: 'not_allowed' }
    if (params['delete'] !== undefined && typeof params['delete'] !== 'boolean')
      return bad('"delete" must be true or false')
    this.#board.kept.end(kept, { by: 'request' }, params['delete'] === true)
    this.#answer(request, {})
    return undefined
  }

  /** One that the client may see: its own first, then one that lives. */
  #find(client: Client, { session, pool }: Params): KeptSession | Refused {
    if (typeof session !== 'string') return bad('"session" must be a string')
    if (pool !== undefined && typeof pool !== 'string') return bad('"pool" must be a string')
    const found = findKept(this.#board, viewerOf(client), session, poolSeenBy(client, pool))
    return found ?? { refused: 'unknown_session', detail: { session } }
  }

  #answer(request: Request, result: unknown): void {
    this.#board.answerRequest(request, `"result":${JSON.stringify(result)}`)
  }
}

function viewerOf({ owner, principal }: Client): Viewer {
  return { rights: owner!.rights, principal }
}

function bad(problem: string): Refused {
  return { refused: 'bad_params', detail: { problem } }
}

function isWhole(value: unknown, least: number, most = Number.MAX_SAFE_INTEGER): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
}
