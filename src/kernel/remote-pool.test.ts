/** Contract 11.2, 11.6: workers that are upstreams, as the kernel sees them: refused ones, and ways that lead in a circle. */
import { describe, expect, it } from 'vitest'
import { KernelRig, type PoolPart } from '../../test/support/kernel-rig.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import type { ClientId } from './vocabulary.ts'

const WINDOW_MS = DEFAULT_LIMITS.restartWindowMs
const CLIENT = 1
const OTHER = 2 as ClientId
const OWN = 'this-bus'
const FAR: PoolPart = { id: 'far', isRemote: true }

/** One worker, whose source does what the test says. */
class Rig extends KernelRig {
  constructor(pool: PoolPart = {}) {
    super({ pools: [{ ...FAR, ...pool }], busId: OWN }, { isSlow: true })
    this.connects(CLIENT)
  }

  get worker() {
    return this.snapshot.workers[0]!
  }

  /** The worker is refused at its start, or in its life. */
  refuseStart(): void {
    this.fails(0, 'refused', { again: 'later' })
  }

  refuse(why = 'refused'): void {
    this.ends(0, { how: { why }, again: 'later' })
  }

  ask(id: number, client: number = CLIENT): { reason: string; why?: string } | undefined {
    this.send(client, { jsonrpc: '2.0', id, method: 'm' })
    return this.told(id, client)
  }

  open(id: number, params: object): { reason: string; why?: string } | undefined {
    this.send(CLIENT, { jsonrpc: '2.0', id, method: 'bus::open', params })
    return this.told(id)
  }

  told(id: number, client: number = CLIENT): { reason: string; why?: string } | undefined {
    return this.heard(client, id)?.error?.data
  }

  /** What was told to workers of the ways by which clients came: at their start, and later. */
  get toldVias(): unknown[] {
    return this.done.flatMap((action): unknown[] => {
      if (action.do === 'pass-on') return [action.via]
      return action.do === 'open-worker' && action.vias !== undefined ? [...action.vias] : []
    })
  }
}

it('one that is refused at its start is parked at once, and tried once in a window', () => {
  const rig = new Rig()
  rig.refuseStart()
  expect(rig.worker).toMatchObject({ state: 'parked', last_error: 'refused' })
  expect(rig.ask(1)).toMatchObject({ reason: 'no_worker', why: 'refused' })
  rig.pass(WINDOW_MS - 1)
  expect(rig.started).toHaveLength(1)
  rig.pass(1)
  expect(rig.started).toHaveLength(2)
  rig.refuseStart()
  rig.pass(WINDOW_MS)
  expect(rig.started).toHaveLength(3)
})

it('one that is refused in its life is parked, too; what it owed is answered with why', () => {
  const rig = new Rig()
  rig.opens(0, { facts: { address: 'far away' } })
  expect(rig.worker).toMatchObject({ state: 'ready', facts: { address: 'far away' } })
  expect(rig.ask(1)).toBeUndefined()
  rig.refuse('expired')
  expect(rig.told(1)).toMatchObject({ reason: 'worker_exited', why: 'expired' })
  expect(rig.worker).toMatchObject({ state: 'parked', last_error: 'expired' })
  rig.pass(WINDOW_MS)
  rig.opens(0)
  expect(rig.worker).toMatchObject({ state: 'ready', restarts: 1 })
  expect(rig.worker.last_error).toBeUndefined()
})

it('restart "never" holds for it as well', () => {
  const rig = new Rig({ restart: 'never' })
  rig.refuseStart()
  expect(rig.worker.state).toBe('stopped')
})

const opened = (pool: PoolPart = {}): Rig => {
  const rig = new Rig(pool)
  rig.opens(0)
  return rig
}

it('11.1 the pool that a message names is not for the pools of another bus', () => {
  const rig = opened()
  rig.send(CLIENT, { jsonrpc: '2.0', pool: 'far', id: 1, method: 'm' })
  rig.send(CLIENT, { jsonrpc: '2.0', method: 'n', pool: 'far' })
  expect(rig.lines.get('worker 0')).toEqual(['{"jsonrpc":"2.0","id":1,"method":"m"}', '{"jsonrpc":"2.0","method":"n"}'])
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
    expect(rig.did('close-client')).not.toEqual([])
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
    expect([rig.all(CLIENT)[0].result, rig.toldVias]).toEqual([{ pool: 'far' }, []])
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
    expect(rig.did('close-client')).not.toEqual([])
  })

  it('is refused later by an error without an id: parked at once, until the window is over', () => {
    const rig = opened()
    rig.open(1, { pool: 'far', via: ['a'] })
    rig.send(CLIENT, { jsonrpc: '2.0', id: 2, method: 'm' })
    rig.says(0, { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'no', data: { reason: 'other' } } })
    expect([rig.worker.state, rig.told(2)]).toEqual(['ready', undefined])
    rig.says(0, { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'no', data: { reason: 'loop_detected' } } })
    expect(rig.told(2)).toMatchObject({ reason: 'worker_exited', why: expect.stringContaining('leads back') })
    rig.ends(0, { isClean: true, how: { why: 'it was ended' } })
    expect(rig.worker).toMatchObject({ state: 'parked', last_error: expect.stringContaining('leads back') })
    rig.pass(WINDOW_MS - 1)
    expect(rig.started).toHaveLength(1)
    rig.pass(1)
    expect(rig.started).toHaveLength(2)
  })

  it('is no business of a process, whatever it says', () => {
    const rig = opened({ isRemote: false })
    rig.says(0, { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'no', data: { reason: 'loop_detected' } } })
    expect(rig.worker.state).toBe('ready')
  })

  it('may be known by the door, and by whoever comes through it later', () => {
    const rig = opened()
    rig.connects(OTHER, { door: 'tcp', via: ['a'] })
    rig.ask(1, OTHER)
    rig.apply({ type: 'client-via', client: OTHER, via: ['b'] })
    rig.ask(2, OTHER)
    expect(rig.toldVias).toEqual([['a'], ['b']])
  })

  it('is told to workers that come later, until the client has gone', () => {
    const rig = opened()
    rig.open(1, { pool: 'far', via: ['a'] })
    rig.refuse()
    rig.pass(WINDOW_MS)
    expect(rig.toldVias).toEqual([['a'], ['a']])
    rig.goes(CLIENT)
    rig.refuse()
    rig.pass(WINDOW_MS)
    expect(rig.started).toHaveLength(3)
    expect(rig.toldVias).toEqual([['a'], ['a']])
  })

  it('is remembered for a bounded number of them', () => {
    const rig = opened()
    rig.open(1, { pool: 'far', via: ['a'] })
    for (let i = 0; i < 400; i++) rig.open(i + 2, { via: [`b${i}`] })
    rig.refuse()
    rig.pass(WINDOW_MS)
    expect(rig.latest.vias).toHaveLength(64)
  })
})
