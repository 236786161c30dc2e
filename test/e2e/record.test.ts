/** `serve --record` and `replay`, with the real program over its real doors. */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'

const SECRET = 'the payload nobody may read'

async function record(args: readonly string[]) {
  const bus = await startBus({
    config: config([pool('echo', { instances: 2 }), pool('dies-on-request')]),
    args: ['--record', 'night.ndjson', ...args],
  })
  const clients = [await bus.connect(), await bus.connect()]
  for (const client of clients)
    await client.ask({ id: 1, method: 'm', pool: 'echo', sessionId: `s${clients.indexOf(client)}`, params: SECRET })
  await clients[0]!.ask({ id: 2, method: 'm', pool: 'dies-on-request' })
  for (const client of clients) client.close()
  expect((await bus.stop()).code).toBe(0)
  return { bus, file: join(bus.workspace.folder, 'night.ndjson') }
}

describe('record and replay', () => {
  test("a recording is its owner's alone, holds no payload, and replays to the same decisions", async () => {
    const { bus, file } = await record([])
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).not.toContain(SECRET)
    const replayed = await bus.run(['replay', file, '--from', '1', '--to', '8'])
    expect(replayed.stderr).toBe('')
    expect(replayed.stdout).toMatch(/the same/)
    expect(replayed.code).toBe(0)
  })

  test('with payloads it holds them, and a decision that differs is named', async () => {
    const { bus, file } = await record(['--record-payloads'])
    expect((await bus.run(['replay', file])).code).toBe(0)
    const rows = readFileSync(file, 'utf8').split('\n')
    const taken = rows.findIndex((row) => row.startsWith('["write","client"'))
    expect(taken).toBeGreaterThan(0)
    rows[taken] = rows[taken]!.replace(/"[0-9a-f]{8}/, '"00000000')
    const changed = join(bus.workspace.folder, 'changed.ndjson')
    writeFileSync(changed, rows.join('\n'))
    expect((await bus.run(['replay', changed])).code).toBe(1)
  })
})
