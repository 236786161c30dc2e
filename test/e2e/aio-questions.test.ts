/** An agent that asks back in the middle of a call hears an answer at once, and its question is never taken for one. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, launch } from '../support/bus.ts'
import { Workspace } from '../support/workspace.ts'

const program = fileURLToPath(new URL('aio-asking-server.mjs', import.meta.url))
const server = (id: string, more: object = {}) => ({
  id,
  command: process.execPath,
  args: [program],
  aio: { type: 'mcp' },
  ...more,
})

const workspace = new Workspace()
let bus: Bus

beforeAll(async () => {
  const plain = { id: 'plain', command: process.execPath, args: [program, 'plain'], aio: { type: 'stdio' } }
  const pools = [
    server('shared'),
    server('isolated', { sharing: 'isolated' }),
    server('lease', { sharing: 'lease' }),
    plain,
  ]
  bus = await launch({ config: { pools, aio: { store: { path: 'traces.db' } } } }, workspace)
})
afterAll(() => workspace.remove())

async function heard(pool: string, args: { question: string; same: boolean }): Promise<unknown> {
  const client = await bus.connect()
  const call =
    pool === 'plain'
      ? { method: 'plain::ask', params: args }
      : { method: `${pool}::tools.call`, params: { tool: 't', args } }
  const { result, error } = await client.ask({ id: 1, ...call })
  client.close()
  if (error !== undefined) throw new Error(JSON.stringify(error))
  return pool === 'plain' ? result.heard : result.structuredContent.heard
}

describe.each(['shared', 'isolated', 'lease', 'plain'])('a %s agent', (pool) => {
  for (const same of [false, true]) {
    const id = same ? 'the id of its call' : 'an id of its own'
    test.each(['sampling/createMessage', 'roots/list', 'elicitation/create', 'no/such'])(
      `hears that nobody answers %s, asked with ${id}`,
      async (question) => {
        verifies('N17-answered', 'N17-ids')
        const code = pool === 'plain' ? -32603 : -32601
        expect(await heard(pool, { question, same })).toMatchObject({ error: { code } })
      },
    )
  }

  const knowsPing = pool !== 'plain'
  if (knowsPing)
    test('hears that the bus is there', async () => {
      expect(await heard(pool, { question: 'ping', same: true })).toEqual({ jsonrpc: '2.0', result: {} })
    })
})
