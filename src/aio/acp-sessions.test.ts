/** Sessions with an agent that are kept under a name (contract 13.14). */
import { expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import type { AcpPeer } from './acp-peer.ts'
import { AcpSessions } from './acp-sessions.ts'
import type { GatewayPort } from './port.ts'

const IDLE_MS = 3_600_000

function stage() {
  const closed: unknown[] = []
  const clock = { nowMs: 1 }
  let made = 0
  const peer = {
    hasLeft: false,
    facts: async () => ({ canClose: true }),
    request: async (method: string, params: { sessionId?: string }) => {
      if (method === 'session/close') closed.push(params.sessionId)
      return { result: { sessionId: `s${++made}` }, worker: null }
    },
  }
  const port = { nowMs: () => clock.nowMs }
  const place = { name: 'agent', pool: 'agent', cwd: '/' }
  const sessions = new AcpSessions(peer as unknown as AcpPeer, place, port as unknown as GatewayPort)
  const open = (name: string) => sessions.open(name, new AbortController().signal)
  return { open, closed, clock }
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
const REFUSED = { body: { data: { reason: 'overloaded' } } }

test('a caller has 1,000 of them: the one that was left alone for longest makes room, and those that are busy make none', async () => {
  verifies('13.14-sessions')
  const { open, closed } = stage()
  const busy = []
  for (let n = 0; n < 1_000; n++) busy.push(await open(`n${n}`))
  await expect(open('one more')).rejects.toMatchObject(REFUSED)
  busy[500]!.release()
  expect((await open('one more')).id).toBe('s1001')
  await settled()
  expect(closed).toEqual([busy[500]!.id])
  await expect(open('yet another')).rejects.toMatchObject(REFUSED)
})

test('calls of one session go one after the other, and 16 wait', async () => {
  verifies('13.14-sessions')
  const { open } = stage()
  const first = await open('n')
  const order: number[] = []
  const waiting = Array.from({ length: 16 }, async (_, n) => {
    const session = await open('n')
    order.push(n)
    expect(session.id).toBe(first.id)
    session.release()
  })
  await settled()
  await expect(open('n')).rejects.toMatchObject(REFUSED)
  expect(order).toEqual([])
  first.release()
  await Promise.all(waiting)
  expect(order).toEqual(Array.from({ length: 16 }, (_, n) => n))
})

test('one that was left alone for an hour is closed, and the name is a new session', async () => {
  verifies('13.14-sessions')
  const { open, closed, clock } = stage()
  const first = await open('n')
  first.release()
  clock.nowMs += IDLE_MS - 1
  const again = await open('n')
  expect(again.id).toBe(first.id)
  again.release()
  clock.nowMs += IDLE_MS
  expect((await open('n')).id).not.toBe(first.id)
  await settled()
  expect(closed).toEqual([first.id])
})
