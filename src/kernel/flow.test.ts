import { expect, it } from 'vitest'
import { ANNA, BERT, CARL, DORA, KernelRig, type Message } from '../../test/support/kernel-rig.ts'

const REVISION = '2025-06-18'
const INITIALIZE = { id: 0, method: 'initialize', params: { protocolVersion: REVISION, capabilities: {} } }
const WELCOME = { protocolVersion: REVISION, capabilities: {} }
const LIMIT_BYTES = 1_000

/** A server that tells two clients the same with every line, and a line is more than their queues hold. */
class Rig extends KernelRig {
  constructor() {
    super({ pools: [{ protocol: 'mcp', era: 'legacy' }], limits: { maxOutputQueueBytes: LIMIT_BYTES } })
    for (const client of [ANNA, BERT]) {
      this.connects(client)
      this.send(client, INITIALIZE)
      const { id, method } = this.at(0).at(-1)
      if (method === 'initialize') this.says(0, { id, result: WELCOME })
      this.stalled.add(client)
    }
  }

  tellsAll(count: number): void {
    const params = { _meta: { x: 'x'.repeat(LIMIT_BYTES) } }
    const line = JSON.stringify({ method: 'notifications/tools/list_changed', params })
    this.says(0, Array.from({ length: count }, () => line).join('\n'))
  }

  reads(client: number): void {
    this.stalled.delete(client)
    this.apply({ type: 'client-wrote', client: client as typeof ANNA, pendingBytes: 0 })
  }

  told(client: number): number {
    return this.all(client).filter(({ method }: Message) => method !== undefined).length
  }
}

it.each([
  [ANNA, BERT],
  [BERT, ANNA],
])('8.3 whose line has filled the queues of clients %i and %i goes on when both have room', (first, last) => {
  const rig = new Rig()
  rig.tellsAll(5)
  rig.reads(first)
  expect(rig.told(first)).toBe(1)
  expect(rig.did('resume-worker')).toEqual([])
  rig.reads(last)
  expect([first, last].map((client) => rig.told(client))).toEqual([5, 5])
  expect(rig.did('resume-worker')).toHaveLength(1)
})

it('8.3 whose line has filled the queues of two clients goes on when one has gone and the other has room', () => {
  const rig = new Rig()
  rig.tellsAll(5)
  rig.goes(BERT)
  expect(rig.did('resume-worker')).toEqual([])
  rig.reads(ANNA)
  expect(rig.told(ANNA)).toBe(5)
  expect(rig.did('resume-worker')).toHaveLength(1)
  rig.stalled.add(ANNA)
  rig.tellsAll(2)
  expect(rig.did('resume-worker')).toHaveLength(1)
  rig.goes(ANNA)
  expect(rig.did('resume-worker')).toHaveLength(2)
})

it('8.3 whoever has filled the queues of two members of an aggregate goes on when both have room', () => {
  const rig = new KernelRig({
    pools: ['p', 'q'].map((id) => ({ id })),
    limits: { maxOutputQueueBytes: LIMIT_BYTES },
  })
  rig.connects(ANNA)
  for (const [slot, [client, pool]] of [[CARL, 'p'] as const, [DORA, 'q'] as const].entries()) {
    rig.stalled.add(`worker ${slot}`)
    rig.connects(client, { door: 'internal', pool, isDelegate: true, behalfOf: ANNA })
    rig.send(client, { id: 1, method: 'm', params: 'x'.repeat(LIMIT_BYTES) })
  }
  expect(rig.did('pause-client').map(({ client }) => client)).toEqual([ANNA, CARL, DORA])
  for (const [slot, resumed] of [[CARL], [CARL, DORA, ANNA]].entries()) {
    rig.apply({ type: 'worker-wrote', ...rig.of(slot), pendingBytes: 0 })
    expect(rig.did('resume-client').map(({ client }) => client)).toEqual(resumed)
  }
})
