/** Contract 6.7, 14.4: there may be as many workers as clients, so one that has nothing to do holds nothing of its own. */
import { expect, it } from 'vitest'
import { poolOf } from '../../test/support/kernel-rig.ts'
import { DIALECTS } from '../dialects/index.ts'
import { Dialects } from './dialects.ts'
import { emptyMap, emptySet } from './empty.ts'
import { Client, Worker } from './peers.ts'
import { Pool } from './pools.ts'
import type { ClientId, WorkerId } from './vocabulary.ts'

const SHARED: readonly unknown[] = [emptyMap(), emptySet()]

function makeWorker(): Worker {
  const worker = new Worker(0 as WorkerId, new Pool(poolOf({ sharing: 'isolated' }), new Dialects(DIALECTS)), 1)
  worker.renew()
  return worker
}

function makeClient(): Client {
  return new Client({ type: 'client-opened', client: 1 as ClientId, door: 'unix' }, 1_000, 1_000)
}

/** The tables of a peer, and of the lines and gates that are its own. */
function tablesOf(of: object): unknown[] {
  return Object.entries(of).flatMap(([name, value]) => {
    if (value instanceof Map || value instanceof Set) return [value]
    return name === 'gate' || name === 'lobby' ? tablesOf(value) : []
  })
}

it.each([
  ['worker', makeWorker],
  ['client', makeClient],
])('a %s that has done nothing yet has no table of its own', (_, make) => {
  const tables = tablesOf(make())
  expect(tables.length).toBeGreaterThan(8)
  expect(tables.filter((table) => !SHARED.includes(table))).toEqual([])
})
