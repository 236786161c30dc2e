import { expect, test } from 'vitest'
import { ANNA, BERT, busOf, lineOf } from '../../test/support/kernel-rig.ts'
import type { Bus } from './bus.ts'
import type { Action } from './events.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import type { ClientId, WorkerId } from './vocabulary.ts'

const SLOT = 0 as WorkerId

/** A bus whose worker runs, with two clients; what each peer gets is read off the writes. */
function setUp(): { bus: Bus; ask: (client: ClientId, id: number) => readonly Action[] } {
  const bus = busOf({ pools: [{ limits: { requestTimeoutMs: 30_000 } }] })
  const spawn = bus.start(0).find((action) => action.do === 'open-worker')!
  bus.apply({ type: 'worker-opened', worker: spawn.worker, generation: spawn.generation }, 0)
  for (const client of [ANNA, BERT]) bus.apply({ type: 'client-opened', client, door: 'unix' }, 0)
  const ask = (client: ClientId, id: number) =>
    bus.apply({ type: 'client-received', client, bytes: lineOf({ id, method: 'm' }) }, 1)
  return { bus, ask }
}

test('what was taken is not given again before it is reported, and what comes meanwhile follows it', () => {
  const { bus, ask } = setUp()
  ask(ANNA, 1)
  const [write] = bus.takeWrites()
  expect(write).toMatchObject({ kind: 'worker', generation: 1 })
  expect(Buffer.concat(write!.buffers).toString()).toBe('{"id":1,"method":"m"}\n')
  ask(ANNA, 2)
  expect(bus.takeWrites()).toEqual([])
  expect(bus.wrote(write!, 0, 2)).toEqual([])
  const [next] = bus.takeWrites()
  expect(Buffer.concat(next!.buffers).toString()).toBe('{"id":2,"method":"m"}\n')
})

test('what the system still holds keeps the rest back until an event says that it has left', () => {
  const { bus, ask } = setUp()
  ask(ANNA, 1)
  const [write] = bus.takeWrites()
  bus.wrote(write!, 5, 2)
  ask(BERT, 2)
  expect(bus.takeWrites()).toEqual([])
  if (write!.kind !== 'worker') throw new Error('it is for the worker')
  bus.apply({ type: 'worker-wrote', worker: write!.id, generation: write!.generation, pendingBytes: 0 }, 3)
  expect(bus.takeWrites()).toHaveLength(1)
})

test('4.1.2 a client that has ended its side is not closed over what was taken for it and is not written yet', () => {
  const { bus, ask } = setUp()
  ask(ANNA, 1)
  bus.wrote(bus.takeWrites()[0]!, 0, 2)
  bus.apply({ type: 'worker-received', worker: SLOT, generation: 1, bytes: lineOf({ id: 1, result: {} }) }, 3)
  const [write] = bus.takeWrites()
  const closes = (actions: readonly Action[]): boolean => actions.some(({ do: what }) => what === 'close-client')
  expect(closes(bus.apply({ type: 'client-ended', client: ANNA }, 4))).toBe(false)
  expect(closes(bus.wrote(write!, 0, 5))).toBe(true)
})

test('nothing is left to write for a peer that has gone meanwhile', () => {
  const { bus, ask } = setUp()
  bus.apply({ type: 'client-received', client: ANNA, bytes: lineOf('nonsense') }, 1)
  ask(BERT, 1)
  const writes = bus.takeWrites()
  const toAnna = writes.find(({ kind }) => kind === 'client')!
  bus.apply({ type: 'client-closed', client: ANNA }, 2)
  expect(toAnna.buffers).toEqual([])
  expect(bus.wrote(toAnna, 0, 3)).toEqual([])
})

test('a request that is answered leaves no deadline behind', () => {
  const { bus, ask } = setUp()
  const before = bus.nextDeadlineMs()
  ask(ANNA, 1)
  ask(BERT, 2)
  expect(bus.nextDeadlineMs()).toBeLessThan(before ?? Number.POSITIVE_INFINITY)
  for (const id of [2, 1])
    bus.apply({ type: 'worker-received', worker: SLOT, generation: 1, bytes: lineOf({ id, result: {} }) }, 3)
  expect(bus.nextDeadlineMs()).toBe(before)
})

test('whoever looks is told for how long the queue of a worker has been full', () => {
  const { bus, ask } = setUp()
  ask(ANNA, 1)
  bus.wrote(bus.takeWrites()[0]!, 20, 2)
  const fullSec = (): number | undefined => bus.snapshot().workers[0]?.full_sec
  expect(fullSec()).toBeUndefined()
  const line = `{"method":"m","params":"${'x'.repeat(10_000)}"}\n`
  const lines = Buffer.from(line.repeat(Math.ceil(DEFAULT_LIMITS.maxOutputQueueBytes / 10_000) + 1))
  bus.apply({ type: 'client-received', client: ANNA, bytes: lines }, 3)
  expect(fullSec()).toBe(0)
  for (let nowMs = 3; nowMs < 6_003; nowMs = bus.nextDeadlineMs()!) bus.apply({ type: 'tick' }, nowMs)
  expect(fullSec()).toBeGreaterThanOrEqual(5)
})
