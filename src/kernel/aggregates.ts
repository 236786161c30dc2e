/**
 * Messages for a pool that is made of others (contract 13): they are handed on, and what comes back is told to the client.
 *
 * The kernel knows no names of tools and no lists. It counts what the client is owed; whoever takes the message answers
 * it by an event, or passes it to a member as an internal client that speaks for this one. Invariant: a request that was
 * handed on stays in its client's count until it is answered, cancelled, or its client has gone.
 */
import type { Envelope } from '../wire/envelope.ts'
import type { BusEvent } from './events.ts'
import { isReason } from './faults.ts'
import type { Request } from './owed.ts'
import type { Client } from './peers.ts'
import type { Route } from './route.ts'
import type { Switchboard } from './switchboard.ts'

type Reply = Extract<BusEvent, { type: 'member-reply' }>

export class Aggregates {
  readonly #board: Switchboard

  constructor(board: Switchboard) {
    this.#board = board
  }

  take({ client, line, pool, request }: Route): void {
    if (request !== undefined) request.isAtAggregate = true
    client.usesAggregate = true
    const { actions } = this.#board.core
    const row = request?.serial
    actions.push({ do: 'aggregate', client: client.id, pool: pool.spec.id, bytes: line.copy(), row })
  }

  /** What a member asked, if it did, is known where the question came from. */
  takeAnswer(client: Client, line: Envelope): void {
    const { actions } = this.#board.core
    actions.push({ do: 'aggregate', client: client.id, pool: undefined, bytes: line.copy(), row: undefined })
  }

  /** A client that is told more than it reads holds up the workers that tell it, and is not read from itself (contract 8.3). */
  reply(client: Client, { bytes, row, outcome, via, hasBatches }: Reply): void {
    const { core, flow, host } = this.#board
    if (hasBatches !== undefined) client.hasBatches = hasBatches
    const request = row === undefined ? undefined : rowOf(client, row)
    if (row !== undefined && request === undefined) return core.drop('late_answer')
    if (request !== undefined && outcome !== undefined) request.outcome = outcome
    if (request !== undefined && outcome !== undefined && isReason(outcome))
      flow.announceFault(client, request.idSpelling, outcome)
    if (request !== undefined) core.owed.settle(request)
    flow.sendLine(client, bytes)
    if (client.outbox.isFull) this.#holdBack(client, via)
    if (request !== undefined) host.maybeFinish(client)
  }

  #holdBack(client: Client, via: Reply['via']): void {
    const { core, flow } = this.#board
    const delegate = via === undefined ? undefined : core.exchanges.get(via)
    for (const { home } of delegate?.introductions.values() ?? []) if (home?.isCurrent) flow.fill(home.worker, client)
    flow.fill(client, client)
  }

  waive(client: Client, row: number): void {
    const request = rowOf(client, row)
    if (request !== undefined) this.#board.waive(request)
  }
}

function rowOf(client: Client, serial: number): Request | undefined {
  for (let request = client.newest; request !== undefined; request = request.older)
    if (request.serial === serial) return request.isAtAggregate ? request : undefined
  return undefined
}
