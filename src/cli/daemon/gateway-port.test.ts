/** What the port promises the gateway about time, on a clock of the test's own. */
import { expect, test } from 'vitest'
import type { BusEvent } from '../../kernel/events.ts'
import type { ClientId, PoolSpec, WorkerId } from '../../kernel/vocabulary.ts'
import { type Clock, KernelPort } from './gateway-port.ts'
import { InternalClient } from './internal-client.ts'
import { OddIds } from './odd-ids.ts'

const SERVER = { id: 'p', protocol: 'mcp', era: 'modern', sharing: 'shared', startTimeoutMs: 5_000 } as PoolSpec

/** A port whose workers take everything and say nothing. */
function makePort(pool: PoolSpec) {
  const events: BusEvent[] = []
  const alarms: { delayMs: number; ring: () => void }[] = []
  const opened: InternalClient[] = []
  const clock: Clock = {
    nowMs: () => 0,
    after: (delayMs, ring) => {
      alarms.push({ delayMs, ring })
      return () => {}
    },
    soon: () => {},
  }
  const doorway = {
    apply: () => {},
    openInternal: (_pool: string, _prefer: unknown, listener: ConstructorParameters<typeof InternalClient>[1]) => {
      const client = new InternalClient((opened.length + 1) as ClientId, listener, (event) => events.push(event))
      opened.push(client)
      return client
    },
    openDelegate: () => {
      throw new Error('no agent of this world has sessions')
    },
    room: () => undefined,
    refusing: () => {},
    workersOf: () => 1,
  }
  const port = new KernelPort(
    doorway,
    new OddIds(),
    () => pool,
    () => 0,
    clock,
  )
  return { port, events, alarms, opened }
}

const PROCESS = { worker: 0 as WorkerId, generation: 1 }

test('a server that does not introduce itself in its time to start keeps nobody waiting', async () => {
  const { port, events, alarms, opened } = makePort(SERVER)
  const introduction = port.handshake('p')
  await Promise.resolve()
  opened[0]!.routed(PROCESS)
  expect(alarms.map(({ delayMs }) => delayMs)).toEqual([5_000])
  alarms[0]!.ring()
  expect(await introduction).toBeUndefined()
  expect(events.at(-1)).toEqual({ type: 'client-closed', client: 1, isSettled: false })
})

test('the time of a call to a server of its own runs from the greeting on', () => {
  const { port, opened } = makePort({ ...SERVER, era: 'legacy', sharing: 'isolated' })
  const sent: (string | null)[] = []
  port.request('p', { method: 'tools/list' }, {}, { sent: (worker) => sent.push(worker), received() {}, failed() {} })
  opened[0]!.routed(PROCESS)
  expect(sent).toEqual(['0.1'])
})
