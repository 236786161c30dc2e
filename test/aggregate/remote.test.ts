/** Members that are at a URL (contract 13.1): a server over HTTP, and a pool of another bus. */
import { spawn } from 'node:child_process'
import { expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { freePort, urlOf } from '../e2e/remote-harness.ts'
import { EVERYTHING } from '../interop/mcp-peers.ts'
import { join } from '../interop/sdk-guests.ts'
import { startBus } from '../support/bus.ts'
import { eventually } from '../support/waiting.ts'
import { aggregateOf, allListed, member, tools } from './members.ts'

/** The address of a server over HTTP that is a process of its own. */
async function startServer(): Promise<string> {
  const port = await freePort()
  const env = { ...process.env, PORT: String(port) }
  const server = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], { env, stdio: 'ignore' })
  onTestFinished(() => void server.kill())
  const url = `http://127.0.0.1:${port}/mcp`
  const isThere = () =>
    fetch(url).then(
      () => true,
      () => false,
    )
  await eventually('the server to listen', isThere, 30_000)
  return url
}

test.each(['v1', 'v2 modern'] as const)('an SDK client, %s, uses members at a URL like others', async (era) => {
  verifies('13.1-remote')
  const far = await startBus({ config: { pools: [member({ name: 'm', tools: tools('where') })] } })
  const pools = [
    member({ name: 'near', tools: tools('where') }),
    { id: 'web', url: await startServer() },
    { id: 'far', url: urlOf(far), protocol: 'mcp' },
  ]
  const bus = await startBus({ config: aggregateOf(pools, { list_wait_ms: 10_000 }) })
  await allListed(bus)
  const { client, complaints } = await join(bus, era, {}, 'all')
  const names = (await client.listTools()).tools.map(({ name }: { name: string }) => name)
  expect(names).toEqual(expect.arrayContaining(['near_where', 'web_echo', 'far_where']))
  const echoed = await client.callTool({ name: 'web_echo', arguments: { message: era } })
  expect(echoed.content[0].text).toBe(`Echo: ${era}`)
  expect(Number((await client.callTool({ name: 'far_where', arguments: {} })).content[0].text)).toBeGreaterThan(1)
  expect(complaints).toEqual([])
})
