/** Whatever callers, agents and the world do, in any order: one answer per request, one end per call, unique ids. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { FakePort, stdioAgent, workbench } from '../../test/fixtures/aio/workbench.ts'
import { callKey } from './parents.ts'
import type { CallEnd, Caller } from './port.ts'

const callers: readonly Caller[] = [
  { kind: 'client', key: '1', isLocal: true },
  { kind: 'client', key: '2', isLocal: false },
  { kind: 'worker', key: 'reader.1', pool: 'reader' },
]
const caller = fc.constantFrom(...callers)
const id = fc.oneof(fc.integer({ min: -1, max: 4 }), fc.constantFrom('1', 'a', ''), fc.double({ noNaN: true }))
const traceId = fc.constantFrom(undefined, 'T', 'U', 'AIO-TR-20250326-0001')
const said = fc.constantFrom(
  { result: 1 },
  { output: { type: 'text', value: 'x' } },
  { error: { code: -1, message: 'no' } },
  { partial: true, outputs: [] },
  {},
)

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('ask' as const), caller, id: fc.option(id), traceId }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('say' as const), at: fc.nat(20), said }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fail' as const), at: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), caller, id }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('gone' as const), caller }) },
)

const isAbandoned = (end: CallEnd): boolean =>
  (end.error?.data as { reason?: string } | undefined)?.reason === 'caller_gone'

it('owes each request one answer and each call one end', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { gateway, port, traces } = workbench(new FakePort(), [stdioAgent()])
      const owed = new Set<string>()
      let total = 0
      let cancelled = 0
      const keyOf = (who: Caller, request: unknown): string => `${who.kind}${who.key} ${JSON.stringify(request)}`
      for (const now of steps) {
        if (now.do === 'ask') {
          const given = {
            ...(now.id === null ? {} : { id: now.id }),
            ...(now.traceId ? { trace_id: now.traceId } : {}),
          }
          gateway.receive(now.caller, { method: 'reader::x', ...given }, 10)
          if (now.id !== null) total += 1
          owed.add(keyOf(now.caller, now.id))
        } else if (now.do === 'say') port.asked[now.at]?.listener.received(now.said)
        else if (now.do === 'fail') port.asked[now.at]?.listener.failed({ code: -32603, message: 'gone' })
        else if (now.do === 'cancel' && gateway.cancel(now.caller, now.id)) cancelled += 1
        else if (now.do === 'gone') gateway.gone(now.caller)
      }
      const abandoned = new Set(traces.ends.filter(isAbandoned).map(callKey))
      await gateway.close()

      const answers = port.replies.filter(({ message }) => message['method'] === undefined)
      const left = traces.starts.filter((call) => call.requestId !== null && abandoned.has(callKey(call))).length
      expect(answers).toHaveLength(total - cancelled - left)
      for (const { caller: who, message } of answers) expect(owed.has(keyOf(who, message['id']))).toBe(true)

      const began = traces.starts.map(callKey)
      expect(new Set(began).size).toBe(began.length)
      expect(traces.ends.map(callKey).sort()).toEqual(began.sort())
      for (const call of traces.starts) {
        const parent = `${call.traceId}#${call.parentId}`
        expect(call.parentId === null || (began.includes(parent) && call.parentId !== call.callId)).toBe(true)
      }
      expect(gateway.openCalls).toBe(0)
    }),
    { numRuns: 300 },
  )
})
