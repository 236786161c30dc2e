import { expect, it } from 'vitest'
import { DIALECTS } from '../dialects/index.ts'
import { Bus } from './bus.ts'
import type { Action, BusEvent } from './events.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import type { ClientId, PoolSpec } from './vocabulary.ts'

const TOTAL_BYTES = 2_000_000
const HELD_BYTES = 150_000
const limits = { ...DEFAULT_LIMITS, maxTotalBufferBytes: TOTAL_BYTES }
const POOL: PoolSpec = {
  id: 'work',
  instances: 1,
  maxInstances: 1,
  sharing: 'shared',
  protocol: 'auto',
  era: 'auto',
  restart: 'always',
  startTimeoutMs: 60_000,
  hangTimeoutMs: 0,
  limits,
  trace: false,
  revision: '1',
}
const HOLDERS = Array.from({ length: 20 }, (_, index) => (index + 1) as ClientId)
const INNOCENT = 99 as ClientId

/** A bus whose clients begin long lines and do not end them. */
class Rig {
  readonly done: Action[] = []
  atWorker = ''
  readonly #bus = new Bus({ pools: [POOL], defaultPool: undefined, limits }, DIALECTS, () => 0.5)
  #nowMs = 1_000

  constructor() {
    this.#perform(this.#bus.start(this.#nowMs))
    for (const client of [...HOLDERS, INNOCENT]) this.apply({ type: 'client-opened', client, door: 'unix' })
    for (const client of HOLDERS) this.receive(client, `{"id":1,"method":"${'z'.repeat(HELD_BYTES)}`)
  }

  apply(event: BusEvent): void {
    this.#perform(this.#bus.apply(event, this.#nowMs))
    for (const write of this.#bus.takeWrites()) {
      if (write.kind === 'worker') this.atWorker += Buffer.concat(write.buffers).toString()
      this.#perform(this.#bus.wrote(write, 0, this.#nowMs))
    }
  }

  receive(client: ClientId, text: string): void {
    this.apply({ type: 'client-received', client, bytes: Buffer.from(text) })
  }

  pass(ms: number): void {
    for (const endMs = this.#nowMs + ms; this.#nowMs < endMs; this.apply({ type: 'tick' })) this.#nowMs += 100
  }

  who(deed: 'pause-client' | 'resume-client' | 'close-client'): ClientId[] {
    return this.done.flatMap((action) => (action.do === deed ? [action.client] : []))
  }

  #perform(actions: readonly Action[]): void {
    this.done.push(...actions)
    for (const action of actions) {
      if (action.do !== 'open-worker') continue
      this.apply({ type: 'worker-opened', worker: action.worker, generation: action.generation })
    }
  }
}

it('8.3 above max_total_buffer those who hold much are paused and who holds little is served', () => {
  const rig = new Rig()
  expect(rig.who('pause-client').length).toBeGreaterThan(5)
  rig.receive(INNOCENT, '{"id":1,"method":')
  rig.receive(INNOCENT, '"asked"}\n')
  expect(rig.who('pause-client')).not.toContain(INNOCENT)
  expect(rig.atWorker).toContain('"asked"')
})

it('8.3 above max_total_buffer as many of the largest are closed at once as it takes', () => {
  const rig = new Rig()
  const paused = rig.who('pause-client')
  rig.pass(limits.blockingTimeoutMs - 1_000)
  expect(rig.who('close-client')).toEqual([])
  rig.pass(2_000)
  const closed = rig.who('close-client')
  expect((HOLDERS.length - closed.length) * HELD_BYTES * 2).toBeLessThan(TOTAL_BYTES + HELD_BYTES)
  expect(closed.length).toBeLessThan(HOLDERS.length)
  expect(closed).not.toContain(INNOCENT)
  expect(rig.who('resume-client')).toEqual(paused.filter((client) => !closed.includes(client)))
})
