/**
 * Sessions with ACP agents: for one call each, or kept under a name that the caller chose (contract 13.14).
 *
 * Calls of one session go one after the other. Kept sessions are bounded in number and in the time they are left alone;
 * what a caller had ends with it.
 */
import { type AcpPeer, AgentRefusal } from './acp-peer.ts'
import type { AcpAgent } from './agent-spec.ts'
import { fault } from './faults.ts'
import { objectOr } from './json-object.ts'
import type { GatewayPort } from './port.ts'

/** All that a session needs to know of its agent. */
export type AcpPlace = Pick<AcpAgent, 'name' | 'pool' | 'cwd'>

const MAX_WAITING = 16
const MAX_SESSIONS = 1_000
const IDLE_MS = 3_600_000

interface Made {
  readonly id: string
  /** The process that has it. */
  readonly worker: string | null
}

export interface OpenSession extends Made {
  /** The turn is over; the next may begin. `isLost`: the agent knows the session no more, or is still at the turn. */
  release(isLost?: boolean): void
}

class KeptSession {
  made: Promise<Made> | undefined
  usedAtMs = 0
  isBusy = false
  readonly waiting: (() => void)[] = []
}

export class AcpSessions {
  readonly #peer: AcpPeer
  readonly #place: AcpPlace
  readonly #port: GatewayPort
  /** In the order of their use. */
  readonly #kept = new Map<string, KeptSession>()
  /** Settles when what was for one turn is closed. */
  #closing: Promise<unknown> = Promise.resolve()

  constructor(peer: AcpPeer, place: AcpPlace, port: GatewayPort) {
    this.#peer = peer
    this.#place = place
    this.#port = port
  }

  /** A session for one turn; one with a name waits until it is free. */
  open(name: string | undefined, signal: AbortSignal): Promise<OpenSession> {
    return name === undefined ? this.#fresh() : this.#keptOf(name, signal)
  }

  async #fresh(): Promise<OpenSession> {
    const made = await this.#create()
    const release = (): void => {
      this.#closing = Promise.all([this.#closing, this.#close(made.id)]).then(() => {})
    }
    return { ...made, release }
  }

  async #keptOf(name: string, signal: AbortSignal): Promise<OpenSession> {
    this.#expire()
    const session = this.#kept.get(name) ?? new KeptSession()
    if (!this.#kept.has(name) && this.#kept.size >= MAX_SESSIONS)
      throw new AgentRefusal(fault('overloaded', { agent: this.#place.name }))
    this.#kept.delete(name)
    this.#kept.set(name, session)
    if (session.isBusy) await this.#turnAt(session, signal)
    session.isBusy = true
    try {
      session.made ??= this.#create()
      const made = await session.made
      return { ...made, release: (isLost = false) => this.#release(session, isLost) }
    } catch (error) {
      this.#release(session, true)
      throw error
    }
  }

  #release(session: KeptSession, isLost: boolean): void {
    if (isLost) session.made = undefined
    session.usedAtMs = this.#port.nowMs()
    const next = session.waiting.shift()
    if (next === undefined) session.isBusy = false
    else next()
  }

  #turnAt({ waiting }: KeptSession, signal: AbortSignal): Promise<void> {
    if (waiting.length >= MAX_WAITING) throw new AgentRefusal(fault('overloaded', { agent: this.#place.name }))
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        waiting.splice(waiting.indexOf(begin), 1)
        reject(new AgentRefusal(fault('cancelled')))
      }
      const begin = (): void => {
        signal.removeEventListener('abort', giveUp)
        resolve()
      }
      waiting.push(begin)
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  async #create(): Promise<Made> {
    const { result, worker } = await this.#peer.request('session/new', { cwd: this.#place.cwd, mcpServers: [] })
    const { sessionId } = objectOr(result)
    if (typeof sessionId === 'string') return { id: sessionId, worker }
    throw new AgentRefusal(fault('agent_invalid_response', { agent: this.#place.name, cause: 'it named no session' }))
  }

  /** An agent that cannot close sessions forgets them when its client goes. */
  async #close(sessionId: string): Promise<void> {
    if (this.#peer.hasLeft) return
    try {
      const { canClose } = await this.#peer.facts()
      if (canClose) await this.#peer.request('session/close', { sessionId })
    } catch (error) {
      if (!(error instanceof AgentRefusal)) throw error
    }
  }

  /** The caller has gone. */
  async closeAll(): Promise<void> {
    const made = [...this.#kept.values()].flatMap((session) => session.made ?? [])
    this.#kept.clear()
    const known = (await Promise.allSettled(made)).flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    await Promise.all([this.#closing, ...known.map(({ id }) => this.#close(id))])
  }

  #expire(): void {
    const oldestMs = this.#port.nowMs() - IDLE_MS
    for (const [name, session] of this.#kept) {
      if (session.isBusy) continue
      if (session.usedAtMs > oldestMs && this.#kept.size < MAX_SESSIONS) return
      this.#kept.delete(name)
      session.made?.then(({ id }) => this.#close(id)).catch(() => {})
    }
  }
}
