import { expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { ANNA, BERT, CARL, DORA, KernelRig, type PoolPart, specOf } from '../../test/support/kernel-rig.ts'
import type { ClientId, WorkerId } from './vocabulary.ts'

const LEASED = { id: 'leased', instances: 2, maxInstances: 2, sharing: 'lease', protocol: 'auto' } as const
const BACKOFF_MS = 1_000

/** Two leased workers and whoever asks them. */
class Rig extends KernelRig {
  constructor(pools: readonly PoolPart[] = [LEASED]) {
    super({ pools, defaultPool: pools[0]!.id! })
    for (const client of [ANNA, BERT, CARL, DORA]) this.connects(client)
  }

  ask(client: ClientId, id: string, sessionId?: string): void {
    this.send(client, { id, method: 'work', sessionId })
  }

  /** The session is named where some clients name it. */
  askInside(client: ClientId, id: string, sessionId: string): void {
    this.send(client, { id, method: 'work', params: { sessionId } })
  }

  askInBoth(client: ClientId, id: string, sessionId: string, other: string): void {
    this.send(client, { id, method: 'work', sessionId, params: { sessionId: other } })
  }

  /** The worker that has got the request; undefined while it waits. */
  takerOf(id: string): WorkerId | undefined {
    return this.started.find(({ worker }) => this.at(worker).some((line) => line.id === id))?.worker
  }

  answer(id: string): void {
    this.says(this.takerOf(id)!, { id, result: {} })
  }

  /** Every pool has changed: new workers beside the old ones. */
  reload(): void {
    this.apply({ type: 'reload', spec: specOf({ pools: [{ ...LEASED, revision: '2' }] }) })
  }

  killed(worker: WorkerId): void {
    this.ends(worker, { how: { exitCode: null, signal: 'SIGKILL' } })
    this.pass(BACKOFF_MS)
  }
}

it('6.7 a lease that was granted for a session that is lost goes on to whoever waits next', () => {
  const rig = new Rig()
  rig.ask(ANNA, 'a1', 'hers')
  rig.ask(BERT, 'b1')
  rig.ask(CARL, 'c1')
  rig.ask(ANNA, 'a2', 'hers')
  const hers = rig.takerOf('a1')!
  rig.killed(hers)
  expect(rig.takerOf('c1')).toBe(hers)
  rig.answer('c1')
  expect(rig.reason(ANNA, 'a2')).toBe('session_lost')
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
  rig.killed(rig.takerOf('a1')!)
  rig.answer('c1')
  expect(rig.reason(ANNA, 'a2')).toBe('session_lost')
  const heardByTaker = rig.at(rig.takerOf('a4')!).map(({ id }) => id)
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
  const heard = rig.at(two).map(({ id }) => id)
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

it('7.5 it goes on waiting there also when the last other worker of the old pool has ended', () => {
  verifies('7.5-waiting')
  const rig = new Rig()
  rig.ask(ANNA, 'a1', 'hers')
  const hers = rig.takerOf('a1')!
  rig.ask(BERT, 'b1')
  const other = rig.takerOf('b1')!
  rig.answer('a1')
  rig.ask(CARL, 'c1')
  rig.ask(ANNA, 'a2', 'hers')
  rig.reload()
  rig.answer('b1')
  rig.killed(other)
  expect(rig.reason(ANNA, 'a2')).toBeUndefined()
  rig.answer('c1')
  expect(rig.takerOf('a2')).toBe(hers)
})

it('6.6 whoever waits for a lease is served by the fallback when the last worker has ended', () => {
  verifies('6.6-fallback')
  const rig = new Rig([
    { ...LEASED, instances: 1, maxInstances: 1, restart: 'never', fallback: 'other' },
    { ...LEASED, id: 'other' },
  ])
  rig.ask(ANNA, 'a1')
  rig.ask(BERT, 'b1')
  rig.ask(BERT, 'b2', 'his')
  rig.killed(rig.takerOf('a1')!)
  expect(rig.reason(ANNA, 'a1')).toBe('worker_exited')
  expect([rig.reason(BERT, 'b1'), rig.reason(BERT, 'b2')]).toEqual([undefined, undefined])
  expect([rig.takerOf('b1'), rig.takerOf('b2')]).not.toContain(undefined)
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
  expect([rig.takerOf('c2'), rig.reason(CARL, 'c2')]).toEqual([undefined, undefined])
  rig.answer('a2')
  expect(rig.takerOf('c2')).toBe(hers)
  expect(rig.takerOf('d1')).not.toBe(hers)
})
