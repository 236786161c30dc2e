import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type Compiled, compile } from '../../test/fixtures/process/compile.ts'
import type { Listener } from './listener.ts'
import { listenTcp } from './tcp.ts'

const FIXTURE = fileURLToPath(new URL('../../test/fixtures/process/opens-tcp-door.mjs', import.meta.url))
const LOCAL = { allowUnauthenticated: false }
const listeners: Listener[] = []

afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close()
})

async function open(address: string, policy = LOCAL): Promise<Listener> {
  const listener = await listenTcp(address, policy, (socket) => socket.on('error', () => {}))
  listeners.push(listener)
  return listener
}

describe('the tcp door', () => {
  it('4.1.1 takes names and brackets, and tells the address that was bound', async () => {
    expect((await open('localhost:0')).address).toMatch(/^tcp:(127\.0\.0\.1|\[::1\]):[1-9]\d*$/)
    expect((await open('[::1]:0')).address).toMatch(/^tcp:\[::1\]:[1-9]\d*$/)
  })

  it('8.4 a port in use is a failure of the world that names the port', async () => {
    const { address } = await open('127.0.0.1:0')
    const again = open(address.slice('tcp:'.length))
    await expect(again).rejects.toMatchObject({ code: 'port_in_use', exitCode: 1 })
    await expect(again).rejects.toThrow(address.slice('tcp:'.length))
  })

  it('an address this machine does not have is named', async () => {
    const refused = open('192.0.2.1:0', { allowUnauthenticated: true })
    await expect(refused).rejects.toMatchObject({ code: 'address_unavailable', exitCode: 1 })
  })

  it('refuses to be reached from elsewhere before anything is bound', async () => {
    await expect(open('0.0.0.0:0')).rejects.toMatchObject({ code: 'not_loopback', exitCode: 2 })
    expect((await open('0.0.0.0:0', { allowUnauthenticated: true })).address).toMatch(/^tcp:0\.0\.0\.0:/)
  })
})

describe.runIf(process.platform === 'linux')('when descriptors run out', () => {
  const CLIENTS = 160
  const LIMIT = 130
  const RESERVE = 32
  const LIMITED = ['-c', `ulimit -n ${LIMIT}; exec "$@"`, 'sh', process.execPath, FIXTURE]
  const clients: Socket[] = []
  let compiled: Compiled
  let bus: ChildProcess

  /** Those above the limit came from elsewhere, before it was set. */
  const descriptors = () => readdirSync(`/proc/${bus.pid}/fd`).filter((number) => Number(number) < LIMIT).length

  beforeAll(async () => {
    compiled = await compile('transports/tcp.ts')
    bus = spawn('/bin/sh', [...LIMITED, compiled.folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  })

  afterAll(async () => {
    for (const client of clients) client.destroy()
    bus.kill('SIGKILL')
    await compiled.remove()
  })

  it('says so, closes those who are too many, keeps a reserve, and serves on', async () => {
    const said = createInterface({ input: bus.stdout! })[Symbol.asyncIterator]()
    const port = Number((await said.next()).value.split(':').at(-1))
    const dial = () => connect(port, '127.0.0.1').on('error', () => {})
    for (let n = 0; n < CLIENTS; n += 1) clients.push(dial())
    const outcomes = await Promise.all(clients.map(echoes))
    expect((await said.next()).value).toMatch(/out of file descriptors.*ulimit/)
    const served = outcomes.filter(Boolean).length
    expect(served).toBeGreaterThan(5)
    expect(served).toBeLessThan(LIMIT - RESERVE)
    const open = descriptors()
    expect(open).toBeLessThanOrEqual(LIMIT - RESERVE)

    for (const client of clients.splice(0)) client.destroy()
    while (descriptors() >= open) await sleep(5)
    clients.push(dial())
    expect(await echoes(clients[0]!)).toBe(true)
  })
})

/** Whether a client is served, as opposed to closed. */
function echoes(client: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    client.once('data', () => resolve(true))
    client.once('close', () => resolve(false))
    client.write('x')
  })
}
