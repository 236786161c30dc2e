/**
 * Messages that are not routed but handed to the gateway: `agent::method`, bare `help`, the bus's own methods (spec N1).
 *
 * The kernel knows no gateway: it counts what a client is owed and hands on a copy of the line. Whoever answers does so by
 * an event. Invariant: a request that was handed on stays in its client's count until its final reply.
 */
import type { Envelope, IdKey } from '../wire/envelope.ts'
import { FIELD } from '../wire/fields.ts'
import type { CallerId } from './events.ts'
import type { Client, Peer, Worker } from './peers.ts'
import type { Switchboard } from './switchboard.ts'

const COLON = 0x3a
const BACKSLASH = 0x5c
const HELP = Buffer.from('help')
const CANCELS: ReadonlySet<string> = new Set(['notifications/cancelled', '$/cancel_request'])

/** A call of the client is answered or given up. */
export function endCall(client: Client, id: IdKey | undefined): void {
  client.pendingCount--
  const open = id === undefined ? undefined : client.calls.get(id)
  if (open === undefined) return
  if (open === 1) client.calls.delete(id!)
  else client.calls.set(id!, open - 1)
}

export function callerOf(peer: Peer): CallerId {
  if (peer.kind === 'client') return { kind: 'client', client: peer.id, door: peer.door }
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

  /** The message of a client at hand is a call of an agent. */
  isAgentNamed(): boolean {
    const { core, envelope } = this.#board
    return core.spec.gateway === 'all' && (isHelp(envelope) || hasNamespace(envelope))
  }

  /** The message of a worker at hand is a call. */
  isNamed(): boolean {
    const { core, envelope } = this.#board
    if (!hasNamespace(envelope)) return false
    return core.spec.gateway === 'all' || envelope.text(FIELD.method)!.startsWith('bus::')
  }

  /** The line at hand has an id and says nothing that JSON-RPC knows: it may still be an answer to the gateway. */
  isLoose(): boolean {
    const { envelope } = this.#board
    if (!this.isOn || envelope.has(FIELD.method)) return false
    return !envelope.has(FIELD.result) && !envelope.has(FIELD.error) && envelope.idSpelling() !== 'null'
  }

  takeFromClient(client: Client, isRequest: boolean): void {
    const { core } = this.#board
    if (isRequest && core.phase !== 'running') return this.#board.refuse(client, true, 'shutting_down')
    const limit = core.spec.limits.maxPendingPerClient
    if (isRequest && client.pendingCount >= limit)
      return this.#board.refuse(client, true, 'too_many_pending', { limit })
    if (isRequest) this.#owe(client)
    client.isCaller = true
    this.#handOn(client)
  }

  /** A call whose id may be respelled is known to the gateway by another and cannot be cancelled. */
  #owe(client: Client): void {
    const { envelope } = this.#board
    client.pendingCount++
    if (envelope.isOdd(FIELD.id)) return
    const key = envelope.key(FIELD.id)!
    client.calls.set(key, (client.calls.get(key) ?? 0) + 1)
  }

  /** The notification at hand cancels a call of this client, in whichever protocol's words. */
  takeCancel(client: Client): boolean {
    const { core, envelope } = this.#board
    if (client.calls.size === 0 || !CANCELS.has(envelope.text(FIELD.method)!)) return false
    const id = envelope.key(FIELD.requestId)
    if (id === undefined || typeof id === 'bigint' || !client.calls.has(id)) return false
    core.actions.push({ do: 'cancel-call', from: callerOf(client), id })
    return true
  }

  takeFromWorker(worker: Worker): void {
    this.#handOn(worker)
  }

  #handOn(peer: Peer): void {
    const { core, envelope } = this.#board
    const { bytes, start, end } = envelope
    const isOdd = envelope.has(FIELD.id) && envelope.isOdd(FIELD.id)
    core.actions.push({
      do: 'call',
      from: callerOf(peer),
      bytes: Buffer.from(bytes.subarray(start, end)),
      ...(isOdd ? { oddId: envelope.idSpelling() } : {}),
    })
  }
}

function hasNamespace(envelope: Envelope): boolean {
  const { bytes } = envelope
  const end = envelope.endOf(FIELD.method) - 1
  for (let i = envelope.startOf(FIELD.method) + 1; i < end; i++) {
    if (bytes[i] === BACKSLASH) return envelope.text(FIELD.method)!.includes('::')
    if (bytes[i] === COLON && bytes[i + 1] === COLON) return true
  }
  return false
}

function isHelp(envelope: Envelope): boolean {
  const start = envelope.startOf(FIELD.method) + 1
  const length = envelope.endOf(FIELD.method) - 1 - start
  if (length < HELP.length) return false
  // A spelling with escapes is longer.
  if (length > HELP.length) return length <= 6 * HELP.length && envelope.text(FIELD.method) === 'help'
  return HELP.every((byte, index) => envelope.bytes[start + index] === byte)
}
