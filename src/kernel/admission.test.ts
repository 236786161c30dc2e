import { expect, test } from 'vitest'
import { Bus } from './bus.ts'
import type { Action, BusEvent } from './events.ts'
import { DEFAULT_LIMITS, FIXED } from './limits.ts'
import type { Identity, Rights } from './rights.ts'
import type { BusSpec, ClientId } from './vocabulary.ts'

const [ANNA, BERT] = [1, 2] as [ClientId, ClientId]

function identityOf(principal: string, rights: Partial<Rights> = {}): Identity {
  return { principal, name: principal, via: 'token', rights: { role: 'user', pools: ['*'], ...rights } }
}

/** A bus without pools: who is in, and what it hears; `isRead`: clients read what they are sent. */
class Door {
  nowMs = 1_000
  isRead = true
  readonly done: Action[] = []
  readonly heard: { readonly id: unknown; readonly error?: { readonly data: { readonly reason: string } } }[] = []
  readonly bus: Bus

  constructor(limits: Partial<BusSpec['limits']> = {}) {
    const spec = { pools: [], defaultPool: undefined, limits: { ...DEFAULT_LIMITS, ...limits }, hasAccess: true }
    this.bus = new Bus(spec, [], () => 0.5)
    this.done.push(...this.bus.start(this.nowMs))
  }

  apply(event: BusEvent): void {
    this.done.push(...this.bus.apply(event, this.nowMs))
    for (let writes = this.bus.takeWrites(); writes.length > 0; writes = this.bus.takeWrites())
      for (const write of writes) {
        const bytes = Buffer.concat(write.buffers)
        for (const line of bytes.toString().split('\n').filter(Boolean)) this.heard.push(JSON.parse(line))
        this.done.push(...this.bus.wrote(write, this.isRead ? 0 : bytes.length, this.nowMs))
      }
  }

  arrive(client: ClientId): void {
    this.apply({ type: 'client-opened', client, door: 'tcp', mustProve: true, from: 'here' })
  }

  show(client: ClientId, id: number, end = '\n'): void {
    const line = { id, method: 'bus::open', params: { token: 't' } }
    this.apply({ type: 'client-received', client, bytes: Buffer.from(`${JSON.stringify(line)}${end}`) })
  }

  judge(client: ClientId, identity: Identity): void {
    this.apply({ type: 'client-judged', client, identity })
  }

  pass(ms: number): void {
    this.nowMs += ms
    this.apply({ type: 'tick' })
  }

  get reasons(): unknown[] {
    return this.heard.map(({ id, error }) => [id, error?.data.reason])
  }

  count(action: Action['do']): number {
    return this.done.filter(({ do: what }) => what === action).length
  }
}

test('a fresh credential of a lone client does not make the bus forget what its principal may', () => {
  const door = new Door()
  const anna = identityOf('anna', { maxConnections: 1, rate: { count: 1, perMs: 1_000 } })
  door.arrive(ANNA)
  door.show(ANNA, 1)
  door.judge(ANNA, anna)
  door.show(ANNA, 2)
  door.judge(ANNA, anna)
  door.arrive(BERT)
  door.show(BERT, 3)
  door.judge(BERT, anna)
  expect(door.reasons).toEqual([
    [1, undefined],
    [2, undefined],
    [3, 'too_many_clients'],
  ])
})

test('the second line is no first line: another principal does not take over, a bad credential changes nothing', () => {
  const door = new Door()
  door.arrive(ANNA)
  door.show(ANNA, 1)
  door.judge(ANNA, identityOf('anna'))
  door.show(ANNA, 2)
  door.judge(ANNA, identityOf('bert'))
  door.show(ANNA, 3)
  door.apply({ type: 'client-judged', client: ANNA, refusal: { reason: 'unauthenticated' } })
  expect(door.reasons).toEqual([
    [1, undefined],
    [2, 'not_allowed'],
    [3, 'unauthenticated'],
  ])
  expect(door.count('admitted')).toBe(1)
  expect(door.count('close-client')).toBe(0)
})

test.each(['', '\n'])('who shows its credential and ends is answered, with %j at the end of its line too', (end) => {
  const door = new Door()
  door.arrive(ANNA)
  door.show(ANNA, 1, end)
  door.apply({ type: 'client-ended', client: ANNA })
  expect(door.count('judge')).toBe(1)
  door.judge(ANNA, identityOf('anna'))
  expect(door.reasons).toEqual([[1, undefined]])
  expect(door.count('close-client')).toBe(1)
})

test('whoever is not judged in time is answered, goes, and is not let in by a late verdict', () => {
  const door = new Door()
  door.arrive(ANNA)
  door.show(ANNA, 1)
  door.isRead = false
  door.pass(FIXED.admissionMs)
  door.judge(ANNA, identityOf('anna'))
  expect(door.reasons).toEqual([[1, 'unauthenticated']])
  expect(door.count('admitted')).toBe(0)
})

test('whoever is refused twice over hears of it once', () => {
  const door = new Door({ maxClients: 0 })
  door.isRead = false
  door.apply({ type: 'client-opened', client: ANNA, door: 'tcp', identity: identityOf('a', { maxConnections: 0 }) })
  door.arrive(BERT)
  door.pass(FIXED.admissionMs)
  expect(door.reasons).toEqual([
    [null, 'too_many_clients'],
    [null, 'too_many_clients'],
  ])
})

test('whoever is being judged when the bus ends is answered', () => {
  const door = new Door({ drainTimeoutMs: 10 })
  door.arrive(ANNA)
  door.show(ANNA, 1)
  door.apply({ type: 'shutdown', at: 'leisure' })
  door.pass(10)
  expect(door.reasons).toEqual([[1, 'shutting_down']])
})

test('whoever does not read that its credential has ended is gone all the same', () => {
  const door = new Door()
  door.arrive(ANNA)
  door.show(ANNA, 1)
  door.judge(ANNA, identityOf('anna'))
  door.isRead = false
  door.apply({ type: 'client-revoked', client: ANNA, isExpired: false })
  expect(door.count('close-client')).toBe(0)
  door.pass(FIXED.revokedMs)
  expect(door.count('close-client')).toBe(1)
})
