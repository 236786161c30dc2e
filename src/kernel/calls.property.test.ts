/** Whatever happens, an exchange of the gateway has exactly one outcome, and what clients are owed adds up. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KernelRig } from '../../test/support/kernel-rig.ts'
import type { Action, WorkerGeneration, Write } from './events.ts'
import type { ClientId, Sharing, WorkerId } from './vocabulary.ts'

type Step =
  | { readonly kind: 'exchange'; readonly prefer: number }
  | { readonly kind: 'answer' | 'part' | 'cancel' | 'settle'; readonly nth: number }
  | { readonly kind: 'die'; readonly worker: number }
  | { readonly kind: 'wait'; readonly ms: number }

class World extends KernelRig {
  readonly outcomes = new Map<ClientId, number>()
  /** Exchanges that nobody listens to any more. */
  readonly left = new Set<ClientId>()
  readonly #ended = new Set<WorkerGeneration>()
  /** What each process has been asked, by the id it knows. */
  readonly #asked: (WorkerGeneration & { readonly id: unknown })[] = []
  #opened = 0
  #last = 0

  constructor(sharing: Sharing) {
    const limits = { maxOutputQueueBytes: 2_000, drainTimeoutMs: 1_000 }
    super({ pools: [{ instances: 2, maxInstances: 4, sharing }], limits, gateway: 'all' }, { isSlow: true })
    this.#openAll()
  }

  take(step: Step): void {
    if (step.kind === 'exchange') this.#exchange(step.prefer)
    else if (step.kind === 'wait') this.pass(step.ms)
    else if (step.kind === 'die') this.#exit(nthOf(this.#alive, step.worker))
    else if (step.kind === 'answer' || step.kind === 'part') this.#answer(step.nth, step.kind)
    else this.#leave(step.nth, step.kind === 'settle')
    this.#openAll()
  }

  /** All that falls due meanwhile falls due at once. */
  override pass(ms: number): void {
    this.nowMs += ms
    this.apply({ type: 'tick' })
    this.#openAll()
  }

  shutDown(): void {
    this.apply({ type: 'shutdown', at: 'leisure' })
    for (let i = 0; i < 30; i++) this.pass(1_000)
  }

  /** What was started opens behind all that was done with it, be it over by then. */
  #openAll(): void {
    while (this.#opened < this.started.length) {
      const { worker, generation } = this.started[this.#opened++]!
      this.apply({ type: 'worker-opened', worker, generation })
    }
  }

  get #alive(): WorkerGeneration[] {
    return this.started.filter((process) => !this.#ended.has(process))
  }

  #aliveAs({ worker, generation }: WorkerGeneration): WorkerGeneration | undefined {
    return this.#alive.find((process) => process.worker === worker && process.generation === generation)
  }

  #exchange(prefer: number): void {
    const client = ++this.#last as ClientId
    this.outcomes.set(client, 0)
    this.connects(client, { door: 'internal', pool: 'p', prefer: prefer as WorkerId })
    this.send(client, { id: client, method: 'p::m' })
  }

  #answer(nth: number, kind: 'answer' | 'part'): void {
    const asked = nthOf(this.#asked, nth)
    if (asked === undefined || this.#aliveAs(asked) === undefined) return
    if (kind === 'answer') this.#asked.splice(this.#asked.indexOf(asked), 1)
    const { worker, id } = asked
    this.says(worker, kind === 'answer' ? { id, result: 1 } : { id, partial: true, outputs: [] })
  }

  #leave(nth: number, isSettled: boolean): void {
    const open = [...this.outcomes.keys()].filter((client) => !this.left.has(client))
    const client = nthOf(open, nth)
    if (client === undefined) return
    this.left.add(client)
    this.goes(client, { isSettled })
  }

  #exit(process: WorkerGeneration | undefined): void {
    if (process === undefined) return
    this.#ended.add(process)
    this.dies(process.worker)
  }

  protected override performed(action: Action): void {
    if (action.do === 'exchange-failed') this.#count(action.client)
    if (action.do === 'close-worker' && action.how !== 'clear') this.#exit(this.#aliveAs(action))
  }

  #count(client: ClientId): void {
    if (!this.left.has(client)) this.outcomes.set(client, this.outcomes.get(client)! + 1)
  }

  protected override sent(to: Write, line: string): void {
    const message = JSON.parse(line)
    if (to.kind === 'client') {
      expect(message.id).toBe(to.id)
      if (message.partial !== true) this.#count(to.id)
    } else if (message.method === 'p::m') {
      this.#asked.push({ worker: to.id, generation: to.generation, id: message.id })
    }
  }

  get leftovers() {
    const { outstanding, clients, queue_bytes } = this.snapshot
    return { outstanding, clients, queue_bytes }
  }
}

function nthOf<One>(all: readonly One[], nth: number): One | undefined {
  return all[nth % Math.max(1, all.length)]
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
