/** Clauses 3.2, 3.5, 4.1.2, 4.2.1: what a connection is, the same at every door. */
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { doorSuite } from '../suites/door.suite.ts'
import { startBus } from '../support/bus.ts'
import { config, pool } from '../support/pools.ts'
import { verifies } from './verifies.ts'

const ECHO = config(pool('echo'))

doorSuite('stdio')
doorSuite('unix')
doorSuite('tcp')

describe('clients', () => {
  test('3.2 a client may hold many sessions', async () => {
    verifies('3.2-many-sessions')
    const bus = await startBus({ config: config(pool('echo', { instances: 2 })) })
    const client = await bus.connect()
    for (let id = 0; id < 500; id++) client.send({ id, method: 'm', sessionId: `s${id}` })
    expect((await client.take(500)).every((each) => each.result.pid > 0)).toBe(true)
    expect((await bus.status()).sessions).toBe(500)
  })

  test('3.2 the next client at a freed descriptor is another client', async () => {
    verifies('3.2-never-reused', '7.3-late-answers')
    const bus = await startBus({ config: config(pool('slow')), doors: ['tcp'] })
    const first = await bus.connect()
    first.send({ id: 'same', method: 'm', sessionId: 's', params: { ms: 800, who: 'first' } })
    await first.taken()
    first.reset()
    await bus.statusWhere('the client is gone', (status) => status.clients === 0)
    const second = await bus.connect()
    await second.staysQuiet(900)
    expect(await second.ask({ id: 'same', method: 'm', params: { ms: 0, who: 'second' } })).toMatchObject({
      result: { echo: { who: 'second' } },
    })
  })

  test('4.1.2 an idle connection stays, whatever happens to others', async () => {
    verifies('4.1.2-lives')
    const bus = await startBus({ config: ECHO, doors: ['unix', 'tcp'] })
    const idle = [await bus.connect('unix:'), await bus.connect('tcp:')]
    const noisy = await bus.connect('unix:')
    noisy.send('not json')
    await noisy.untilClosed()
    for (const client of idle) {
      await client.staysQuiet(300)
      expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
    }
    bus.signal('SIGTERM')
    for (const client of idle) expect(await client.untilClosed()).toEqual([])
  })

  test('4.1.1 in stdio mode there is no other door', async () => {
    verifies('4.1.1-stdio')
    const bus = await startBus({ config: ECHO, doors: ['stdio'] })
    expect(existsSync(bus.workspace.path('bus.sock'))).toBe(false)
    const refused = new Promise((resolve) => connect({ path: bus.workspace.path('bus.sock') }).on('error', resolve))
    expect(await refused).toMatchObject({ code: 'ENOENT' })
  })
})
