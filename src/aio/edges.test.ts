/** An exception in an adapter ends its own call with an error, and nothing else. */
import { expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import {
  CLIENT,
  FakePort,
  type Line,
  mcpAgent,
  stdioAgent,
  until,
  workbench,
} from '../../test/fixtures/aio/workbench.ts'
import type { AgentSpec } from './agent-spec.ts'
import type { Exchange, ExchangeListener } from './port.ts'

const cause = new TypeError('broken inside')
const params = { inputs: [{ type: 'text', value: 'x' }] }

class ThrowsOnRequest extends FakePort {
  override request(): Exchange {
    throw cause
  }
}

class ThrowsOnFinish extends FakePort {
  override request(
    pool: string,
    message: { method: string } & Line,
    options: { affinity?: string },
    listener: ExchangeListener,
  ): Exchange {
    const exchange = super.request(pool, message, options, listener)
    queueMicrotask(() => listener.received({ id: 1, result: {} }))
    return exchange
  }

  override finish(): void {
    throw cause
  }
}

it.each<[string, FakePort, AgentSpec, string]>([
  ['sends to a program', new ThrowsOnRequest(), stdioAgent(), 'reader::input'],
  ['sends to an MCP server', new ThrowsOnRequest(), mcpAgent(), 'math_agent::tools.list'],
  ['describes an MCP server', new ThrowsOnRequest(), mcpAgent(), 'math_agent::help'],
  ['hears a program', new ThrowsOnFinish(), stdioAgent(), 'reader::input'],
  ['hears an MCP server', new ThrowsOnFinish(), mcpAgent(), 'math_agent::tools.list'],
  ['starts a process', new FakePort(), stdioAgent({ mode: 'oneshot' }), 'reader::input'],
])('an adapter that throws when it %s', async (_title, port, agent, method) => {
  verifies('8.6-edges')
  const broken: unknown[] = []
  const spawnOneshot = (): never => {
    throw cause
  }
  const { gateway, traces } = workbench(port, [agent], { broke: (error) => broken.push(error), spawnOneshot })
  gateway.receive(CLIENT, { method, params, id: 1 }, 50)
  const { message } = await until(() => port.replies[0], 'an answer')
  expect(message).toMatchObject({ id: 1, error: { code: -32603, data: { reason: 'internal_error' } } })
  expect(JSON.stringify(message)).not.toContain('broken inside')
  expect(traces.only).toMatchObject({ status: 'error' })
  expect(broken).toEqual([cause])
  expect(gateway.openCalls).toBe(0)
})

it('a query that rejects is answered, and its cause is told', async () => {
  const broken: unknown[] = []
  const queries = { query: () => Promise.reject(cause) }
  const { gateway, port } = workbench(new FakePort(), [], { queries, broke: (error) => broken.push(error) })
  gateway.receive(CLIENT, { method: 'bus::traces.list', id: 1 }, 50)
  const { message } = await until(() => port.replies[0], 'an answer')
  expect(message).toMatchObject({ error: { data: { reason: 'trace_query_failed' } } })
  expect(broken).toEqual([cause])
})
