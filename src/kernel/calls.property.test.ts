/** Whatever happens, an exchange of the gateway has exactly one outcome, and what clients are owed adds up. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DIALECTS } from '../dialects/index.ts'
import { Bus } from './bus.ts'
import type { Action, BusEvent } from './events.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import type { ClientId, PoolSpec, Sharing, WorkerId } from './vocabulary.ts'

type Step =
  | { readonly kind: 'exchange'; readonly prefer: number }
  | { readonly kind: 'answer' | 'part' | 'cancel' | 'settle'; readonly nth: number }
  | { readonly kind: 'die'; readonly worker: number }
  | { readonly kind: 'wait'; readonly ms: number }

class World {
  readonly outcomes = new Map<ClientId, number>()
  /** Exchanges that nobody listens to any more. */
  readonly left = new Set<ClientId>()
  readonly #bus: Bus
  readonly #alive = new Map<WorkerId, number>()
  /** What each process has been asked, by the id it knows. */
  readonly #asked: { worker: WorkerId; generation: number; id: unknown }[] = []
  readonly #events: BusEvent[] = []
  #nowMs = 1_000
  #last = 0

  constructor(sharing: Sharing) {
    const limits = { ...DEFAULT_LIMITS, maxOutputQueueBytes: 2_000, drainTimeoutMs: 1_000 }
    const pool: PoolSpec = {
      id: 'p',
      instances: 2,
      maxInstances: 4,
      sharing,
      protocol: 'plain',
      era: 'auto',
      restart: 'always',
      startTimeoutMs: 60_000,
      hangTimeoutMs: 0,
      limits,
      trace: false,
      revision: '1',
    }
    this.#bus = new Bus({ pools: [pool], defaultPool: undefined, limits, gateway: 'all' }, DIALECTS, () => 0.5)
    this.#perform(this.#bus.start(this.#nowMs))
    this.#drain()
  }

  take(step: Step): void {
    if (step.kind === 'exchange') this.#exchange(step.prefer)
    else if (step.kind === 'wait') this.pass(step.ms)
    else if (step.kind === 'die') this.#die(step.worker)
    else if (step.kind === 'answer' || step.kind === 'part') this.#answer(step.nth, step.kind)
    else this.#leave(step.nth, step.kind === 'settle')
    this.#drain()
  }

  pass(ms: number): void {
    this.#nowMs += ms
    this.#tell({ type: 'tick' })
    this.#drain()
  }

  shutDown(): void {
    this.#tell({ type: 'shutdown', at: 'leisure' })
    for (let i = 0; i < 30; i++) this.pass(1_000)
  }

  #exchange(prefer: number): void {
    const client = ++this.#last as ClientId
    this.outcomes.set(client, 0)
    this.#tell({ type: 'client-opened', client, door: 'internal', pool: 'p', prefer: prefer as WorkerId })
    const line = `${JSON.stringify({ id: Number(client), method: 'p::m' })}\n`
    this.#tell({ type: 'client-received', client, bytes: Buffer.from(line) })
  }

  #answer(nth: number, kind: 'answer' | 'part'): void {
    const asked = this.#asked[nth % Math.max(1, this.#asked.length)]
    if (asked === undefined || this.#alive.get(asked.worker) !== asked.generation) return
    if (kind === 'answer') this.#asked.splice(this.#asked.indexOf(asked), 1)
    const { worker, generation, id } = asked
    const message = kind === 'answer' ? { id, result: 1 } : { id, partial: true, outputs: [] }
    this.#tell({ type: 'worker-received', worker, generation, bytes: Buffer.from(`${JSON.stringify(message)}\n`) })
  }

  #leave(nth: number, isSettled: boolean): void {
    const open = [...this.outcomes.keys()].filter((client) => !this.left.has(client))
    const client = open[nth % Math.max(1, open.length)]
    if (client === undefined) return
    this.left.add(client)
    this.#tell({ type: 'client-closed', client, isSettled })
  }

  #die(nth: number): void {
    const all = [...this.#alive]
    const [worker, generation] = all[nth % Math.max(1, all.length)] ?? []
    if (worker === undefined || generation === undefined) return
    this.#exit(worker, generation)
  }

  #exit(worker: WorkerId, generation: number): void {
    if (this.#alive.get(worker) !== generation) return
    this.#alive.delete(worker)
    this.#tell({ type: 'worker-silent', worker, generation, pipe: 'stdout' })
    this.#tell({ type: 'worker-ended', worker, generation, isClean: false, how: { exitCode: 1, signal: null } })
  }

  #tell(event: BusEvent): void {
    this.#perform(this.#bus.apply(event, this.#nowMs))
  }

  #perform(actions: readonly Action[]): void {
    for (const action of actions) {
      if (action.do === 'exchange-failed') this.#count(action.client)
      if (action.do === 'open-worker') {
        const { worker, generation } = action
        this.#alive.set(worker, generation)
        this.#events.push({ type: 'worker-opened', worker, generation })
      }
      if (action.do === 'close-worker' && action.how !== 'clear') this.#exit(action.worker, action.generation)
    }
  }

  #count(client: ClientId): void {
    if (!this.left.has(client)) this.outcomes.set(client, this.outcomes.get(client)! + 1)
  }

  /** Everything that is queued is read at once. */
  #drain(): void {
    for (let event = this.#events.shift(); event !== undefined; event = this.#events.shift()) this.#tell(event)
    for (let writes = this.#bus.takeWrites(); writes.length > 0; writes = this.#bus.takeWrites()) {
      for (const write of writes) {
        const lines = Buffer.concat(write.buffers).toString().split('\n').filter(Boolean)
        this.#perform(this.#bus.wrote(write, 0, this.#nowMs))
        for (const line of lines) this.#read(write, JSON.parse(line))
      }
    }
  }

  #read(peer: { kind: string; id: number; generation?: number }, message: Record<string, unknown>): void {
    if (peer.kind === 'client') {
      expect(message['id']).toBe(peer.id)
      if (message['partial'] !== true) this.#count(peer.id as ClientId)
    } else if (message['method'] === 'p::m') {
      this.#asked.push({ worker: peer.id as WorkerId, generation: peer.generation!, id: message['id'] })
    }
  }

  get leftovers() {
    const { outstanding, clients, queue_bytes } = this.#bus.snapshot()
    return { outstanding, clients, queue_bytes }
  }
}

const nth = fc.nat({ max: 20 })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('exchange' as const), prefer: fc.nat({ max: 3 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('answer' as const, 'part' as const), nth }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('cancel' as const, 'settle' as const), nth }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('die' as const), worker: nth }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 200, 11_000, 31_000) }),
  },
)

test.each<Sharing>(['shared', 'lease', 'isolated'])(
  '%s: one outcome for each exchange, none left behind',
  (sharing) => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const world = new World(sharing)
        for (const each of steps) world.take(each)
        world.shutDown()
        for (const [client, outcomes] of world.outcomes) {
          if (!world.left.has(client)) expect([client, outcomes]).toEqual([client, 1])
        }
        expect(world.leftovers).toEqual({ outstanding: 0, clients: 0, queue_bytes: 0 })
      }),
      { numRuns: 150 },
    )
  },
)
