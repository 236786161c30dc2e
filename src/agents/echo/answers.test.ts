import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Echo } from './answers.ts'

const initialize = (protocolVersion: unknown) => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion },
})

describe('echo', () => {
  it('gives back params and method, and the session', () => {
    expect(new Echo().answer({ id: 'a', method: 'x/y', params: [1], sessionId: 's' })).toEqual([
      { jsonrpc: '2.0', id: 'a', result: { echo: [1], method: 'x/y' }, sessionId: 's' },
    ])
    expect(new Echo().answer({ id: 1, method: 'ping' })).toEqual([
      { jsonrpc: '2.0', id: 1, result: { echo: null, method: 'ping' } },
    ])
  })

  it('answers requests only, each exactly once', () => {
    const line = fc.record(
      { id: fc.oneof(fc.string(), fc.integer()), method: fc.string(), params: fc.jsonValue(), result: fc.jsonValue() },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(line, (fields) => {
        const answers = new Echo().answer(fields)
        const isRequest = fields.id !== undefined && fields.method !== undefined
        expect(answers.map((answer) => answer['id'])).toEqual(isRequest ? [fields.id] : [])
      }),
      { numRuns: 200 },
    )
  })

  describe('of what is nested too deeply to be written', () => {
    const depth = 100_000
    const deep: unknown = JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`)
    const refused = (line: Record<string, unknown>, echo = new Echo()) => JSON.parse(echo.say(line))

    it('is an error, and the next line is answered', () => {
      const echo = new Echo()
      const error = { code: -32600, message: 'this is nested too deeply to be given back' }
      expect(refused({ id: 1, method: 'x', params: deep, sessionId: 's' }, echo)).toEqual({
        ...{ jsonrpc: '2.0', id: 1, sessionId: 's', error },
      })
      expect(refused({ id: deep, method: 'x' }, echo)).toEqual({ jsonrpc: '2.0', id: null, error })
      expect(echo.say({ method: 'x', params: deep })).toBe('')
      expect(refused({ id: 2, method: 'x' }, echo)).toMatchObject({ id: 2, result: {} })
    })

    it('is an error of its protocol too', () => {
      const echo = new Echo()
      echo.answer(initialize('2025-11-25'))
      const params = { name: 'echo', arguments: { a: deep } }
      expect(refused({ id: 1, method: 'tools/call', params }, echo)).toMatchObject({ id: 1, error: { code: -32600 } })
    })
  })

  it('survives a block whose type is no text', () => {
    const echo = new Echo()
    echo.answer(initialize(1))
    const { result } = JSON.parse(echo.say({ id: 1, method: 'session/new' }))
    const params = { sessionId: result.sessionId, prompt: [{ type: { toString: {} } }] }
    expect(echo.say({ id: 2, method: 'session/prompt', params })).toContain('You said: [block]')
  })

  it('is an ACP agent after its initialize', () => {
    const echo = new Echo()
    expect(echo.answer(initialize(7))[0]).toMatchObject({ result: { protocolVersion: 1, authMethods: [] } })
    const [created] = echo.answer({ id: 1, method: 'session/new', params: { cwd: '/', mcpServers: [] } })
    const { sessionId } = created!['result'] as { sessionId: string }
    const params = { sessionId, prompt: [{ type: 'text', text: 'hi' }, { type: 'image' }] }
    expect(echo.answer({ id: 2, method: 'session/prompt', params, sessionId: 'bus' })).toMatchObject([
      {
        method: 'session/update',
        params: { sessionId, update: { content: { text: 'You said: hi\n[image]' } } },
        sessionId: 'bus',
      },
      { id: 2, result: { stopReason: 'end_turn' }, sessionId: 'bus' },
    ])
    expect(echo.answer({ id: 3, method: 'session/prompt', params: { sessionId: 'x' } })).toMatchObject([
      { id: 3, error: { code: -32002, data: { sessionId: 'x' } } },
    ])
    expect(echo.answer({ method: 'session/cancel', params: { sessionId } })).toEqual([])
  })

  it('is an MCP server after its initialize', () => {
    const echo = new Echo()
    expect(echo.answer(initialize('2025-11-25'))[0]).toMatchObject({ result: { protocolVersion: '2025-11-25' } })
    expect(echo.answer({ id: 1, method: 'tools/list' })).toMatchObject([{ result: { tools: [{ name: 'echo' }] } }])
    const call = (name: string, args: unknown) => ({ id: 2, method: 'tools/call', params: { name, arguments: args } })
    expect(echo.answer(call('echo', { text: 'hi' }))).toMatchObject([{ result: { content: [{ text: 'hi' }] } }])
    expect(echo.answer(call('echo', { a: 1 }))).toMatchObject([{ result: { content: [{ text: '{"a":1}' }] } }])
    expect(echo.answer(call('other', {}))).toMatchObject([{ error: { code: -32602 } }])
  })
})
