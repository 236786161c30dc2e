import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { type TemporaryFolder, temporaryFolder } from '../../test/fixtures/trace/calls.ts'
import { type Database, openDatabase } from '../host/sqlite.ts'
import { CallIds } from './call-ids.ts'
import { otelTraceId, spanId } from './otel-ids.ts'
import { prepareDatabase } from './schema.ts'
import { TraceIds } from './trace-ids.ts'
import { reserveNumbers } from './upkeep.ts'

const NOON_MS = Date.UTC(2026, 2, 26, 12)
let folder: TemporaryFolder
let opened = 0

beforeAll(() => {
  folder = temporaryFolder()
})
afterAll(() => folder.remove())

/** An issuer of its own on a database that others use too. */
async function issuer(db: Database): Promise<TraceIds> {
  const ids = new TraceIds(
    'bus',
    () => NOON_MS,
    async (...args) => reserveNumbers(db, ...args),
  )
  await ids.prepare()
  return ids
}

it('no number is issued twice, over restarts and with several issuers at a time', async () => {
  verifies('T1-counter')
  const step = fc.record({ issuer: fc.nat(2), count: fc.integer({ min: 1, max: 3_000 }), restarts: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
      const path = join(folder.path, `${++opened}.db`)
      const databases = [await openDatabase(path), await openDatabase(path), await openDatabase(path)]
      prepareDatabase(databases[0]!, () => 'bus')
      const issuers = await Promise.all(databases.map(issuer))
      const issued: string[] = []
      for (const { issuer: index, count, restarts } of steps) {
        for (let n = 0; n < count; n += 1) issued.push(issuers[index]!.issue())
        await Promise.resolve()
        if (restarts) issuers[index] = await issuer(databases[index]!)
      }
      for (const db of databases) db.close()
      expect(new Set(issued).size).toBe(issued.length)
    }),
    { numRuns: 25 },
  )
})

it('a call id is the request id where that is free, and never used twice in a trace', () => {
  verifies('T2-unique')
  const requestId = fc.oneof(fc.integer({ min: -3, max: 12 }), fc.constant('7'), fc.constant(null), fc.constant(1.5))
  const call = fc.record({ traceId: fc.constantFrom('A', 'B'), requestId })
  fc.assert(
    fc.property(fc.array(call, { maxLength: 60 }), (calls) => {
      const ids = new CallIds()
      const used = new Map<string, Set<number>>()
      for (const { traceId, requestId: wish } of calls) {
        const taken = used.get(traceId) ?? new Set<number>()
        const id = ids.allocate(traceId, wish)
        const isFree = typeof wish === 'number' && Number.isInteger(wish) && wish > 0 && !taken.has(wish)
        if (isFree) expect(id).toBe(wish)
        expect(taken.has(id)).toBe(false)
        expect(Number.isSafeInteger(id) && id > 0).toBe(true)
        used.set(traceId, taken.add(id))
      }
    }),
  )
})

it('call ids stay unique in traces that were forgotten and in traces with very many calls', () => {
  const ids = new CallIds()
  const first = [3, 9].map((wish) => ids.allocate('old', wish))
  for (let n = 0; n < 12_000; n += 1) ids.allocate(`T${n}`, 1)
  expect(first).not.toContain(ids.allocate('old', 9))
  const many = Array.from({ length: 25_000 }, (_, n) => ids.allocate('many', n * 2 + 1))
  expect(new Set(many).size).toBe(25_000)
})

it('call ids go on above what an earlier run has used', () => {
  const ids = new CallIds()
  ids.remember([['T', 40]])
  expect([ids.allocate('T', 40), ids.allocate('T', 50), ids.allocate('T', null)]).toEqual([41, 50, 42])
})

it('W3C ids have their form, and differ wherever their origin differs', () => {
  const origin = fc.tuple(fc.uuid(), fc.string(), fc.nat())
  fc.assert(
    fc.property(origin, origin, (one, other) => {
      const [first, second] = [one, other].map(([instance, traceId, callId]) => ({
        trace: otelTraceId(instance, traceId),
        span: spanId(instance, traceId, callId),
      }))
      expect(first?.trace).toMatch(/^[0-9a-f]{32}$/)
      expect(first?.span).toMatch(/^[0-9a-f]{16}$/)
      expect(first?.span === second?.span).toBe(one.join('|') === other.join('|'))
    }),
  )
})
