/** Workers that are started for one principal, with its environment (contract 9.22): who gets them, and when they end. */
import { describe, expect, it } from 'vitest'
import {
  ANNA,
  BERT,
  type BusPart,
  CARL,
  DORA,
  identityOf,
  KernelRig,
  type PoolPart,
  specOf,
} from '../../test/support/kernel-rig.ts'
import type { Action, Write } from './events.ts'
import type { Rights } from './rights.ts'
import type { ClientId } from './vocabulary.ts'

const SHARED: PoolPart = { hasOwnWorkers: true }
const LEASE: PoolPart = { hasOwnWorkers: true, sharing: 'lease' }
const ISOLATED: PoolPart = { sharing: 'isolated' }
const OWN: Partial<Rights> = { environmentFor: ['*'] }

/** A bus with one pool, whose workers answer what they are asked with their number, and end when they are to. */
class Rig extends KernelRig {
  isSilent = false
  readonly #pool: PoolPart

  constructor(pool: PoolPart) {
    super(busPart(pool))
    this.#pool = pool
  }

  /** A client of this principal, or of nobody in particular. */
  comes(client: ClientId, principal?: string, rights: Partial<Rights> = OWN): void {
    if (principal === undefined) return this.connects(client, { door: 'tcp' })
    const name = principal.split('/')[0]!
    this.connects(client, { door: 'tcp', identity: { ...identityOf(principal, rights), name } })
  }

  /** The number of the worker that answered; undefined while nobody has; the reason, if it was refused. */
  ask(client: ClientId, id: number): unknown {
    this.send(client, { id, method: 'm' })
    return this.answer(client, id)
  }

  answer(client: ClientId, id: number): unknown {
    const found = this.heard(client, id)
    return found?.error === undefined ? found?.result : found.error.data
  }

  answers(worker: number, id: unknown): void {
    this.says(worker, { id, result: worker })
  }

  /** The file has changed: another revision of the pool. */
  reload(revision: string): void {
    this.apply({ type: 'reload', spec: specOf(busPart({ ...this.#pool, revision })) })
  }

  /** The workers that live or are coming, by the principal they were started for. */
  get lives(): string[] {
    const workers = this.snapshot.workers.filter(({ state }) => state !== 'stopped' && state !== 'parked')
    const started = ({ id, generation }: { id: number; generation: number }) =>
      this.started.find((each) => each.worker === id && each.generation === generation)
    return workers.map((worker) => started(worker)?.principal ?? '-').sort()
  }

  protected override sent(to: Write, line: string): void {
    if (to.kind === 'worker' && !this.isSilent) this.answers(to.id, JSON.parse(line).id)
  }

  protected override performed(action: Action): void {
    if (action.do === 'close-worker' && action.how !== 'clear')
      this.ends(action.worker, { isClean: true, how: { exitCode: 0, signal: null } })
  }
}

function busPart(pool: PoolPart): BusPart {
  return { pools: [{ maxInstances: 4, limits: { maxRestarts: 1 }, ...pool }], hasAccess: true }
}

describe.each([
  ['shared', SHARED],
  ['lease', LEASE],
])('9.22 in a pool (%s) whose principals have workers of their own', (_, spec) => {
  it('a principal has one for all its clients, nobody else gets it, and it ends with the last of them', () => {
    const rig = new Rig(spec)
    for (const [client, name] of [
      [ANNA, 'alice'],
      [BERT, 'alice'],
      [CARL, 'carl'],
    ] as const)
      rig.comes(client, name)
    rig.comes(DORA)
    const own = rig.ask(ANNA, 1)
    expect([own, rig.ask(BERT, 2), rig.ask(ANNA, 3)]).toEqual([1, 1, 1])
    expect([rig.ask(CARL, 4), rig.ask(DORA, 5), rig.ask(CARL, 6), rig.ask(DORA, 7)]).toEqual([2, 0, 2, 0])
    expect(rig.lives).toEqual(['-', 'alice', 'carl'])
    rig.goes(ANNA)
    expect(rig.ask(BERT, 8)).toBe(1)
    rig.goes(BERT)
    rig.goes(DORA)
    rig.pass(1_000)
    expect(rig.lives).toEqual(['-', 'carl'])
    rig.comes(DORA, 'alice')
    expect([rig.ask(DORA, 9), rig.ask(CARL, 10)]).toEqual([1, 2])
    expect(rig.started).toHaveLength(4)
  })

  it('at max_instances a principal gets no_worker that says so, until another has gone', () => {
    const rig = new Rig({ ...spec, maxInstances: 2 })
    rig.comes(ANNA, 'alice')
    rig.comes(BERT, 'bert')
    expect(rig.ask(ANNA, 1)).toBe(1)
    const why = 'all 2 workers that max_instances allows are in use'
    expect(rig.ask(BERT, 2)).toEqual({ reason: 'no_worker', pool: 'p', why, retryable: true })
    rig.goes(ANNA)
    rig.pass(1_000)
    expect(rig.ask(BERT, 3)).toBe(1)
    expect(rig.lives).toEqual(['-', 'bert'])
  })

  it('a worker that dies comes back for the same principal; parked, its principal is told and others are served', () => {
    const rig = new Rig(spec)
    rig.comes(ANNA, 'alice')
    rig.comes(DORA)
    expect(rig.ask(ANNA, 1)).toBe(1)
    rig.isSlow = true
    rig.dies(rig.latest.worker)
    expect([rig.ask(ANNA, 2), rig.ask(DORA, 3)]).toEqual([undefined, 0])
    rig.pass(2_000)
    expect(rig.latest).toMatchObject({ worker: 1, generation: 2, principal: 'alice' })
    rig.dies(rig.latest.worker)
    rig.pass(500)
    expect([rig.answer(ANNA, 2), rig.ask(DORA, 4)]).toMatchObject([{ reason: 'no_worker' }, 0])
    rig.goes(ANNA)
    expect(rig.lives).toEqual(['-'])
  })

  it('a reload retires it, and whoever waits is served by one of the new revision', () => {
    const rig = new Rig(spec)
    rig.comes(ANNA, 'alice')
    rig.isSlow = true
    expect(rig.ask(ANNA, 1)).toBe(undefined)
    rig.isSlow = false
    rig.reload('2')
    expect(rig.latest).toMatchObject({ principal: 'alice', revision: '2' })
    expect(rig.answer(ANNA, 1)).toBe(rig.latest.worker)
    rig.pass(1_000)
    expect(rig.lives).toEqual(['-', 'alice'])
    rig.goes(ANNA)
    rig.pass(1_000)
    expect(rig.lives).toEqual(['-'])
  })

  it('a client that goes while its worker starts leaves none behind', () => {
    const rig = new Rig(spec)
    rig.comes(ANNA, 'alice')
    rig.isSlow = true
    rig.ask(ANNA, 1)
    rig.goes(ANNA)
    rig.pass(1_000)
    expect(rig.lives).toEqual(['-'])
  })
})

it('9.22 subjects of one principal have a worker each', () => {
  const rig = new Rig(SHARED)
  rig.comes(ANNA, 'dev/1')
  rig.comes(BERT, 'dev/2')
  expect([rig.ask(ANNA, 1), rig.ask(BERT, 2), rig.ask(ANNA, 3)]).toEqual([1, 2, 1])
  expect(rig.lives).toEqual(['-', 'dev', 'dev'])
})

it('9.22 who has no environment for the pool, or a pool without such workers, has none of its own', () => {
  const rig = new Rig(SHARED)
  rig.comes(ANNA, 'alice', { environmentFor: ['other'] })
  rig.comes(BERT, 'bert', {})
  expect([rig.ask(ANNA, 1), rig.ask(BERT, 2)]).toEqual([0, 0])
  const common = new Rig({})
  common.comes(ANNA, 'alice')
  expect(common.ask(ANNA, 1)).toBe(0)
})

it('9.22 an environment that comes later is for workers that start later', () => {
  const rig = new Rig(SHARED)
  rig.comes(ANNA, 'alice', { rate: { count: 100, perMs: 1000 } })
  expect(rig.ask(ANNA, 1)).toBe(0)
  rig.apply({ type: 'rights-changed', principal: 'alice', rights: { role: 'user', pools: ['*'], ...OWN } })
  expect(rig.ask(ANNA, 2)).toBe(1)
  rig.apply({ type: 'rights-changed', principal: 'alice', rights: { role: 'user', pools: ['*'] } })
  expect(rig.ask(ANNA, 3)).toBe(0)
  rig.goes(ANNA)
  rig.pass(1_000)
  expect(rig.lives).toEqual(['-'])
})

it('9.22 a lease is between the clients of the principal alone', () => {
  const rig = new Rig(LEASE)
  rig.comes(ANNA, 'alice')
  rig.comes(BERT, 'alice')
  rig.comes(DORA)
  rig.isSilent = true
  rig.ask(ANNA, 1)
  rig.isSilent = false
  expect([rig.ask(BERT, 2), rig.ask(DORA, 3)]).toEqual([undefined, 0])
  rig.answers(1, 1)
  expect([rig.answer(ANNA, 1), rig.answer(BERT, 2)]).toEqual([1, 1])
})

describe('9.22 in a pool of isolated workers', () => {
  it('every client of the principal has a fresh one, never a spare, which others get', () => {
    const rig = new Rig(ISOLATED)
    rig.comes(ANNA, 'alice')
    rig.comes(BERT, 'alice')
    rig.comes(DORA)
    expect([rig.ask(ANNA, 1), rig.ask(BERT, 2), rig.ask(DORA, 3), rig.ask(ANNA, 4)]).toEqual([1, 2, 0, 1])
    expect(rig.lives).toEqual(['-', '-', 'alice', 'alice'])
    rig.goes(ANNA)
    rig.pass(1_000)
    expect(rig.lives).toEqual(['-', '-', 'alice'])
    rig.goes(BERT)
    rig.pass(1_000)
    expect(rig.lives).toEqual(['-', '-'])
  })

  it('one that dies is followed by another for the same principal', () => {
    const rig = new Rig(ISOLATED)
    rig.comes(ANNA, 'alice')
    expect(rig.ask(ANNA, 1)).toBe(1)
    rig.dies(rig.latest.worker)
    rig.pass(1_000)
    expect(rig.ask(ANNA, 2)).toBe(1)
    expect(rig.latest).toMatchObject({ generation: 2, principal: 'alice' })
    expect(rig.lives).toEqual(['-', 'alice'])
  })

  it('what was started for a client that has gone is not kept for the next', () => {
    const rig = new Rig(ISOLATED)
    rig.comes(ANNA, 'alice')
    rig.comes(BERT, 'alice')
    expect(rig.ask(ANNA, 1)).toBe(1)
    rig.isSlow = true
    expect(rig.ask(BERT, 2)).toBe(undefined)
    rig.goes(BERT)
    rig.pass(1_000)
    expect(rig.lives).toEqual(['-', 'alice'])
  })

  it('a spare gives way, and no more than max_instances are there at a time', () => {
    const rig = new Rig({ ...ISOLATED, instances: 2, maxInstances: 2 })
    for (const client of [ANNA, BERT, CARL]) rig.comes(client, 'alice')
    expect(rig.lives).toEqual(['-', '-'])
    rig.ask(ANNA, 1)
    rig.pass(1_000)
    expect(rig.answer(ANNA, 1)).toBeTypeOf('number')
    expect(rig.lives).toEqual(['-', 'alice'])
    rig.ask(BERT, 2)
    rig.pass(1_000)
    expect(rig.lives).toEqual(['alice', 'alice'])
    expect(rig.ask(CARL, 3)).toMatchObject({ reason: 'no_worker', why: expect.stringContaining('max_instances') })
    rig.comes(DORA)
    expect(rig.ask(DORA, 4)).toMatchObject({ reason: 'no_worker' })
    rig.goes(ANNA)
    rig.pass(1_000)
    expect(rig.lives).toEqual(['-', 'alice'])
    expect(rig.ask(DORA, 5)).toBeTypeOf('number')
  })
})

it('9.22 what the gateway asks for a connection goes to a worker of its principal, and only then', () => {
  const rig = new Rig(SHARED)
  rig.comes(ANNA, 'alice')
  rig.connects(BERT, { door: 'internal', pool: 'p', behalfOf: ANNA })
  rig.connects(CARL, { door: 'internal', pool: 'p' })
  expect([rig.ask(BERT, 1), rig.ask(CARL, 2), rig.ask(ANNA, 3)]).toEqual([1, 0, 1])
  rig.goes(BERT)
  expect(rig.lives).toEqual(['-', 'alice'])
  rig.connects(DORA, { door: 'internal', pool: 'p', behalfOf: ANNA })
  rig.goes(ANNA)
  rig.pass(1_000)
  expect(rig.ask(DORA, 4)).toBe(0)
  expect(rig.lives).toEqual(['-'])
})
