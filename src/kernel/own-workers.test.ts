/** Contract 6.6, 6.7, 7.2: workers that are one client's alone, as their clients come in crowds, and who serves in their place. */
import { expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { DIALECTS } from '../dialects/index.ts'
import { Bus } from './bus.ts'
import type { Action, BusEvent, WorkerGeneration } from './events.ts'
import { DEFAULT_LIMITS, FIXED } from './limits.ts'
import type { ClientId, PoolSpec } from './vocabulary.ts'

const POOL: PoolSpec = {
  id: 'p',
  instances: 0,
  maxInstances: 10_000,
  sharing: 'isolated',
  protocol: 'plain',
  era: 'auto',
  restart: 'never',
  startTimeoutMs: 60_000,
  hangTimeoutMs: 0,
  limits: { ...DEFAULT_LIMITS, maxClients: 10_000 },
  trace: false,
  revision: '1',
}

/** A bus whose messages go to the first pool, and whose workers open when they are told to and note who asked them what. */
class Rig {
  readonly started: WorkerGeneration[] = []
  /** The ids that each worker was asked with, by its number. */
  readonly asked = new Map<number, number[]>()
  /** Reasons, by the id that was refused. */
  readonly refused = new Map<number, string>()
  nowMs = 1_000
  readonly #bus: Bus

  constructor(pools: readonly PoolSpec[] = [POOL]) {
    this.#bus = new Bus({ pools, defaultPool: pools[0]!.id, limits: POOL.limits }, DIALECTS, () => 0.5)
    this.#perform(this.#bus.start(this.nowMs))
  }

  comes(client: number): void {
    this.apply({ type: 'client-opened', client: client as ClientId, door: 'unix' })
  }

  ask(client: number, id: number, session?: string): void {
    const bytes = Buffer.from(`${JSON.stringify({ id, method: 'm', sessionId: session })}\n`)
    this.apply({ type: 'client-received', client: client as ClientId, bytes })
  }

  open(index: number): void {
    this.apply({ type: 'worker-opened', ...this.started[index]!, facts: {} })
  }

  passUntil(endMs: number): void {
    while (this.nowMs < endMs) {
      this.nowMs = Math.min(endMs, Math.max(this.nowMs + 1, this.#bus.nextDeadlineMs() ?? endMs))
      this.apply({ type: 'tick' })
    }
  }

  apply(event: BusEvent): void {
    this.#perform(this.#bus.apply(event, this.nowMs))
    for (const write of this.#bus.takeWrites()) {
      const lines = Buffer.concat(write.buffers).toString().split('\n').filter(Boolean)
      this.#perform(this.#bus.wrote(write, 0, this.nowMs))
      for (const { id, error } of lines.map((line) => JSON.parse(line)))
        if (write.kind === 'worker') this.asked.set(write.id, [...(this.asked.get(write.id) ?? []), id])
        else this.refused.set(id, error.data.reason)
    }
  }

  #perform(actions: readonly Action[]): void {
    for (const action of actions)
      if (action.do === 'open-worker') this.started.push({ worker: action.worker, generation: action.generation })
  }
}

it('whoever waits for a worker of its own is told after ten seconds, though others have got theirs meanwhile', () => {
  const rig = new Rig()
  const beganMs = rig.nowMs
  for (const client of [1, 2]) {
    rig.comes(client)
    rig.ask(client, client)
  }
  rig.passUntil(beganMs + FIXED.workerWaitMs - 1)
  rig.open(0)
  expect([...rig.asked.values(), ...rig.refused]).toEqual([[1]])
  rig.passUntil(beganMs + FIXED.workerWaitMs)
  expect([...rig.refused]).toEqual([[2, 'no_worker']])
})

it('a crowd is served in the order in which it came, everybody with all it has said', () => {
  const rig = new Rig()
  const crowd = Array.from({ length: 300 }, (_, index) => index + 1)
  for (const client of crowd) {
    rig.comes(client)
    rig.ask(client, client)
  }
  for (const client of crowd) rig.ask(client, 1_000 + client)
  expect(rig.started).toHaveLength(crowd.length)
  for (const client of crowd) {
    rig.open(client - 1)
    expect(rig.asked.size).toBe(client)
  }
  expect([...rig.asked.values()]).toEqual(crowd.map((client) => [client, 1_000 + client]))
})

/** One worker that is its client's alone, and one for everybody else in its place. */
const BESIDE: readonly PoolSpec[] = [
  { ...POOL, maxInstances: 1, restart: 'always', fallback: 'q' },
  { ...POOL, id: 'q', instances: 1, sharing: 'shared' },
]

it('who waits for a worker that another client gets is served elsewhere as soon as that is known', () => {
  verifies('6.6-fallback', '6.7.2-max')
  const rig = new Rig(BESIDE)
  const [other, own] = [0, 1]
  rig.open(other)
  for (const client of [1, 2]) {
    rig.comes(client)
    rig.ask(client, client)
  }
  rig.open(own)
  expect([...rig.asked]).toEqual([
    [rig.started[own]!.worker, [1]],
    [rig.started[other]!.worker, [2]],
  ])
})

it('who has waited too long is served elsewhere', () => {
  verifies('6.6-fallback')
  const rig = new Rig(BESIDE)
  rig.open(0)
  rig.comes(1)
  rig.ask(1, 1)
  rig.passUntil(rig.nowMs + FIXED.workerWaitMs)
  expect([...rig.asked, ...rig.refused]).toEqual([[rig.started[0]!.worker, [1]]])
})

it('what names a session stays behind what names it too and waits elsewhere', () => {
  verifies('6.4-order')
  const rig = new Rig(BESIDE)
  rig.comes(1)
  rig.ask(1, 1, 's')
  // It waits for the other pool from now on.
  rig.passUntil(rig.nowMs + FIXED.workerWaitMs)
  rig.open(1)
  rig.ask(1, 2, 's')
  rig.ask(1, 3, 'another')
  rig.open(0)
  expect([...rig.asked]).toEqual([
    [rig.started[1]!.worker, [3]],
    [rig.started[0]!.worker, [1, 2]],
  ])
})
