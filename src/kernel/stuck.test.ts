import { expect, it } from 'vitest'
import { Bus } from './bus.ts'
import type { Action, BusEvent } from './events.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import type { ClientId, PoolSpec } from './vocabulary.ts'

const QUICK_MS = 1_000
const CLIENT = 1 as ClientId
const PATIENT: PoolSpec = {
  id: 'patient',
  instances: 1,
  maxInstances: 1,
  sharing: 'shared',
  protocol: 'plain',
  era: 'auto',
  restart: 'never',
  startTimeoutMs: 60_000,
  hangTimeoutMs: 0,
  limits: { ...DEFAULT_LIMITS, maxOutputQueueBytes: 100 },
  trace: false,
  revision: '1',
}
const QUICK: PoolSpec = {
  ...PATIENT,
  id: 'quick',
  revision: '2',
  limits: { ...PATIENT.limits, backpressureTimeoutMs: QUICK_MS },
}

/** A bus with a worker in each pool that reads nothing; what is ended is kept with its time. */
class Rig {
  nowMs = 1_000
  readonly endedAtMs = new Map<unknown, number>()
  readonly #bus = new Bus({ pools: [PATIENT, QUICK], defaultPool: 'quick', limits: DEFAULT_LIMITS }, [], () => 0.5)

  constructor() {
    this.#perform(this.#bus.start(this.nowMs))
    for (const client of [CLIENT, CLIENT + 1] as ClientId[]) this.apply({ type: 'client-opened', client, door: 'unix' })
  }

  apply(event: BusEvent): void {
    this.#perform(this.#bus.apply(event, this.nowMs))
    for (const write of this.#bus.takeWrites()) {
      const bytes = Buffer.concat(write.buffers).length
      this.#perform(this.#bus.wrote(write, write.kind === 'worker' ? bytes : 0, this.nowMs))
    }
  }

  fill(client: number, pool: string): void {
    const line = JSON.stringify({ id: 1, method: 'm', pool, params: 'x'.repeat(200) })
    this.apply({ type: 'client-received', client: client as ClientId, bytes: Buffer.from(`${line}\n`) })
  }

  passUntil(nowMs: number): void {
    for (let dueMs = this.#bus.nextDeadlineMs(); dueMs !== undefined && dueMs <= nowMs; ) {
      this.nowMs = dueMs
      this.apply({ type: 'tick' })
      dueMs = this.#bus.nextDeadlineMs()
    }
    this.nowMs = nowMs
  }

  #perform(actions: readonly Action[]): void {
    for (const action of actions) {
      if (action.do === 'log' && action.text === 'worker is ended') this.endedAtMs.set(action.about['pool'], this.nowMs)
      if (action.do !== 'open-worker') continue
      this.apply({ type: 'worker-opened', worker: action.worker, generation: action.generation })
    }
  }
}

it('8.3 a worker has the time of its pool, however long others have been full and whatever they are allowed', () => {
  const rig = new Rig()
  rig.fill(CLIENT, 'patient')
  rig.passUntil(rig.nowMs + QUICK_MS / 2)
  const filledAtMs = rig.nowMs
  rig.fill(CLIENT + 1, 'quick')
  rig.passUntil(filledAtMs + 2 * QUICK_MS)
  expect([...rig.endedAtMs.keys()]).toEqual(['quick'])
  const hadMs = rig.endedAtMs.get('quick')! - filledAtMs
  expect(Math.abs(hadMs - QUICK_MS)).toBeLessThanOrEqual(QUICK_MS / 8)
})
