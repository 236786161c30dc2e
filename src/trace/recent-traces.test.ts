import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { RecentTraces } from './recent-traces.ts'
import { type CallRecord, openRecord } from './record.ts'

function recordOf(traceId: string): CallRecord {
  const place = { traceId, callId: 1, parentId: null, requestId: 1, agent: 'a', method: 'm' }
  return openRecord({ ...place, protocol: 'aio', type: 'stdio', caller: 'client', input: {}, startedAtMs: 1 } as never)
}

test('a trace that is forgotten is held by nothing', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const recent = new RecentTraces('b', { maxCalls: 2, maxPayloadBytes: 1_000_000 }, { keepInput: () => null } as never)
  const held = Array.from({ length: 5 }, (_, number) => {
    const record = recordOf(`T-${number}`)
    recent.add(record)
    return new WeakRef(record)
  })
  // What was made in this turn is kept to its end.
  await new Promise(setImmediate)
  collect()
  expect(held.map((each) => each.deref()?.traceId)).toEqual([undefined, undefined, undefined, 'T-3', 'T-4'])
  expect(recent.has('T-4')).toBe(true)
})
