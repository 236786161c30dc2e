/** What of other nodes becomes pools of this one (contract 14.2, 14.9). */
import { expect, test } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import type { AnnouncedPool } from '../../cluster/announcement.ts'
import type { NodeStatus } from '../../cluster/cluster.ts'
import { CLUSTER } from '../../cluster/limits.ts'
import { placesOf } from './imports.ts'

const pool = (id: string): AnnouncedPool => ({
  id,
  protocol: 'plain',
  era: 'auto',
  ready: 1,
  workers: 1,
  outstanding: 0,
  streams: 0,
  sessions: 0,
  maxLineBytes: 1_000,
  isPortable: false,
})

const node = (name: string, pools: number): NodeStatus => ({
  node: name,
  state: 'ready',
  version: '1',
  heard_ms: 0,
  rtt_ms: 0,
  streams: 0,
  pools: Array.from({ length: pools }, (_, n) => pool(`p${n}`)),
  agents: [],
})

test('whatever others announce, no more pools than the bound are imported, and whoever was first keeps its own', () => {
  verifies('14.9-bounds')
  const flood = Array.from({ length: CLUSTER.maxNodes - 1 }, (_, n) => node(`flood${n}`, 1_000))
  const places = placesOf([node('true', 3), ...flood], ['*'])
  expect(places.size).toBe(CLUSTER.maxPlaces)
  expect([...places.keys()].slice(0, 3)).toEqual(['p0@true', 'p1@true', 'p2@true'])
  expect(placesOf(flood, ['p7']).size).toBe(flood.length)
})

test('pools of lost nodes leave room for those of whoever has come since', () => {
  verifies('14.9-bounds')
  const flood = Array.from({ length: CLUSTER.maxNodes - 1 }, (_, n) => node(`flood${n}`, 1_000))
  const gone = flood.map((each) => ({ ...each, state: 'lost' as const }))
  const places = placesOf([...gone, node('true', 3)], ['*'])
  expect(places.size).toBe(CLUSTER.maxPlaces)
  expect(places.get('p0@true')).toMatchObject({ node: 'true', refusal: undefined })
})
