/** Who takes a newcomer, as far as a node knows, and whom it knows at all (contract 14.3, 14.9). */
import { expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { type AnnouncedPool, writeAnnouncement } from './announcement.ts'
import { Cluster } from './cluster.ts'
import { CLUSTER } from './limits.ts'

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
  const spokenTo = new Set<string>()
  const told: string[] = []
  const port = {
    publish: (subject: string) => spokenTo.add(subject).size > 0,
    flushSoon: () => {},
    maxGuests: 10,
    opened: () => {},
    changed: () => {},
    log: (_level: string, text: string) => void told.push(text),
  }
  const options = { cluster: 'c', node: 'a', version: '1', run: 1, lostAfterMs: 2_000, chance: () => 0 }
  const cluster = new Cluster(options, port)
  cluster.connected(65_536, 0)
  const says = (node: string, streams: number, nowMs: number): void => {
    const word = { lowest: 1, highest: 1, version: '1', run: 9, number: 0, state: 'ready', agents: [] } as const
    cluster.receive(`bus.c.all.${node}`, writeAnnouncement({ ...word, pools: [{ ...POOL, streams }] }), nowMs)
  }
  return { cluster, says, spokenTo, told }
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

test('nothing is kept of a node that is not known any more, however many have been there', () => {
  verifies('14.9-bounds')
  const { cluster, says, spokenTo } = start()
  let nowMs = 0
  for (let round = 0; round < 5; round++) {
    for (let n = 0; n < CLUSTER.maxNodes; n++) says(`round${round}-${n}`, 0, nowMs)
    for (const untilMs = nowMs + 2_500; nowMs < untilMs; nowMs += CLUSTER.lookEveryMs) cluster.tick(nowMs)
  }
  spokenTo.clear()
  for (const untilMs = nowMs + 11_000; nowMs < untilMs; nowMs += CLUSTER.lookEveryMs) cluster.tick(nowMs)
  expect(cluster.nodes(nowMs)).toHaveLength(CLUSTER.maxNodes)
  expect(spokenTo.size).toBeLessThanOrEqual(CLUSTER.maxNodes + 1)
  // Whoever is back goes on where it was.
  says('round0-1', 0, nowMs)
  expect(cluster.open('round0-1', Buffer.from('{}'), nowMs)).toBeDefined()
})

test('another node of this name is told of once, and counted each time', () => {
  verifies('14.9-hostile')
  const { cluster, says, told } = start()
  for (let nowMs = 0; nowMs < 60_000; nowMs += 500) says('a', 0, nowMs)
  expect(told.filter((text) => text.startsWith('another node of this name'))).toHaveLength(1)
  expect(cluster.junk.get('a')).toBe(120)
  expect(cluster.nodes(60_000)).toEqual([])
})

test('a break of the way that is shorter than lost_after_ms loses nobody, whatever was heard last before it', () => {
  verifies('14.8-short-break', '14.7-lost')
  const { cluster, says } = start()
  const runFrom = (fromMs: number, toMs: number): void => {
    for (let ms = fromMs; ms <= toMs; ms += CLUSTER.lookEveryMs) cluster.tick(ms)
  }
  const stateOf = (node: string) => cluster.nodes(0).find((each) => each.node === node)?.state
  says('dead', 0, 0)
  runFrom(0, 1_000)
  says('b', 0, 1_000)
  runFrom(1_100, 1_500)
  cluster.disconnected(1_500)
  // Whoever was late before the break is not excused by it.
  runFrom(1_600, 2_000)
  expect(stateOf('dead')).toBe('lost')
  runFrom(2_100, 3_400)
  cluster.connected(65_536, 3_450)
  runFrom(3_500, 3_900)
  expect(cluster.lost).toBe(1)
  says('b', 0, 3_950)
  cluster.disconnected(4_000)
  runFrom(4_000, 6_000)
  expect(stateOf('b')).toBe('lost')
})

test('a pool that is named like that of another node is nonsense', () => {
  verifies('14.2-at-node', '14.9-hostile')
  const { cluster } = start()
  const word = { lowest: 1, highest: 1, version: '1', run: 9, number: 0, state: 'ready', agents: [] } as const
  cluster.receive('bus.c.all.b', writeAnnouncement({ ...word, pools: [{ ...POOL, id: 'p@d' }] }), 0)
  expect(cluster.choose('p@d')).toBeUndefined()
  expect(cluster.nodes(0)).toEqual([])
  expect([...cluster.junk]).toEqual([['b', 1]])
})
