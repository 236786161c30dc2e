/** Contract 6.7, 7.2: workers that are one client's alone, as their clients come in crowds. */
import { expect, it } from 'vitest'
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

/** A bus with one pool, whose workers open when they are told to and note who asked them what. */
class Rig {
  readonly started: WorkerGeneration[] = []
  /** The ids that each worker was asked with, by its number. */
  readonly asked = new Map<number, number[]>()
  /** Reasons, by the id that was refused. */
  readonly refused = new Map<number, string>()
  nowMs = 1_000
  readonly #bus = new Bus({ pools: [POOL], defaultPool: undefined, limits: POOL.limits }, DIALECTS, () => 0.5)

  constructor() {
    this.#perform(this.#bus.start(this.nowMs))
  }

  comes(client: number): void {
    this.apply({ type: 'client-opened', client: client as ClientId, door: 'unix' })
  }

  ask(client: number, id: number): void {
    const bytes = Buffer.from(`{"id":${id},"method":"m"}\n`)
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
