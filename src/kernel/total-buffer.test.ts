import { expect, it } from 'vitest'
import { KernelRig } from '../../test/support/kernel-rig.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import type { ClientId } from './vocabulary.ts'

const TOTAL_BYTES = 2_000_000
const HELD_BYTES = 150_000
const HOLDERS = Array.from({ length: 20 }, (_, index) => (index + 1) as ClientId)
const INNOCENT = 99 as ClientId

/** A bus whose clients begin long lines and do not end them. */
class Rig extends KernelRig {
  constructor() {
    super({ pools: [{ id: 'work', protocol: 'auto' }], limits: { maxTotalBufferBytes: TOTAL_BYTES } })
    for (const client of [...HOLDERS, INNOCENT]) this.connects(client)
    for (const client of HOLDERS) this.receive(client, `{"id":1,"method":"${'z'.repeat(HELD_BYTES)}`)
  }

  receive(client: ClientId, text: string): void {
    this.apply({ type: 'client-received', client, bytes: Buffer.from(text) })
  }

  who(deed: 'pause-client' | 'resume-client' | 'close-client'): ClientId[] {
    return this.did(deed).map(({ client }) => client)
  }
}

it('8.3 above max_total_buffer those who hold much are paused and who holds little is served', () => {
  const rig = new Rig()
  expect(rig.who('pause-client').length).toBeGreaterThan(5)
  rig.receive(INNOCENT, '{"id":1,"method":')
  rig.receive(INNOCENT, '"asked"}\n')
  expect(rig.who('pause-client')).not.toContain(INNOCENT)
  expect(rig.at(0)).toEqual([{ id: 1, method: 'asked' }])
})

it('8.3 above max_total_buffer as many of the largest are closed at once as it takes', () => {
  const rig = new Rig()
  const paused = rig.who('pause-client')
  rig.pass(DEFAULT_LIMITS.blockingTimeoutMs - 1_000)
  expect(rig.who('close-client')).toEqual([])
  rig.pass(2_000)
  const closed = rig.who('close-client')
  expect((HOLDERS.length - closed.length) * HELD_BYTES * 2).toBeLessThan(TOTAL_BYTES + HELD_BYTES)
  expect(closed.length).toBeLessThan(HOLDERS.length)
  expect(closed).not.toContain(INNOCENT)
  expect(rig.who('resume-client')).toEqual(paused.filter((client) => !closed.includes(client)))
})
