/**
 * Where messages wait for a worker that is coming, in order and for a while (contract 7.2).
 *
 * A message waits only while its pool has no worker for it. Everybody is served again from the front whenever a worker
 * opens, so nobody is overtaken.
 */
import { FIXED } from './limits.ts'
import type { Client } from './peers.ts'
import type { Pool, Waiting } from './pools.ts'
import type { Switchboard } from './switchboard.ts'

export class WaitingRoom {
  readonly #board: Switchboard
  readonly #route: (client: Client, isRequest: boolean) => void

  constructor(board: Switchboard, route: (client: Client, isRequest: boolean) => void) {
    this.#board = board
    this.#route = route
  }

  /** No worker is ready for the message at hand. */
  enter(client: Client, pool: Pool, isRequest: boolean): void {
    const { core, flow } = this.#board
    const { isLazy, startTimeoutMs, limits } = pool.spec
    if (core.phase === 'running') this.#board.supervisor.wake(pool)
    if (!pool.isExpectingWorker || core.phase !== 'running') {
      return this.#board.refuse(client, isRequest, 'no_worker', detailOf(pool))
    }
    const limitBytes = limits.maxOutputQueueBytes
    // Nobody can be paused for an exchange of the gateway's, nor for a start on demand, which may take long.
    if ((client.isInternal || isLazy) && pool.waitingBytes > limitBytes)
      return this.#board.refuse(client, isRequest, 'overloaded', { pool: pool.spec.id })
    const line = this.#board.copyLine()
    const waitMs = isLazy ? startTimeoutMs : FIXED.workerWaitMs
    pool.waiting.push({ client, line, isRequest, untilMs: core.nowMs + waitMs })
    pool.waitingBytes += line.length
    if (isRequest) client.pendingCount++
    if (pool.waiting.length === 1) this.#arm(pool)
    if (!isLazy && pool.waitingBytes > limitBytes && client.blockedOn === undefined) flow.block(client, pool.gate)
  }

  /** A worker of the pool is there: those who waited go first, in order. */
  serve(pool: Pool): void {
    const { waiting } = pool
    if (waiting.length === 0) return
    // The gate stays shut meanwhile: what its sources have behind it comes after what waits here.
    pool.waiting = []
    pool.waitingBytes = 0
    for (const { client, line, isRequest } of waiting) {
      if (isRequest) client.pendingCount--
      this.#board.envelope.read(line, 0, line.length - 1)
      this.#route(client, isRequest)
    }
    this.#set(pool, pool.waiting)
  }

  /** Nobody will come: those who wait are told at once. */
  dismiss(pool: Pool): void {
    this.#fail(pool, () => true)
  }

  forget(client: Client): void {
    for (const pool of this.#board.core.everyPool) {
      if (!pool.waiting.some((waiting) => waiting.client === client)) continue
      this.#set(
        pool,
        pool.waiting.filter((waiting) => waiting.client !== client),
      )
    }
  }

  #arm(pool: Pool): void {
    const first = pool.waiting[0]
    if (first === undefined) return
    const { core } = this.#board
    core.timers.set(first.untilMs, () => {
      this.#fail(pool, (waiting) => waiting.untilMs <= core.nowMs)
      this.#arm(pool)
    })
  }

  #fail(pool: Pool, isOver: (waiting: Waiting) => boolean): void {
    const over = pool.waiting.filter(isOver)
    this.#set(
      pool,
      pool.waiting.filter((waiting) => !isOver(waiting)),
    )
    const { core, envelope } = this.#board
    for (const { client, line, isRequest } of over) {
      if (!isRequest) {
        core.drop('no_worker')
        continue
      }
      client.pendingCount--
      envelope.read(line, 0, line.length - 1)
      const reason = core.phase === 'running' ? 'no_worker' : 'shutting_down'
      this.#board.fail(client, envelope.idSpelling(), reason, detailOf(pool))
    }
  }

  #set(pool: Pool, waiting: Waiting[]): void {
    pool.waiting = waiting
    pool.waitingBytes = waiting.reduce((bytes, { line }) => bytes + line.length, 0)
    if (pool.waitingBytes * 2 < pool.spec.limits.maxOutputQueueBytes || waiting.length === 0) {
      this.#board.flow.release(pool.gate)
    }
  }
}

function detailOf({ spec, workers }: Pool): Record<string, unknown> {
  const why = workers.find((worker) => worker.lastError !== undefined)?.lastError
  return { pool: spec.id, ...(why === undefined ? {} : { why }) }
}
