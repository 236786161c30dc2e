/** Contract 11.2, 11.6: workers that are upstreams, as the kernel sees them: refused ones, and ways that lead in a circle. */
import { describe, expect, it } from 'vitest'
import { DIALECTS } from '../dialects/index.ts'
import { Bus } from './bus.ts'
import type { Action, BusEvent, WorkerGeneration } from './events.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import type { ClientId, PoolSpec } from './vocabulary.ts'

const WINDOW_MS = DEFAULT_LIMITS.restartWindowMs
const CLIENT = 1 as ClientId
const OTHER = 2 as ClientId
const OWN = 'this-bus'
const POOL: PoolSpec = {
  id: 'far',
  instances: 1,
  maxInstances: 1,
  sharing: 'shared',
  protocol: 'plain',
  era: 'auto',
  restart: 'always',
  startTimeoutMs: 60_000,
  hangTimeoutMs: 0,
  isRemote: true,
  limits: DEFAULT_LIMITS,
  trace: false,
  revision: 'r',
}

/** One worker, whose source does what the test says. */
class Rig {
  readonly opened: WorkerGeneration[] = []
  readonly done: Action[] = []
  readonly atWorker: string[] = []
  readonly #bus: Bus
  readonly #heard: string[] = []
  #nowMs = 1_000

  constructor(pool: Partial<PoolSpec> = {}) {
    const pools = [{ ...POOL, ...pool }]
    const spec = { pools, defaultPool: undefined, limits: DEFAULT_LIMITS, busId: OWN }
    this.#bus = new Bus(spec, DIALECTS, () => 0.5)
    this.#perform(this.#bus.start(this.#nowMs))
    this.apply({ type: 'client-opened', client: CLIENT, door: 'unix' })
  }

  get current(): WorkerGeneration {
    return this.opened.at(-1)!
  }

  get worker() {
    return this.#bus.snapshot().workers[0]!
  }

  apply(event: BusEvent): void {
    this.#perform(this.#bus.apply(event, this.#nowMs))
  }

  advance(byMs: number): void {
    this.#nowMs += byMs
    this.apply({ type: 'tick' })
  }

  /** The worker is refused in its life. */
  end(why = 'refused'): void {
    this.apply({ type: 'worker-ended', ...this.current, isClean: false, how: { why }, again: 'later' })
    this.apply({ type: 'worker-silent', ...this.current, pipe: 'stdout' })
  }

  send(message: object, client = CLIENT): void {
    this.apply({ type: 'client-received', client, bytes: Buffer.from(`${JSON.stringify(message)}\n`) })
  }

  /** The worker says something. */
  say(message: object): void {
    this.apply({ type: 'worker-received', ...this.current, bytes: Buffer.from(`${JSON.stringify(message)}\n`) })
  }

  ask(id: number, client = CLIENT): { reason: string; why?: string } | undefined {
    this.send({ jsonrpc: '2.0', id, method: 'm' }, client)
    return this.told(id)
  }

  open(id: number, params: object, client = CLIENT): { reason: string; why?: string } | undefined {
    this.send({ jsonrpc: '2.0', id, method: 'bus::open', params }, client)
    return this.told(id)
  }

  told(id: number): { reason: string; why?: string } | undefined {
    return this.heard.find((each) => each.id === id)?.error?.data
  }

  // biome-ignore lint/suspicious/noExplicitAny: what a peer says has no type; tests look into it
  get heard(): any[] {
    return this.#heard.map((line) => JSON.parse(line))
  }

  /** What was told to workers of the ways by which clients came: at their start, and later. */
  get toldVias(): unknown[] {
    return this.done.flatMap((action): unknown[] => {
      if (action.do === 'pass-on') return [action.via]
      return action.do === 'open-worker' && action.vias !== undefined ? [...action.vias] : []
    })
  }

  #perform(actions: readonly Action[]): void {
    this.done.push(...actions)
    for (const action of actions) {
      if (action.do === 'open-worker') this.opened.push({ worker: action.worker, generation: action.generation })
    }
    for (const write of this.#bus.takeWrites()) {
      const text = Buffer.concat(write.buffers).toString()
      const heard = write.kind === 'client' ? this.#heard : this.atWorker
      heard.push(...text.split('\n').slice(0, -1))
      this.#perform(this.#bus.wrote(write, 0, this.#nowMs))
    }
  }
}

it('one that is refused at its start is parked at once, and tried once in a window', () => {
  const rig = new Rig()
  rig.apply({ type: 'worker-failed', ...rig.current, why: 'refused', again: 'later' })
  expect(rig.worker).toMatchObject({ state: 'parked', last_error: 'refused' })
  expect(rig.ask(1)).toMatchObject({ reason: 'no_worker', why: 'refused' })
  rig.advance(WINDOW_MS - 1)
  expect(rig.opened).toHaveLength(1)
  rig.advance(1)
  expect(rig.opened).toHaveLength(2)
  rig.apply({ type: 'worker-failed', ...rig.current, why: 'refused', again: 'later' })
  rig.advance(WINDOW_MS)
  expect(rig.opened).toHaveLength(3)
})

it('one that is refused in its life is parked, too; what it owed is answered with why', () => {
  const rig = new Rig()
  rig.apply({ type: 'worker-opened', ...rig.current, facts: { address: 'far away' } })
  expect(rig.worker).toMatchObject({ state: 'ready', facts: { address: 'far away' } })
  expect(rig.ask(1)).toBeUndefined()
  rig.end('expired')
  expect(rig.told(1)).toMatchObject({ reason: 'worker_exited', why: 'expired' })
  expect(rig.worker).toMatchObject({ state: 'parked', last_error: 'expired' })
  rig.advance(WINDOW_MS)
  rig.apply({ type: 'worker-opened', ...rig.current })
  expect(rig.worker).toMatchObject({ state: 'ready', restarts: 1 })
  expect(rig.worker.last_error).toBeUndefined()
})

it('restart "never" holds for it as well', () => {
  const rig = new Rig({ restart: 'never' })
  rig.apply({ type: 'worker-failed', ...rig.current, why: 'refused', again: 'later' })
  expect(rig.worker.state).toBe('stopped')
})

const opened = (pool: Partial<PoolSpec> = {}): Rig => {
  const rig = new Rig(pool)
  rig.apply({ type: 'worker-opened', ...rig.current })
  return rig
}

it('11.1 the pool that a message names is not for the pools of another bus', () => {
  const rig = opened()
  rig.send({ jsonrpc: '2.0', pool: 'far', id: 1, method: 'm' })
  rig.send({ jsonrpc: '2.0', method: 'n', pool: 'far' })
  expect(rig.atWorker).toEqual(['{"jsonrpc":"2.0","id":1,"method":"m"}', '{"jsonrpc":"2.0","method":"n"}'])
})

describe('11.6 the way by which a client has come', () => {
  it.each([
    [['a', OWN], 'loop_detected'],
    [Array(9).fill('a'), 'loop_detected'],
    ['a', 'bad_envelope'],
    [[1], 'bad_envelope'],
    [['a b'], 'bad_envelope'],
    [['x'.repeat(65)], 'bad_envelope'],
  ])('%j is refused: %s', (via, reason) => {
    const rig = opened()
    expect(rig.open(1, { pool: 'far', via })).toMatchObject({ reason })
    expect(rig.done.some((action) => action.do === 'close-client')).toBe(true)
    expect(rig.toldVias).toEqual([])
  })

  it('is told to the workers that lead on, before the first message', () => {
    const rig = opened()
    expect(rig.open(1, { pool: 'far', via: ['a'] })).toBeUndefined()
    expect(rig.toldVias).toEqual([['a']])
    rig.ask(2)
    expect(rig.toldVias).toEqual([['a']])
  })

  it('is told with the first message where no pool was named, and not where workers are processes', () => {
    const rig = opened()
    rig.open(1, { via: ['a'] })
    expect([rig.heard[0].result, rig.toldVias]).toEqual([{ pool: 'far' }, []])
    rig.ask(2)
    expect(rig.toldVias).toEqual([['a']])
    const near = opened({ isRemote: false })
    near.open(1, { pool: 'far', via: ['a'] })
    near.ask(2)
    expect(near.toldVias).toEqual([])
  })

  it('may be several, the same one is told once, and a later one that leads back ends the connection', () => {
    const rig = opened()
    rig.open(1, { pool: 'far', via: ['a'] })
    rig.open(2, { via: ['b', 'a'] })
    rig.open(3, { via: ['a'] })
    expect(rig.toldVias).toEqual([['a'], ['b', 'a']])
    expect(rig.open(4, { via: ['c', OWN] })).toMatchObject({ reason: 'loop_detected' })
    expect(rig.done.some((action) => action.do === 'close-client')).toBe(true)
  })

  it('is refused later by an error without an id: parked at once, until the window is over', () => {
    const rig = opened()
    rig.open(1, { pool: 'far', via: ['a'] })
    rig.send({ jsonrpc: '2.0', id: 2, method: 'm' })
    rig.say({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'no', data: { reason: 'other' } } })
    expect([rig.worker.state, rig.told(2)]).toEqual(['ready', undefined])
    rig.say({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'no', data: { reason: 'loop_detected' } } })
    expect(rig.told(2)).toMatchObject({ reason: 'worker_exited', why: expect.stringContaining('leads back') })
    rig.apply({ type: 'worker-ended', ...rig.current, isClean: true, how: { why: 'it was ended' } })
    rig.apply({ type: 'worker-silent', ...rig.current, pipe: 'stdout' })
    expect(rig.worker).toMatchObject({ state: 'parked', last_error: expect.stringContaining('leads back') })
    rig.advance(WINDOW_MS - 1)
    expect(rig.opened).toHaveLength(1)
    rig.advance(1)
    expect(rig.opened).toHaveLength(2)
  })

  it('is no business of a process, whatever it says', () => {
    const rig = opened({ isRemote: false })
    rig.say({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'no', data: { reason: 'loop_detected' } } })
    expect(rig.worker.state).toBe('ready')
  })

  it('may be known by the door, and by whoever comes through it later', () => {
    const rig = opened()
    rig.apply({ type: 'client-opened', client: OTHER, door: 'tcp', via: ['a'] })
    rig.ask(1, OTHER)
    rig.apply({ type: 'client-via', client: OTHER, via: ['b'] })
    rig.ask(2, OTHER)
    expect(rig.toldVias).toEqual([['a'], ['b']])
  })

  it('is told to workers that come later, until the client has gone', () => {
    const rig = opened()
    rig.open(1, { pool: 'far', via: ['a'] })
    rig.end()
    rig.advance(WINDOW_MS)
    expect(rig.toldVias).toEqual([['a'], ['a']])
    rig.apply({ type: 'client-closed', client: CLIENT })
    rig.end()
    rig.advance(WINDOW_MS)
    expect(rig.opened).toHaveLength(3)
    expect(rig.toldVias).toEqual([['a'], ['a']])
  })

  it('is remembered for a bounded number of them', () => {
    const rig = opened()
    rig.open(1, { pool: 'far', via: ['a'] })
    for (let i = 0; i < 400; i++) rig.open(i + 2, { via: [`b${i}`] })
    rig.end()
    rig.advance(WINDOW_MS)
    const again = rig.done.findLast((action) => action.do === 'open-worker')
    expect(again?.do === 'open-worker' && again.vias).toHaveLength(64)
  })
})
