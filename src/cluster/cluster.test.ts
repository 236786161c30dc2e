/** Who takes a newcomer, as far as a node knows (contract 14.3). */
import { expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { type AnnouncedPool, writeAnnouncement } from './announcement.ts'
import { Cluster } from './cluster.ts'

const POOL: AnnouncedPool = {
  id: 'p',
  protocol: 'plain',
  era: 'auto',
  ready: 1,
  workers: 1,
  outstanding: 0,
  streams: 0,
  sessions: 0,
  maxLineBytes: 1_000,
  isPortable: false,
}

function start() {
  const port = {
    publish: () => true,
    flushSoon: () => {},
    opened: () => {},
    changed: () => {},
    log: () => {},
  }
  const options = { cluster: 'c', node: 'a', version: '1', run: 1, lostAfterMs: 2_000, chance: () => 0 }
  const cluster = new Cluster(options, port)
  cluster.connected(65_536, 0)
  const says = (node: string, streams: number, nowMs: number): void => {
    const word = { lowest: 1, highest: 1, version: '1', run: 9, number: 0, state: 'ready', agents: [] } as const
    cluster.receive(`bus.c.all.${node}`, writeAnnouncement({ ...word, pools: [{ ...POOL, streams }] }), nowMs)
  }
  return { cluster, says }
}

test('a newcomer counts until the node has it, however many words were under way', () => {
  verifies('14.3-choice')
  const { cluster, says } = start()
  says('b', 0, 0)
  says('c', 1, 0)
  expect(cluster.choose('p')).toBe('b')
  const newcomer = cluster.expect('b', 'p', 10)
  newcomer.stream = cluster.open('b', Buffer.from('{}'), 10)
  cluster.expect('b', 'p', 10)
  expect(cluster.choose('p')).toBe('c')
  // Said before they arrived there.
  says('b', 0, 20)
  expect(cluster.choose('p')).toBe('c')
  // One has arrived, and is counted by the node; the other never will.
  newcomer.stream!.opening = undefined
  says('b', 1, 30)
  expect(cluster.choose('p')).toBe('c')
  says('b', 0, 2_020)
  expect(cluster.choose('p')).toBe('b')
})
