/** Contract 6.6, 6.7, 7.2: workers that are one client's alone, as their clients come in crowds, and who serves in their place. */
import { expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { KernelRig, type PoolPart } from '../../test/support/kernel-rig.ts'
import type { Write } from './events.ts'
import { FIXED } from './limits.ts'

const POOL: PoolPart = { instances: 0, maxInstances: 10_000, sharing: 'isolated', restart: 'never' }

/** A bus whose messages go to the first pool, and whose workers open when they are told to and note who asked them what. */
class Rig extends KernelRig {
  /** The ids that each worker was asked with, by its number. */
  readonly asked = new Map<number, number[]>()
  /** Reasons, by the id that was refused. */
  readonly refused = new Map<number, string>()

  constructor(pools: readonly PoolPart[] = [POOL]) {
    super({ pools, defaultPool: 'p', limits: { maxClients: 10_000 } }, { isSlow: true })
  }

  ask(client: number, id: number, session?: string): void {
    this.send(client, { id, method: 'm', sessionId: session })
  }

  guestOf(worker: number): number | undefined {
    return this.bus.guestOf(this.of(worker).worker)?.client
  }

  protected override sent(to: Write, line: string): void {
    const { id, error } = JSON.parse(line)
    if (to.kind === 'worker') this.asked.set(to.id, [...(this.asked.get(to.id) ?? []), id])
    else this.refused.set(id, error.data.reason)
  }
}

it('whoever waits for a worker of its own is told after ten seconds, though others have got theirs meanwhile', () => {
  const rig = new Rig()
  for (const client of [1, 2]) {
    rig.connects(client)
    rig.ask(client, client)
  }
  rig.pass(FIXED.workerWaitMs - 1)
  rig.opens(0)
  expect([...rig.asked.values(), ...rig.refused]).toEqual([[1]])
  rig.pass(1)
  expect([...rig.refused]).toEqual([[2, 'no_worker']])
})

it('a crowd is served in the order in which it came, everybody with all it has said', () => {
  const rig = new Rig()
  const crowd = Array.from({ length: 300 }, (_, index) => index + 1)
  for (const client of crowd) {
    rig.connects(client)
    rig.ask(client, client)
  }
  for (const client of crowd) rig.ask(client, 1_000 + client)
  expect(rig.started).toHaveLength(crowd.length)
  for (const client of crowd) {
    rig.opens(client - 1)
    expect(rig.asked.size).toBe(client)
  }
  expect([...rig.asked.values()]).toEqual(crowd.map((client) => [client, 1_000 + client]))
})

it("a worker whose last words are still to come is nobody's when its client has gone, which had another meanwhile", () => {
  const rig = new Rig()
  const [client, dying, next] = [1, 0, 1]
  rig.connects(client)
  rig.ask(client, 1)
  rig.opens(dying)
  rig.apply({ type: 'worker-ended', ...rig.of(dying), isClean: false, how: { exitCode: 1, signal: null } })
  rig.ask(client, 2)
  rig.opens(next)
  expect([rig.guestOf(dying), rig.guestOf(next)]).toEqual([client, client])
  rig.goes(client)
  expect([rig.guestOf(dying), rig.guestOf(next)]).toEqual([undefined, undefined])
})

/** One worker that is its client's alone, and one for everybody else in its place. */
const BESIDE: readonly PoolPart[] = [
  { ...POOL, maxInstances: 1, restart: 'always', fallback: 'q' },
  { ...POOL, id: 'q', instances: 1, sharing: 'shared' },
]

it('who waits for a worker that another client gets is served elsewhere as soon as that is known', () => {
  verifies('6.6-fallback', '6.7.2-max')
  const rig = new Rig(BESIDE)
  const [other, own] = [0, 1]
  rig.opens(other)
  for (const client of [1, 2]) {
    rig.connects(client)
    rig.ask(client, client)
  }
  rig.opens(own)
  expect([...rig.asked]).toEqual([
    [rig.started[own]!.worker, [1]],
    [rig.started[other]!.worker, [2]],
  ])
})

it('who has waited too long is served elsewhere', () => {
  verifies('6.6-fallback')
  const rig = new Rig(BESIDE)
  rig.opens(0)
  rig.connects(1)
  rig.ask(1, 1)
  rig.pass(FIXED.workerWaitMs)
  expect([...rig.asked, ...rig.refused]).toEqual([[rig.started[0]!.worker, [1]]])
})

it('what names a session stays behind what names it too and waits elsewhere', () => {
  verifies('6.4-order')
  const rig = new Rig(BESIDE)
  rig.connects(1)
  rig.ask(1, 1, 's')
  // It waits for the other pool from now on.
  rig.pass(FIXED.workerWaitMs)
  rig.opens(1)
  rig.ask(1, 2, 's')
  rig.ask(1, 3, 'another')
  rig.opens(0)
  expect([...rig.asked]).toEqual([
    [rig.started[1]!.worker, [3]],
    [rig.started[0]!.worker, [1, 2]],
  ])
})
