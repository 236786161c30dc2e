/** `trace` and `status` through a door of the bus, where its control socket is out of reach (contract 9.6, 9.16). */
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { describe, expect, onTestFinished, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { runBus, startBus, testWorkspace } from '../support/bus.ts'
import { testAuthority } from '../support/tls.ts'
import { agent } from './aio-harness.ts'

const TRACE = 'AIO-TR-20250326-0042'

async function tracingBus(aio: object = {}) {
  const bus = await startBus({ config: { pools: [agent('chief')], aio }, doors: ['tls', 'unix'] })
  const client = await bus.connect('unix:')
  await client.ask({ id: 1, method: 'chief::pid', trace_id: TRACE })
  const address = bus.addresses.find((each) => each.startsWith('tls:'))!.slice('tls:'.length)
  return { bus, door: ['--tls', address, '--ca', testAuthority().ca] }
}

describe('9.16 trace --tls', () => {
  test('9.16 shows what the control socket shows', async () => {
    verifies('9.16-ask')
    const { bus, door } = await tracingBus({ remote_queries: true })
    for (const args of [
      ['ls', '--json'],
      ['show', TRACE, '--json'],
      ['export', TRACE],
    ]) {
      const near = await bus.run(['trace', ...args, '--control', bus.control])
      const far = await bus.run(['trace', ...args, ...door])
      expect(far).toEqual(near)
      expect(far).toMatchObject({ code: 0, stdout: expect.stringContaining(TRACE) })
    }
    expect(await bus.run(['trace', 'show', 'AIO-TR-20250326-0043', ...door])).toMatchObject({ code: 1 })
  })

  test('9.16 says what the bus refuses, and what is asked wrongly', async () => {
    const { bus, door } = await tracingBus()
    const refused = await bus.run(['trace', 'ls', ...door])
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^stdio-bus: .*\n$/) })
    const untrusted = await bus.run(['trace', 'ls', ...door.slice(0, 2)])
    expect(untrusted).toMatchObject({ code: 1, stderr: expect.stringMatching(/is not trusted/) })
    const mistakes = [
      ['trace', 'ls', '--control', 'a', ...door],
      ['trace', 'tail', ...door],
      ['trace', 'ls', '--token-file', 'a'],
      ['status', '--control', 'a', ...door],
      ['status', '--ca', 'a'],
    ]
    for (const args of mistakes) expect((await bus.run(args)).code, args.join(' ')).toBe(2)
  })
})

test('9.16 status asks a bus at its door by bus::status, after its token', async () => {
  verifies('9.16-ask')
  const workspace = testWorkspace()
  const near = await startBus({ config: { pools: [agent('chief')] }, workspace })
  const status = await near.status()
  const said: { method: string; params: { token?: string } }[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    createInterface({ input: socket }).on('line', (line) => {
      const message = JSON.parse(line)
      said.push(message)
      socket.write(`${JSON.stringify({ jsonrpc: '2.0', id: message.id, result: status })}\n`)
    })
  })
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const env = { STDIO_BUS_TOKEN: 'sbus_known' }
  const far = await runBus(['status', '--json', '--tcp', `127.0.0.1:${port}`], { workspace, env })
  expect(far).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(far.stdout)).toEqual(status)
  expect(said.map(({ method }) => method)).toEqual(['bus::open', 'bus::status'])
  expect(said[0]?.params).toEqual({ token: 'sbus_known' })
})
