/** Clauses 9.16 and 9.17: the TLS door of a real bus, its certificates, and whoever comes without TLS or never gets done. */
import { chmodSync, copyFileSync, renameSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { doorSuite } from '../suites/door.suite.ts'
import { type Bus, runBus, startBus, testWorkspace } from '../support/bus.ts'
import { connectTls, type LineClient } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { busPair, dialTls, testAuthority, textsOf, tlsFlags } from '../support/tls.ts'
import { eventually, within } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'
import { verifies } from './verifies.ts'

const ECHO = config(pool('echo'))

doorSuite('tls')

function tlsOf(bus: Bus): string {
  return bus.addresses.find((each) => each.startsWith('tls:'))!
}

/** Connected without TLS. */
function plain(bus: Bus): Socket {
  const socket = connect(Number(tlsOf(bus).split(':').at(-1)), '127.0.0.1')
  return socket.on('error', () => {})
}

const ends = (socket: Socket, timeoutMs?: number) =>
  eventually('the bus to close it', () => socket.resume().readableEnded || socket.destroyed, timeoutMs)

describe('9.16 the door', () => {
  test('9.16 combines with the others, repeats, and ready names it', async () => {
    verifies('9.16-door')
    const args = ['--tls', '127.0.0.1:0', ...tlsFlags()]
    const bus = await startBus({ config: ECHO, doors: ['unix', 'tcp'], args })
    const tls = bus.addresses.filter((each) => /^tls:127\.0\.0\.1:[1-9]\d*$/.test(each))
    expect(new Set(tls).size).toBe(2)
    for (const address of bus.addresses) {
      expect(await (await bus.connect(address)).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1, result: {} })
    }
  })

  test('9.16 many clients at once', async () => {
    verifies('9.16-door')
    const bus = await startBus({ config: ECHO, doors: ['tls'] })
    const clients = await Promise.all(Array.from({ length: 20 }, () => bus.connect()))
    for (const [n, client] of clients.entries()) client.send({ id: 1, method: 'm', params: { n } })
    const answers = await Promise.all(clients.map((client) => client.next()))
    expect(answers.map((each) => each.result.echo.n)).toEqual(clients.map((_, n) => n))
  })

  test('9.16 listen.tls of the configuration, with a pool of its own', async () => {
    verifies('9.16-door')
    const listen = { tls: { address: '127.0.0.1:0', pool: 'second', ...busPair() } }
    const pools = [pool('echo', { id: 'first' }), pool('prints-env', { id: 'second' })]
    const bus = await startBus({ config: config(pools, {}, { listen }), doors: [] })
    expect(bus.addresses).toEqual([expect.stringMatching(/^tls:/)])
    expect((await (await bus.connect()).ask({ id: 1, method: 'm' })).result).not.toHaveProperty('echo')
  })

  test.each<[string, (workspace: Workspace) => string[], RegExp]>([
    ['no --key', () => ['--tls', '127.0.0.1:0', '--cert', busPair().cert], /--tls needs --cert FILE and --key FILE/],
    ['no --cert', () => ['--tls', '127.0.0.1:0', '--key', busPair().key], /--tls needs --cert FILE and --key FILE/],
    ['--cert alone', () => ['--cert', busPair().cert], /--cert goes with --tls/],
    ['--client-ca alone', () => ['--client-ca', testAuthority().ca], /--client-ca goes with --tls/],
    ['--stdio too', () => ['--stdio', ...tlsFlags()], /--stdio takes exactly one client/],
    ['no port', () => ['--tls', '127.0.0.1', '--cert', busPair().cert, '--key', busPair().key], /HOST:PORT/],
    ['a door for all', () => ['--tls', '0.0.0.0:0', ...tlsFlags().slice(2)], /not loopback.*--allow-unauthenticated/],
  ])('9.16 %s: exit 2', async (_what, args, message) => {
    verifies('9.16-flags')
    await isRefused(args, message)
  })

  test.each<[string, (workspace: Workspace) => string[], RegExp]>([
    ['a key that others may read', (at) => tlsFlags({ ...busPair(), key: put(at, busPair().key, 0o644) }), /chmod 600/],
    ['a key of another certificate', () => tlsFlags({ ...busPair(), key: otherPair().key }), /is not the key of/],
    ['a certificate that is not there', () => tlsFlags({ ...busPair(), cert: 'none.pem' }), /none\.pem does not exist/],
    ['an authority that is none', () => [...tlsFlags(), '--client-ca', busPair().key], /holds no certificate/],
  ])('9.17 %s: exit 2', async (_what, args, message) => {
    verifies('9.17-start')
    await isRefused(args, message)
  })
})

async function isRefused(args: (workspace: Workspace) => string[], message: RegExp): Promise<void> {
  const workspace = testWorkspace()
  const file = workspace.write('bus.json', ECHO)
  const done = await runBus(['--config', file, ...args(workspace)], { workspace })
  expect(done).toMatchObject({ code: 2, stdout: '' })
  expect(done.stderr).toMatch(message)
  expect(done.stderr).not.toMatch(/PRIVATE KEY|\n\s+at /)
}

function otherPair() {
  return testAuthority().server()
}

function put(workspace: Workspace, from: string, mode: number): string {
  const path = workspace.path('copy')
  copyFileSync(from, path)
  chmodSync(path, mode)
  return path
}

describe('9.16 certificates of clients', () => {
  const demanding = () =>
    startBus({ config: ECHO, doors: [], args: [...tlsFlags(), '--client-ca', testAuthority().ca] })
  const known = () => textsOf(testAuthority().client())

  /** What becomes of a client that shows this: it hears nothing, and no worker hears of it. */
  async function turnedAway(bus: Bus, options: Parameters<typeof dialTls>[1]): Promise<void> {
    const socket = dialTls(tlsOf(bus), options).on('error', () => {})
    let heard = ''
    socket.on('data', (chunk) => {
      heard += chunk
    })
    socket.write('{"id":1,"method":"secret-of-a-stranger"}\n')
    await ends(socket)
    expect(heard).toBe('')
    await eventually('a line of log', () => bus.log.text.includes('a TLS handshake with 127.0.0.1:'))
    expect(bus.log.text).not.toContain('secret-of-a-stranger')
  }

  test('9.16 one of the authority comes in; none, one of others and one that has expired do not', async () => {
    verifies('9.16-client-ca')
    const bus = await demanding()
    expect(await (await connectTls(tlsOf(bus), known())).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
    await turnedAway(bus, {})
    await turnedAway(bus, textsOf(testAuthority('strangers').client()))
    await turnedAway(bus, textsOf(testAuthority().client({ days: [-2, -1] })))
    expect(await (await connectTls(tlsOf(bus), known())).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
  })

  test('9.16 optional: none comes in, one of others still does not', async () => {
    verifies('9.16-optional')
    const tls = { address: '127.0.0.1:0', ...busPair(), client_ca: testAuthority().ca, client_cert: 'optional' }
    const bus = await startBus({ config: config(pool('echo'), {}, { listen: { tls } }), doors: [] })
    for (const options of [{}, known()]) {
      expect(await (await connectTls(tlsOf(bus), options)).ask({ id: 1, method: 'm' })).toMatchObject({ id: 1 })
    }
    await turnedAway(bus, textsOf(testAuthority('strangers').client()))
  })
})

describe('9.16 whoever does not get done', () => {
  test('9.16 plain lines are closed, reach no worker and no log, and nobody else notices', async () => {
    verifies('9.16-door')
    const bus = await startBus({ config: config(pool('raw-log', { args: ['log'] })), doors: ['tls'] })
    const good = await bus.connect()
    const socket = plain(bus)
    socket.write('{"id":1,"method":"in-the-clear"}\n')
    await ends(socket)
    expect(await good.ask({ id: 2, method: 'm' })).toMatchObject({ id: 2 })
    expect(bus.workspace.read('log')).not.toContain('in-the-clear')
    expect(bus.log.text).not.toContain('in-the-clear')
  })

  test('9.16 200 handshakes that never end are ended within their time, and others are served meanwhile', async () => {
    verifies('9.16-handshake')
    const bus = await startBus({ config: ECHO, doors: ['tls'] })
    const began = performance.now()
    const silent = Array.from({ length: 200 }, () => plain(bus))
    // Half of them begin a handshake and stop in its middle.
    for (const socket of silent.slice(0, 100)) socket.write(Buffer.from('160301020001', 'hex'))
    const good = await bus.connect()
    let answered = 0
    while (silent.some((socket) => !socket.resume().readableEnded && !socket.destroyed)) {
      await good.ask({ id: ++answered, method: 'm' })
      if (performance.now() - began > 15_000) throw new Error('they are still there')
    }
    expect(answered).toBeGreaterThan(100)
    await bus.statusWhere('only the good client is left', ({ clients }) => clients === 1)
    expect(bus.log.lines.length).toBeLessThan(60)
  })
})

describe('9.17 certificates under a living bus', () => {
  const serial = async (bus: Bus): Promise<string> => {
    const socket = dialTls(tlsOf(bus))
    await within(5_000, 'a handshake', new Promise((resolve) => socket.once('secureConnect', resolve)))
    const { serialNumber } = socket.getPeerCertificate()
    socket.destroy()
    return serialNumber
  }

  test('9.17 new connections get the new one, the old one is served on, and a bad one is only logged', async () => {
    verifies('9.17-exchange', '9.17-bad-pair')
    const workspace = testWorkspace()
    const cert = workspace.path('cert.pem')
    const key = workspace.path('key.pem')
    exchange(busPair().cert, cert, 0o644)
    exchange(busPair().key, key, 0o600)
    const bus = await startBus({ config: ECHO, doors: [], args: tlsFlags({ cert, key }), workspace })
    const living: LineClient = await bus.connect()
    const first = await serial(bus)
    const next = otherPair()
    exchange(next.cert, cert, 0o644)
    await eventually('the mismatch in the log', () => bus.log.text.includes('is not the key of'))
    expect(await serial(bus)).toBe(first)
    exchange(next.key, key, 0o600)
    await eventually('the new certificate', async () => (await serial(bus)) !== first)
    expect(await living.ask({ id: 1, method: 'm' })).toMatchObject({ id: 1, result: {} })
    expect(bus.log.text).not.toContain('PRIVATE KEY')
  })

  function exchange(from: string, to: string, mode: number): void {
    copyFileSync(from, `${to}.new`)
    chmodSync(`${to}.new`, mode)
    renameSync(`${to}.new`, to)
  }
})
