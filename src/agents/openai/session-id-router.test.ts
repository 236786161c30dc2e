import type { AnyMessage } from '@agentclientprotocol/sdk'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SessionIdRouter } from './session-id-router.ts'

const line = (fields: Record<string, unknown>) => ({ jsonrpc: '2.0', ...fields }) as unknown as AnyMessage

describe('session id router', () => {
  it('takes the name off a request and puts it on the answer', () => {
    const router = new SessionIdRouter()
    expect(router.inbound(line({ id: 1, method: 'initialize', sessionId: 'bus', params: {} }))).toEqual(
      line({ id: 1, method: 'initialize', params: {} }),
    )
    expect(router.outbound(line({ id: 1, result: {} }))).toEqual(line({ id: 1, result: {}, sessionId: 'bus' }))
    expect(router.outbound(line({ id: 1, result: {} }))).toEqual(line({ id: 1, result: {} }))
  })

  it('learns which session belongs to a name from the answer to session/new', () => {
    const router = new SessionIdRouter()
    router.inbound(line({ id: 1, method: 'session/new', sessionId: 'bus' }))
    router.outbound(line({ id: 1, result: { sessionId: 'acp' } }))
    expect(router.outbound(line({ method: 'session/update', params: { sessionId: 'acp' } }))).toMatchObject({
      sessionId: 'bus',
    })
    expect(
      router.outbound(line({ id: 1, method: 'session/request_permission', params: { sessionId: 'acp' } })),
    ).toMatchObject({ id: 1, sessionId: 'bus' })
  })

  it('does not take a request of the agent for an answer', () => {
    const router = new SessionIdRouter()
    router.inbound(line({ id: 0, method: 'session/prompt', sessionId: 'bus', params: { sessionId: 'acp' } }))
    router.outbound(line({ id: 0, method: 'session/request_permission', params: { sessionId: 'acp' } }))
    expect(router.inbound(line({ id: 0, result: {}, sessionId: 'bus' }))).toEqual(line({ id: 0, result: {} }))
    expect(router.outbound(line({ id: 0, result: {} }))).toMatchObject({ sessionId: 'bus' })
  })

  it('tells 5 from "5"', () => {
    const router = new SessionIdRouter()
    router.inbound(line({ id: 5, method: 'a', sessionId: 'number' }))
    router.inbound(line({ id: '5', method: 'a', sessionId: 'string' }))
    expect(router.outbound(line({ id: '5', result: {} }))).toMatchObject({ sessionId: 'string' })
    expect(router.outbound(line({ id: 5, result: {} }))).toMatchObject({ sessionId: 'number' })
  })

  it('addresses a line that names nothing else', () => {
    const router = new SessionIdRouter()
    router.inbound(line({ id: 1, method: 'session/new', sessionId: 'bus' }))
    router.outbound(line({ id: 1, result: { sessionId: 'acp' } }))
    expect(router.inbound(line({ method: 'cancel', sessionId: 'bus' }))).toEqual(
      line({ method: 'cancel', params: { sessionId: 'acp' } }),
    )
    expect(router.inbound(line({ method: 'cancel', sessionId: 'other' }))).toMatchObject({
      params: { sessionId: 'other' },
    })
  })

  it.each<unknown[]>([[{ toString: {} }], [null], [[]], [{ valueOf: 1 }]])(
    'survives %j where an id or a method belongs',
    (odd) => {
      const router = new SessionIdRouter()
      expect(router.inbound(line({ id: odd, method: odd, sessionId: 'bus' }))).toEqual(line({ id: odd, method: odd }))
      expect(router.outbound(line({ id: odd, result: {} }))).toMatchObject({ id: odd, result: {} })
    },
  )

  it('never touches the lines of a client that sends no name', () => {
    const router = new SessionIdRouter()
    const value = fc.dictionary(fc.constantFrom('id', 'method', 'params', 'result', 'error'), fc.jsonValue())
    fc.assert(
      fc.property(value, (fields) => {
        expect(router.inbound(line(fields))).toEqual(line(fields))
        expect(router.outbound(line(fields))).toEqual(line(fields))
      }),
      { numRuns: 200 },
    )
  })
})
