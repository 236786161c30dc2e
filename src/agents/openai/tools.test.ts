import type { SessionUpdate } from '@agentclientprotocol/sdk'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import type { McpConnection } from './mcp-server.ts'
import { cancelledText, maxResultChars, type Permission, refusedText, runCalls } from './tool-calls.ts'
import { nameFunctions } from './tool-names.ts'
import { maxFunctions, openToolbox, Toolbox } from './toolbox.ts'

const options = { cwd: '/', version: '1', connectTimeoutMs: 1, callTimeoutMs: 1, signal: new AbortController().signal }

function server(name: string, tools: string[], call: McpConnection['call'] = async () => ok('done')): McpConnection {
  const rows = tools.map((tool) => ({
    name: tool,
    title: tool,
    description: undefined,
    inputSchema: { type: 'object' },
  }))
  return { name, tools: rows, call, close: async () => {} }
}
const ok = (text: string) => ({ failed: false, text })
const callOf = (name: string, args = '{}') => ({
  id: 'c1',
  type: 'function' as const,
  function: { name, arguments: args },
})

describe('function names', () => {
  it('are allowed and unique for any tools', () => {
    verifies('O13-names')
    const tool = fc.record({
      server: fc.string(),
      tool: fc.oneof(fc.string(), fc.constantFrom('read', 'r'.repeat(80))),
    })
    fc.assert(
      fc.property(fc.array(tool), (tools) => {
        const names = nameFunctions(tools)
        expect(new Set(names).size).toBe(tools.length)
        for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
      }),
      { numRuns: 200 },
    )
  })

  it('stay as they are where they can, and say the server where they cannot', () => {
    const tools = ['files', 'notes', 'notes'].map((name) => ({ server: name, tool: 'read' }))
    expect(nameFunctions(tools)).toEqual(['read', 'notes_read', 'read_2'])
  })
})

describe('toolbox', () => {
  it('leads each function to its tool', () => {
    const toolbox = new Toolbox([server('a', ['do it']), server('b', ['do it'])], [])
    expect(toolbox.functions.map((offer) => offer.function.name)).toEqual(['do_it', 'b_do_it'])
    expect(toolbox.find('b_do_it')).toMatchObject({ server: { name: 'b' }, tool: { name: 'do it' } })
  })

  it('goes on without servers that cannot be reached', async () => {
    const wanted = ['good', 'bad'].map((name) => ({ name, command: name, args: [], env: [] }))
    const toolbox = await openToolbox(wanted, options, async ({ name }) => {
      if (name === 'bad') throw new Error('spawn bad ENOENT')
      return server(name, ['x'])
    })
    expect(toolbox.functions).toHaveLength(1)
    expect(toolbox.lost).toEqual([{ name: 'bad', reason: 'spawn bad ENOENT' }])
  })

  it.each([
    [maxFunctions - 1, 0],
    [maxFunctions, 0],
    [maxFunctions + 1, 1],
  ])('of %i tools leaves out %i and says so', (count, left) => {
    const toolbox = new Toolbox(
      [
        server(
          'a',
          Array.from({ length: count }, (_, index) => `t${index}`),
        ),
      ],
      [],
    )
    expect(toolbox.functions).toHaveLength(count - left)
    expect(toolbox.lost).toHaveLength(left)
  })
})

describe('tool calls', () => {
  async function run(toolbox: Toolbox, permission: Permission, ...calls: ReturnType<typeof callOf>[]) {
    const updates: SessionUpdate[] = []
    const cancel = new AbortController()
    const audience = {
      update: async (update: SessionUpdate) => void updates.push(update),
      askPermission: async () => permission,
    }
    const results = await runCalls(calls, toolbox, audience, cancel)
    const statuses = updates.map((update) => ('status' in update ? update.status : undefined))
    return { texts: results.map((result) => result.content), statuses, updates, cancelled: cancel.signal.aborted }
  }
  const failing: McpConnection['call'] = async () => Promise.reject(new Error('broken pipe'))

  it('are shown, asked for, run and answered', async () => {
    const seen: unknown[] = []
    const call: McpConnection['call'] = async (tool, args) => {
      seen.push([tool, args])
      return ok('sunny')
    }
    const toolbox = new Toolbox([server('w', ['get weather'], call)], [])
    const { texts, statuses } = await run(toolbox, 'allowed', callOf('get_weather', '{"city":"Minsk"}'))
    expect(texts).toEqual(['sunny'])
    expect(statuses).toEqual(['pending', 'in_progress', 'completed'])
    expect(seen).toEqual([['get weather', { city: 'Minsk' }]])
  })

  it.each<[string, Permission, ReturnType<typeof callOf>, string]>([
    ['refused', 'refused', callOf('x'), refusedText],
    ['of an unknown name', 'allowed', callOf('y'), 'There is no tool of this name.'],
    ['with broken arguments', 'allowed', callOf('x', '{"a":'), 'The arguments are not a JSON object.'],
    ['with a list for arguments', 'allowed', callOf('x', '[1]'), 'The arguments are not a JSON object.'],
    ['that breaks', 'allowed', callOf('x'), 'The call failed: broken pipe'],
  ])('%s end as failed and the model is told why', async (_, permission, call, text) => {
    verifies('O13-refused')
    const { texts, statuses } = await run(new Toolbox([server('s', ['x'], failing)], []), permission, call)
    expect(texts).toEqual([text])
    expect(statuses.at(-1)).toBe('failed')
  })

  it('take no arguments as an empty object', async () => {
    const toolbox = new Toolbox([server('s', ['x'], async (_, args) => ok(JSON.stringify(args)))], [])
    expect((await run(toolbox, 'allowed', callOf('x', ''))).texts).toEqual(['{}'])
  })

  it('show long arguments cut, and pass them on whole', async () => {
    const long = JSON.stringify({ text: 'x'.repeat(100_000) })
    const toolbox = new Toolbox([server('s', ['x'], async (_, args) => ok(String(JSON.stringify(args).length)))], [])
    const { texts, updates } = await run(toolbox, 'allowed', callOf('x', long))
    expect(texts).toEqual([String(long.length)])
    expect(JSON.stringify(updates[0]).length).toBeLessThan(70_000)
  })

  it('all get a result when the user cancels at the first', async () => {
    const toolbox = new Toolbox([server('s', ['x'])], [])
    const { texts, cancelled } = await run(toolbox, 'cancelled', callOf('x'), callOf('x'))
    expect(texts).toEqual([cancelledText, cancelledText])
    expect(cancelled).toBe(true)
  })

  it('have results of bounded length', async () => {
    const toolbox = new Toolbox([server('s', ['x'], async () => ok('x'.repeat(maxResultChars + 1)))], [])
    const { texts } = await run(toolbox, 'allowed', callOf('x'))
    expect(texts[0]).toMatch(/\[cut after \d+ characters\]$/)
    expect(texts[0]!.length).toBeLessThan(maxResultChars + 100)
  })
})
