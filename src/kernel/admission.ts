/**
 * Lets clients in: who it is must be proved before anything else of it is taken (contract 9.3, 9.5, 9.10).
 *
 * It judges no credential: it asks, holds the client up until it knows, and obeys. Nobody is let in by half: until the
 * verdict nothing of the client reaches anybody, and what it has sent behind its credential waits in order. Those who have
 * proved nothing are few, for a short while; the oldest gives way. A connection lives no longer than its credential.
 */
import { type Envelope, SHAPE } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import type { Departures } from './departures.ts'
import type { Reason } from './faults.ts'
import { Gate } from './gate.ts'
import { FIXED } from './limits.ts'
import type { Request } from './owed.ts'
import type { Client } from './peers.ts'
import type { PoolChoice } from './pool-choice.ts'
import type { Identity, Rights } from './rights.ts'
import type { Switchboard } from './switchboard.ts'
import type { Timer } from './timers.ts'
import { cameBy, passOn, type Via, viaFault } from './via.ts'
import type { PoolId, Principal, Refusal } from './vocabulary.ts'

/** Somebody who has proved nothing yet. */
interface Stranger {
  readonly from: string
  readonly timer: Timer
}

/** A client whose credential is being judged. */
interface Opening {
  /** What is owed for its line; undefined: nothing. */
  readonly request: Request | undefined
  readonly pool: unknown
  /** Nothing of the client was taken before. */
  readonly isFirst: boolean
  readonly gate: Gate
}

export class Admission {
  readonly #board: Switchboard
  readonly #poolChoice: PoolChoice
  readonly #departures: Departures
  /** Oldest first. */
  readonly #strangers = new Map<Client, Stranger>()
  readonly #openings = new Map<Client, Opening>()

  constructor(board: Switchboard, poolChoice: PoolChoice, departures: Departures) {
    this.#board = board
    this.#poolChoice = poolChoice
    this.#departures = departures
  }

  /** Somebody has come through a door that asks who it is. */
  expect(client: Client, from: string): void {
    const { core } = this.#board
    const timer = core.timers.set(core.nowMs + FIXED.admissionMs, () => this.#turnAway(client, 'unauthenticated'))
    this.#strangers.set(client, { from, timer })
    client.splitter.maxLineBytes = FIXED.maxFirstBytes
    const neighbours = [...this.#strangers].filter(([, stranger]) => stranger.from === from)
    const isCrowd = neighbours.length > FIXED.maxStrangersPerAddress
    const [oldest] = isCrowd ? neighbours : this.#strangers
    if (isCrowd || this.#strangers.size > FIXED.maxStrangers) this.#turnAway(oldest![0], 'unauthenticated')
  }

  /** Who it is has been judged by its door. */
  admit(client: Client, identity: Identity): void {
    if (!this.#adopt(client, identity)) this.#turnAway(client, 'too_many_clients')
    else this.#passOn(client)
  }

  /** The first line of somebody who has proved nothing: a credential, or the end. */
  takeFirst(client: Client, line: Envelope): void {
    client.hasSpoken = true
    const isOpening = isCall(line) && line.text(FIELD.method) === 'bus::open'
    const params = isOpening ? paramsOf(line) : {}
    if (this.#mayCome(client, line, params)) this.#ask(client, line, params)
  }

  /** `bus::open` of somebody who is in: it may choose its pool with its first line, and show a credential at any time. */
  open(client: Client, line: Envelope, isFirst: boolean): boolean {
    const params = paramsOf(line)
    if (!this.#mayCome(client, line, params)) return true
    const isProof = params.token !== undefined && this.#board.core.spec.hasAccess === true
    const isFromBus = params.via !== undefined
    if (isProof) this.#ask(client, line, params, isFirst)
    else if (isFirst && (params.pool !== undefined || !isFromBus))
      this.#choosePool(client, this.#accept(client, line), params.pool)
    else if (isFromBus) this.#greet(client, this.#accept(client, line))
    return isFirst || isProof || isFromBus
  }

  /** A bus says through which others its messages come: one that leads back here is not let in, or no longer (contract 11.6). */
  #mayCome(client: Client, line: Envelope, { via }: Params): boolean {
    if (via === undefined) return true
    const fault = viaFault(via, this.#board.core.spec.busId)
    if (fault !== undefined) {
      this.#settleStranger(client)
      this.#board.closeFor(client, fault, line.idSpelling(), VIA_PROBLEM)
      return false
    }
    cameBy(client, via as Via)
    this.#passOn(client)
    return true
  }

  /** A loop is found before the first message goes round in it, where it is known whose and for which pool it will be. */
  #passOn(client: Client): void {
    const { vias, pool: id, owner } = client
    const pool = vias === undefined || id === undefined ? undefined : this.#board.core.pools.get(id)
    if (pool !== undefined && owner?.mayUse(pool)) passOn(this.#board.core, client, pool)
  }

  /** Who is it to the bus? */
  describe(client: Client): Record<string, unknown> {
    const { name, subject, via, expires } = client.identity!
    const { role, pools, tools } = client.owner!.rights
    return { principal: name, ...(subject && { subject }), role, via, pools, tools, expires }
  }

  judged(client: Client, verdict: { readonly identity: Identity } | { readonly refusal: Refusal }): void {
    const opening = this.#openings.get(client)
    this.#openings.delete(client)
    // Whoever was sent away meanwhile stays away.
    if (client.state !== 'open') return
    if ('refusal' in verdict) this.#refuse(client, opening, verdict.refusal)
    else this.#accepted(client, opening, verdict.identity)
    if (opening !== undefined) this.#board.flow.release(opening.gate)
  }

  /** Its credential holds no more: what it is owed is refused, and it goes (contract 9.5). */
  revoke(client: Client, isExpired: boolean): void {
    const detail = isExpired ? { why: 'expired' } : undefined
    this.#tell(client, 'unauthenticated')
    this.#departures.failAll(client, 'unauthenticated', detail)
    this.#board.fail(client, 'null', 'unauthenticated', detail)
    // It hears nobody any more, whatever it has not read yet.
    this.#departures.clientGone(client)
    this.#board.host.closeClient(client, FIXED.revokedMs)
  }

  /** Narrowed rights hold from the next message; what lies in a lost pool ends (contract 9.10). */
  changeRights(principal: Principal, rights: Rights): void {
    const row = this.#board.core.principals.find(principal)
    if (row === undefined) return
    row.adopt(rights, this.#board.core.nowMs)
    for (const pool of this.#board.core.everyPool)
      if (!row.mayUse(pool)) this.#board.kept.endAllOf(principal, pool.spec.id)
    for (const client of row.clients)
      for (const pool of this.#board.core.everyPool) if (!row.mayUse(pool)) this.#departures.leavePool(client, pool)
  }

  /** The bus ends: nobody is judged any more. */
  dismiss(): void {
    for (const { request } of this.#openings.values())
      if (request !== undefined) this.#board.settle(request, 'shutting_down')
    this.#openings.clear()
  }

  forget(client: Client): void {
    this.#settleStranger(client)
    this.#openings.delete(client)
    if (client.vias !== undefined) for (const pool of this.#board.core.everyPool) pool.guests.delete(client)
    this.#board.core.principals.leave(client)
  }

  #ask(client: Client, line: Envelope, { token, pool }: Params, isFirst = true): void {
    const gate = new Gate()
    this.#openings.set(client, { request: this.#accept(client, line), pool, isFirst, gate })
    this.#board.flow.block(client, gate)
    const shown = typeof token === 'string' ? token : undefined
    this.#board.core.actions.push({ do: 'judge', client: client.id, token: shown })
  }

  #accept(client: Client, line: Envelope): Request | undefined {
    return line.shape === SHAPE.request ? this.#board.core.owed.accept(line, client) : undefined
  }

  #refuse(client: Client, opening: Opening | undefined, { reason, detail }: Refusal): void {
    if (opening?.request !== undefined) this.#board.settle(opening.request, reason, detail)
    // Whoever is in already stays as it is.
    if (opening?.isFirst === false) this.#tell(client, reason)
    else this.#turnAway(client, reason, opening?.request !== undefined)
  }

  /** It is closed; `isTold`: the answer to its line has said why. */
  #turnAway(client: Client, reason: Reason, isTold = false): void {
    const request = this.#openings.get(client)?.request
    this.#settleStranger(client)
    // It was closed for something else meanwhile, and has heard of that.
    if (client.state !== 'open') return
    this.#openings.delete(client)
    this.#tell(client, reason)
    if (request !== undefined) this.#board.settle(request, reason)
    else if (!isTold) this.#board.fail(client, 'null', reason)
    this.#board.host.closeClient(client)
  }

  #tell({ id, owner }: Client, reason: Reason): void {
    if (owner !== undefined) owner.refused++
    this.#board.core.actions.push({ do: 'turned-away', client: id, reason })
  }

  #accepted(client: Client, opening: Opening | undefined, identity: Identity): void {
    const isOther = client.owner !== undefined && client.owner.id !== identity.principal
    if (isOther && opening?.isFirst === false) return this.#refuse(client, opening, { reason: 'not_allowed' })
    if (this.#strangers.has(client) && client.backlogBytes > FIXED.maxFirstBytes)
      return this.#refuse(client, opening, { reason: 'unauthenticated', detail: { problem: TOO_MUCH } })
    if (!this.#adopt(client, identity)) return this.#refuse(client, opening, { reason: 'too_many_clients' })
    if (opening !== undefined && opening.pool === undefined) this.#greet(client, opening.request)
    else if (opening !== undefined) this.#choosePool(client, opening.request, opening.pool)
  }

  #adopt(client: Client, identity: Identity): boolean {
    const { core } = this.#board
    if (!core.principals.join(client, identity)) return false
    if (this.#strangers.has(client)) client.splitter.maxLineBytes = core.maxClientLineBytes
    this.#settleStranger(client)
    core.actions.push({ do: 'admitted', client: client.id, identity })
    return true
  }

  /** `bus::open` chooses the pool of a connection (contract 6.3). */
  #choosePool(client: Client, request: Request | undefined, pool: unknown): void {
    const fault = this.#faultOf(client, pool)
    if (fault !== undefined) {
      const detail = fault === 'not_allowed' ? { pool } : { pool, pools: this.#poolChoice.namesFor(client) }
      if (request === undefined) this.#board.fail(client, 'null', fault, detail)
      else this.#board.settle(request, fault, detail)
      return this.#board.host.closeClient(client)
    }
    client.pool = pool as PoolId
    this.#passOn(client)
    this.#greet(client, request)
  }

  /** Where nobody tells callers apart, nobody is told who it is. */
  #greet(client: Client, request: Request | undefined): void {
    const { spec } = this.#board.core
    if (request === undefined) return
    const { name, subject } = client.identity!
    const { role } = client.owner!.rights
    const who = spec.hasAccess ? { principal: name, ...(subject && { subject }), role } : {}
    const result = { pool: client.pool ?? this.#poolChoice.unnamedFor(client) ?? null, ...who }
    this.#board.answerRequest(request, `"result":${JSON.stringify(result)}`)
  }

  #faultOf({ owner }: Client, pool: unknown): Reason | undefined {
    if (typeof pool === 'string' && !owner!.mayName(pool)) return 'not_allowed'
    return typeof pool === 'string' && this.#board.core.pools.has(pool) ? undefined : 'unknown_pool'
  }

  #settleStranger(client: Client): void {
    const stranger = this.#strangers.get(client)
    if (stranger === undefined) return
    this.#board.core.timers.cancel(stranger.timer)
    this.#strangers.delete(client)
  }
}

const VIA_PROBLEM = `via is a list of at most ${FIXED.maxVia} ids of buses, and this bus is none of them`
const TOO_MUCH = `more than ${FIXED.maxFirstBytes} bytes came before it was known who is calling`

interface Params {
  readonly token?: unknown
  readonly pool?: unknown
  readonly via?: unknown
}

function isCall({ shape }: Envelope): boolean {
  return shape === SHAPE.request || shape === SHAPE.notification
}

function paramsOf(line: Envelope): Params {
  const { params }: { params?: unknown } = JSON.parse(line.bytes.utf8Slice(line.start, line.end))
  return typeof params === 'object' && params !== null ? params : {}
}
