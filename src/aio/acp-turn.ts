/**
 * Turns of ACP agents, whoever wants them: a call by name, or a server that asks for a model (contract 13.14, 13.16).
 *
 * Each caller is one client of the agent's pool. A turn that nobody wants any more is cancelled; one that does not end even
 * then is left alone, with its session.
 */
import { spokenIn } from './acp-blocks.ts'
import { AcpPeer, AgentRefusal } from './acp-peer.ts'
import { type AcpPlace, AcpSessions } from './acp-sessions.ts'
import type { PermissionPolicy } from './agent-spec.ts'
import { type JsonObject, objectOr } from './json-object.ts'
import { after } from './later.ts'
import type { GatewayPort } from './port.ts'

/** The agent, or the bus, knows the session no more. */
const SESSION_LOST = -32002
/** For an agent that was told to stop, or to close. */
const STOP_WAIT_MS = 10_000

/** One caller at one agent. */
export class Guest {
  readonly peer: AcpPeer
  readonly sessions: AcpSessions
  readonly port: GatewayPort
  readonly callerKey: string
  readonly client: number | undefined
  #turns = 0
  #isRetiring = false

  constructor(port: GatewayPort, place: AcpPlace, callerKey: string, client: number | undefined) {
    this.port = port
    this.peer = new AcpPeer(port, place.pool, client)
    this.sessions = new AcpSessions(this.peer, place, port)
    this.callerKey = callerKey
    this.client = client
  }

  begin(): void {
    this.#turns += 1
  }

  end(): void {
    this.#turns -= 1
    this.#maybeLeave()
  }

  /** The caller has gone: the guest goes when its turns have ended, which were told to. */
  retire(): void {
    this.#isRetiring = true
    this.#maybeLeave()
  }

  #maybeLeave(): void {
    if (!this.#isRetiring || this.#turns > 0) return
    const leave = (): void => {
      stopTimer()
      this.peer.leave()
    }
    const stopTimer = after(this.port, STOP_WAIT_MS, () => this.peer.leave())
    void this.sessions.closeAll().finally(leave)
  }
}

/** The clients of agents, one for each caller, and for each connection that a worker calls for. */
export class AcpGuests {
  readonly #port: GatewayPort
  readonly #guests = new Map<string, Guest>()

  constructor(port: GatewayPort) {
    this.#port = port
  }

  of(place: AcpPlace, callerKey: string, client: number | undefined): Guest {
    const key = JSON.stringify([place.pool, place.cwd, callerKey, client])
    const known = this.#guests.get(key)
    if (known !== undefined) return known
    const guest = new Guest(this.#port, place, callerKey, client)
    this.#guests.set(key, guest)
    return guest
  }

  /** The caller has gone, or the connection for which others call. */
  forget(callerKey: string, client: number | undefined): void {
    for (const [key, guest] of this.#guests) {
      if (guest.callerKey !== callerKey && (client === undefined || guest.client !== client)) continue
      this.#guests.delete(key)
      guest.retire()
    }
  }

  leaveAll(): void {
    for (const { peer } of this.#guests.values()) peer.leave()
    this.#guests.clear()
  }
}

export interface TurnRequest {
  readonly prompt: readonly JsonObject[]
  /** The name of a session that is kept; undefined: one for this turn. */
  readonly session: string | undefined
  readonly policy: PermissionPolicy
  readonly meta: JsonObject | undefined
  /** Aborted when nobody wants the turn any more. */
  readonly signal: AbortSignal
  /** It is about to be sent to that process. */
  begun(worker: string | null): void
  spoke(content: unknown): void
  decided(asked: JsonObject, outcome: unknown): void
}

/** Runs it to its end; gives why it stopped. What goes wrong is thrown as `AgentRefusal`. */
export async function runTurn(guest: Guest, turn: TurnRequest): Promise<string> {
  guest.begin()
  try {
    return await runBegun(guest, turn)
  } finally {
    guest.end()
  }
}

async function runBegun({ peer, sessions, port }: Guest, turn: TurnRequest): Promise<string> {
  const session = await sessions.open(turn.session, turn.signal)
  let isLost = false
  try {
    if (turn.signal.aborted) return 'cancelled'
    turn.begun(session.worker)
    listenTo(peer, session.id, turn)
    const meta = turn.meta === undefined ? {} : { _meta: turn.meta }
    const params = { sessionId: session.id, prompt: turn.prompt, ...meta }
    const told = await stoppable(peer.request('session/prompt', params), turn.signal, port, () =>
      peer.tell('session/cancel', { sessionId: session.id }),
    )
    isLost = told === undefined
    const { stopReason = isLost ? 'cancelled' : 'end_turn' } = objectOr(told?.result)
    return typeof stopReason === 'string' ? stopReason : 'end_turn'
  } catch (error) {
    isLost = error instanceof AgentRefusal && error.body.code === SESSION_LOST
    throw error
  } finally {
    peer.deafen(session.id)
    session.release(isLost)
  }
}

function listenTo(peer: AcpPeer, session: string, turn: TurnRequest): void {
  peer.listen(session, {
    policy: turn.policy,
    updated: (update) => {
      const spoken = spokenIn(update)
      if (spoken !== undefined && !turn.signal.aborted) turn.spoke(spoken)
    },
    decided: (asked, outcome) => turn.decided(asked, outcome),
  })
}

/** Undefined: it was told to stop and did not. */
function stoppable<T>(
  answer: Promise<T>,
  signal: AbortSignal,
  port: GatewayPort,
  stop: () => void,
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    let stopTimer = (): void => {}
    const give = (): void => {
      stop()
      stopTimer = after(port, STOP_WAIT_MS, () => resolve(undefined))
    }
    signal.addEventListener('abort', give, { once: true })
    answer.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', give)
      stopTimer()
    })
  })
}
