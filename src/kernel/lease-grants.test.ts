import { expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { DIALECTS } from '../dialects/index.ts'
import { Bus } from './bus.ts'
import type { Action, BusEvent, WorkerGeneration } from './events.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import type { ClientId, PoolSpec, WorkerId } from './vocabulary.ts'

// biome-ignore lint/suspicious/noExplicitAny: what a peer says has no type; tests look into it
type Message = any

const LEASED: PoolSpec = {
  id: 'leased',
  instances: 2,
  maxInstances: 2,
  sharing: 'lease',
  protocol: 'auto',
  era: 'auto',
  restart: 'always',
  startTimeoutMs: 60_000,
  hangTimeoutMs: 0,
  limits: DEFAULT_LIMITS,
  trace: false,
  revision: '1',
}
const BACKOFF_MS = 1_000
const [ANNA, BERT, CARL, DORA] = [1, 2, 3, 4] as ClientId[]

/** Two leased workers and whoever asks them; what each peer was sent is kept. */
class Rig {
  readonly heard = new Map<string, Message[]>()
  readonly #bus = new Bus({ pools: [LEASED], defaultPool: undefined, limits: DEFAULT_LIMITS }, DIALECTS, () => 0.5)
  readonly #processes = new Map<WorkerId, WorkerGeneration>()
  #nowMs = 1_000

  constructor() {
    this.#perform(this.#bus.start(this.#nowMs))
    for (const client of [ANNA, BERT, CARL, DORA]) this.apply({ type: 'client-opened', client: client!, door: 'unix' })
  }

  apply(event: BusEvent): void {
    this.#perform(this.#bus.apply(event, this.#nowMs))
    for (const write of this.#bus.takeWrites()) {
      const lines = Buffer.concat(write.buffers).toString().split('\n').filter(Boolean)
      this.#at(`${write.kind} ${write.id}`).push(...lines.map((line) => JSON.parse(line)))
      this.#perform(this.#bus.wrote(write, 0, this.#nowMs))
    }
  }

  ask(client: ClientId | undefined, id: string, sessionId?: string): void {
    this.#say(client, { id, method: 'work', sessionId })
  }

  /** The session is named where some clients name it. */
  askInside(client: ClientId | undefined, id: string, sessionId: string): void {
    this.#say(client, { id, method: 'work', params: { sessionId } })
  }

  askInBoth(client: ClientId | undefined, id: string, sessionId: string, other: string): void {
    this.#say(client, { id, method: 'work', sessionId, params: { sessionId: other } })
  }

  #say(client: ClientId | undefined, message: Message): void {
    this.apply({ type: 'client-received', client: client!, bytes: Buffer.from(`${JSON.stringify(message)}\n`) })
  }

  /** The worker that has got the request; undefined while it waits. */
  takerOf(id: string): WorkerId | undefined {
    return [...this.#processes.keys()].find((worker) => this.#at(`worker ${worker}`).some((line) => line.id === id))
  }

  answer(id: string): void {
    const bytes = Buffer.from(`${JSON.stringify({ id, result: {} })}\n`)
    this.apply({ type: 'worker-received', ...this.#processes.get(this.takerOf(id)!)!, bytes })
  }

  /** Every pool has changed: new workers beside the old ones. */
  reload(): void {
    const pools = [{ ...LEASED, revision: '2' }]
    this.apply({ type: 'reload', spec: { pools, defaultPool: undefined, limits: DEFAULT_LIMITS } })
  }

  dies(worker: WorkerId): void {
    const of = this.#processes.get(worker)!
    this.apply({ type: 'worker-ended', ...of, isClean: false, how: { exitCode: null, signal: 'SIGKILL' } })
    this.apply({ type: 'worker-silent', ...of, pipe: 'stdout' })
    this.#nowMs += BACKOFF_MS
    this.apply({ type: 'tick' })
  }

  reasonOf(client: ClientId | undefined, id: string): string | undefined {
    return this.#at(`client ${client}`).find((line) => line.id === id)?.error?.data.reason
  }

  #at(peer: string): Message[] {
    if (!this.heard.has(peer)) this.heard.set(peer, [])
    return this.heard.get(peer)!
  }

  #perform(actions: readonly Action[]): void {
    for (const action of actions) {
      if (action.do !== 'open-worker') continue
      const of = { worker: action.worker, generation: action.generation }
      this.#processes.set(action.worker, of)
      this.apply({ type: 'worker-opened', ...of })
    }
  }
}

it('6.7 a lease that was granted for a session that is lost goes on to whoever waits next', () => {
  const rig = new Rig()
  rig.ask(ANNA, 'a1', 'hers')
  rig.ask(BERT, 'b1')
  rig.ask(CARL, 'c1')
  rig.ask(ANNA, 'a2', 'hers')
  const hers = rig.takerOf('a1')!
  rig.dies(hers)
  expect(rig.takerOf('c1')).toBe(hers)
  rig.answer('c1')
  expect(rig.reasonOf(ANNA, 'a2')).toBe('session_lost')
  rig.ask(DORA, 'd1')
  expect(rig.takerOf('d1')).toBe(hers)
})

it('6.4 what names a session waits for the worker for which an earlier message of it waits, and loses it with that one', () => {
  verifies('6.4-order')
  const rig = new Rig()
  rig.ask(ANNA, 'a1', 'hers')
  rig.ask(BERT, 'b1')
  rig.ask(CARL, 'c1')
  rig.ask(ANNA, 'a2', 'hers')
  rig.ask(ANNA, 'a3', 'hers')
  rig.askInside(ANNA, 'a4', 'hers')
  rig.dies(rig.takerOf('a1')!)
  rig.answer('c1')
  expect(rig.reasonOf(ANNA, 'a2')).toBe('session_lost')
  const { heard } = rig
  const heardByTaker = heard.get(`worker ${rig.takerOf('a4')}`)!.map(({ id }) => id)
  expect(heardByTaker.filter((id) => id.startsWith('a')).slice(-2)).toEqual(['a3', 'a4'])
})

it('6.4 a session that has a worker is served there, whatever else an earlier message names that waits elsewhere', () => {
  verifies('6.4-order')
  const rig = new Rig()
  for (const [id, session] of [
    ['a1', 'one'],
    ['a2', 'two'],
  ] as const) {
    rig.ask(ANNA, id, session)
    rig.answer(id)
  }
  const [one, two] = [rig.takerOf('a1'), rig.takerOf('a2')!]
  expect(one).not.toBe(two)
  rig.ask(BERT, 'b1')
  rig.ask(CARL, 'c1')
  rig.askInBoth(ANNA, 'a3', 'one', 'two')
  rig.askInside(ANNA, 'a4', 'two')
  rig.ask(ANNA, 'a5', 'two')
  rig.answer(rig.takerOf('b1') === two ? 'b1' : 'c1')
  const heard = rig.heard.get(`worker ${two}`)!.map(({ id }) => id)
  expect(heard.slice(-2)).toEqual(['a4', 'a5'])
})

it('6.7 a lease that was granted to a client whose message another worker of its own took goes on', () => {
  const rig = new Rig()
  rig.ask(ANNA, 'a1', 'hers')
  rig.ask(BERT, 'b1')
  rig.ask(CARL, 'c1', 'his')
  rig.ask(ANNA, 'a2')
  rig.answer('b1')
  const other = rig.takerOf('c1')!
  expect(other).not.toBe(rig.takerOf('a1'))
  rig.answer('c1')
  expect(rig.takerOf('a2')).toBeDefined()
  rig.ask(DORA, 'd1')
  const free = [rig.takerOf('a1'), other].find((worker) => worker !== rig.takerOf('a2'))
  expect([free, undefined]).toContain(rig.takerOf('d1'))
  rig.answer('a2')
  expect(rig.takerOf('d1')).toBeDefined()
})

it('7.5 what waits for the worker of its session goes on waiting there when a reload retires it', () => {
  const rig = new Rig()
  rig.ask(ANNA, 'a1', 'hers')
  const hers = rig.takerOf('a1')!
  rig.ask(BERT, 'b1')
  rig.answer('a1')
  rig.ask(CARL, 'c1')
  expect(rig.takerOf('c1')).toBe(hers)
  rig.ask(ANNA, 'a2', 'hers')
  expect(rig.takerOf('a2')).toBeUndefined()
  rig.reload()
  rig.answer('c1')
  expect(rig.takerOf('a2')).toBe(hers)
})

it('7.5 a session of a leased worker that retires is served there until it ends, one client at a time', () => {
  const rig = new Rig()
  rig.ask(ANNA, 'a1', 'hers')
  rig.ask(BERT, 'b1', 'his')
  const hers = rig.takerOf('a1')!
  rig.answer('a1')
  rig.ask(CARL, 'c1', 'theirs')
  expect(rig.takerOf('c1')).toBe(hers)
  rig.answer('c1')
  rig.reload()
  rig.ask(ANNA, 'a2', 'hers')
  expect(rig.takerOf('a2')).toBe(hers)
  rig.ask(CARL, 'c2', 'theirs')
  rig.ask(DORA, 'd1')
  expect([rig.takerOf('c2'), rig.reasonOf(CARL, 'c2')]).toEqual([undefined, undefined])
  rig.answer('a2')
  expect(rig.takerOf('c2')).toBe(hers)
  expect(rig.takerOf('d1')).not.toBe(hers)
})
