/**
 * Messages that are not routed but handed to the gateway: `agent::method`, bare `help`, the bus's own methods (spec N1).
 *
 * The kernel knows no gateway: it counts what a client is owed and hands on a copy of the line. Whoever answers does so by
 * an event. Invariant: a request that was handed on stays in its client's count until its final reply.
 */
import { type Envelope, type IdKey, SHAPE } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import { hasNamespace, isHelp } from '../wire/method-names.ts'
import { ownSet } from './empty.ts'
import type { CallerId } from './events.ts'
import { FIXED } from './limits.ts'
import type { Request } from './owed.ts'
import type { Client, Peer, Worker } from './peers.ts'
import { forgetOldest } from './remember.ts'
import type { Switchboard } from './switchboard.ts'
import { LOCAL } from './vocabulary.ts'

export function callerOf(peer: Peer): CallerId {
  if (peer.kind === 'client') {
    const { id: client, door, isLocal, principal, cause } = peer
    const who = { ...(principal === LOCAL ? {} : { principal }), ...(cause === undefined ? {} : { cause }) }
    return { kind: 'client', client, door, isLocal, ...who }
  }
  return { kind: 'worker', worker: peer.id, generation: peer.generation, pool: peer.pool.spec.id }
}

export class Calls {
  readonly #board: Switchboard

  constructor(board: Switchboard) {
    this.#board = board
  }

  get isOn(): boolean {
    const { gateway } = this.#board.core.spec
    return gateway !== undefined && gateway !== 'off'
  }

  /** The message of a client is a call of an agent. */
  isAgentNamed(line: Envelope): boolean {
    return this.#board.core.spec.gateway === 'all' && (isHelp(line) || hasNamespace(line))
  }

  /** The message of a worker is a call. */
  isNamed(line: Envelope): boolean {
    if (!hasNamespace(line)) return false
    return this.#board.core.spec.gateway === 'all' || line.text(FIELD.method)!.startsWith('bus::')
  }

  /** The line has an id and says nothing that JSON-RPC knows: it may still be an answer to the gateway. */
  isLoose(line: Envelope): boolean {
    if (!this.isOn || line.has(FIELD.method)) return false
    return !line.has(FIELD.result) && !line.has(FIELD.error) && line.idSpelling() !== 'null'
  }

  /** A call of a client, whose row stays until the gateway has given its last reply. */
  takeFromClient(client: Client, line: Envelope): void {
    if (line.shape === SHAPE.request) {
      const request = this.#board.core.owed.accept(line, client)
      request.isAtGateway = true
      if (line.isOdd(FIELD.id)) request.isOdd = true
      if (this.#board.core.spec.hasAudit) this.#board.audit.beginCall(request, line)
    }
    client.isCaller = true
    this.#handOn(client, line)
  }

  /** The notification cancels a call of this client, in whichever protocol's words. */
  takeCancel(client: Client, line: Envelope): boolean {
    const { core, dialects } = this.#board
    if (!dialects.cancels.has(line.text(FIELD.method)!)) return false
    const id = line.key(FIELD.requestId)
    if (id === undefined) return false
    if (typeof id !== 'bigint' && core.owed.find(client, id, isPlainCall) !== undefined)
      core.actions.push({ do: 'cancel-call', from: callerOf(client), id })
    else if (!client.endedCalls.has(id) || core.owed.find(client, id, isElsewhere) !== undefined) return false
    // It has just been answered: no worker would know what is meant.
    else core.drop('cancel_for_nothing')
    return true
  }

  /** A call of the client is answered or given up; one whose id may be respelled is known to the gateway by another. */
  settle(client: Client, id: IdKey | undefined, traceId?: string): void {
    const { owed } = this.#board.core
    const request = id === undefined ? undefined : owed.find(client, id, isPlainCall)
    const call = request ?? oldestCall(client, (each) => each.isOdd || id === undefined)
    if (call === undefined) return
    if (call.deed !== undefined && traceId !== undefined) call.deed.traceId = traceId
    owed.settle(call)
    client.endedCalls = ownSet(client.endedCalls).add(call.clientKey)
    if (client.endedCalls.size > FIXED.maxEndedCalls) forgetOldest(client.endedCalls)
  }

  /** What a client that is an agent says to a call, which is not in the tables of the kernel. */
  takeAnswer(client: Client, line: Envelope): void {
    this.#handOn(client, line)
  }

  takeFromWorker(worker: Worker, line: Envelope): void {
    this.#handOn(worker, line)
  }

  #handOn(peer: Peer, line: Envelope): void {
    const isOdd = line.has(FIELD.id) && line.isOdd(FIELD.id)
    this.#board.core.actions.push({
      do: 'call',
      from: callerOf(peer),
      bytes: line.copy(),
      ...(isOdd ? { oddId: line.idSpelling() } : {}),
    })
  }
}

function isPlainCall({ isAtGateway, isOdd }: Request): boolean {
  return isAtGateway && !isOdd
}

/** It is at a worker, or waits for one. */
function isElsewhere({ isAtGateway }: Request): boolean {
  return !isAtGateway
}

function oldestCall(client: Client, isMeant: (request: Request) => boolean): Request | undefined {
  let oldest: Request | undefined
  for (let request = client.newest; request !== undefined; request = request.older)
    if (request.isAtGateway && isMeant(request)) oldest = request
  return oldest
}
