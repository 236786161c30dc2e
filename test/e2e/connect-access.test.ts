/** `connect` and the bus with `access`, over TLS: tokens and certificates from their making to their end (contract 9.3, 9.5, 9.16). */
import { chmodSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { verifies } from '../conformance/verifies.ts'
import { type Bus, runBus, startBus, testWorkspace } from '../support/bus.ts'
import { connectTls } from '../support/line-client.ts'
import { config, pool } from '../support/pools.ts'
import { testAuthority, textsOf, tlsFlags } from '../support/tls.ts'
import { eventually } from '../support/waiting.ts'
import type { Workspace } from '../support/workspace.ts'
import { type Shim, startShim } from './connect-harness.ts'

interface House {
  readonly workspace: Workspace
  readonly bus: Bus
  /** Where alice's token is. */
  readonly file: string
  /** A subcommand of `token`; what it printed. */
  token(...args: string[]): Promise<string>
  keep(token: string): void
  reach(...args: string[]): Shim
}

const ca = () => testAuthority().ca

async function open(access: object = {}, ...flags: string[]): Promise<House> {
  const workspace = testWorkspace()
  const file = workspace.path('token')
  const keep = (text: string): void => {
    workspace.write('token', text)
    chmodSync(file, 0o600)
  }
  const token = async (...args: string[]): Promise<string> => {
    const done = await runBus(['token', ...args, '--file', workspace.path('access.json')], { workspace })
    expect(done.code, done.stderr).toBe(0)
    return done.stdout.trim()
  }
  keep(await token('add', 'alice', '--pools', 'echo'))
  const whole = config([pool('echo'), pool('silent')], {}, { access: { file: 'access.json', ...access } })
  const bus = await startBus({ config: whole, doors: [], args: [...tlsFlags(), ...flags], workspace })
  const reach = (...args: string[]) => startShim(workspace, '--tls', addressOf(bus), '--ca', ca(), ...args)
  return { workspace, bus, file, token, keep, reach }
}

function addressOf(bus: Bus): string {
  return bus.addresses.find((each) => each.startsWith('tls:'))!.slice('tls:'.length)
}

const WHO = { id: 'who', method: 'bus::whoami' }
const UNKNOWN = { error: { code: -32600, data: { reason: 'unauthenticated' } } }

describe('9.16 a token', () => {
  test('9.16 lets its principal in, and the library too', async () => {
    verifies('9.16-token')
    const { bus, file, reach } = await open()
    const shim = reach('--token-file', file, '--pool', 'echo')
    expect(await shim.host.ask(WHO)).toMatchObject({ result: { principal: 'alice', role: 'user', via: 'token' } })
    expect(await shim.host.ask({ id: 1, method: 'm' })).toMatchObject({ id: 1, result: { method: 'm' } })
    const connection = await connect({ tls: addressOf(bus), ca: ca(), tokenFile: file })
    await connection.send(JSON.stringify(WHO))
    const { value } = await connection.lines().next()
    expect(JSON.parse(String(value))).toMatchObject({ result: { principal: 'alice' } })
    await connection.close()
  })

  test.each([
    ['none', undefined],
    ['one that nobody has', `sbus_${'x'.repeat(49)}`],
  ])('9.16 %s: exit 1 at once with the reason, and the host is told', async (_what, token) => {
    verifies('9.16-refused')
    const { bus, file, keep, reach } = await open()
    if (token !== undefined) keep(token)
    const shim = reach(...(token === undefined ? [] : ['--token-file', file]))
    expect(await shim.host.ask({ id: 1, method: 'm' })).toMatchObject(UNKNOWN)
    expect((await shim.ended()).code).toBe(1)
    expect(await shim.said).toMatch(/refuses this connection/)
    expect(await shim.said).not.toMatch(/looking for it/)
    for (const text of [await shim.said, bus.log.text]) expect(text).not.toContain('xxxxxxxx')
  })

  test('9.16 for a pool that is not allowed: exit 1 with the reason', async () => {
    verifies('9.16-refused')
    const { file, reach } = await open()
    const shim = reach('--token-file', file, '--pool', 'silent')
    expect(await shim.host.ask({ id: 1, method: 'm' })).toMatchObject({ error: { data: { reason: 'not_allowed' } } })
    expect((await shim.ended()).code).toBe(1)
  })

  test('9.5 that is revoked ends its connection, and connect with it', async () => {
    verifies('9.16-refused')
    const { file, token, reach } = await open()
    const shim = reach('--token-file', file)
    await shim.host.ask(WHO)
    await token('rm', 'alice')
    expect((await shim.ended()).code).toBe(1)
    expect(await shim.said).toMatch(/refuses this connection/)
  })

  test('9.5 that is exchanged in its file is used when the old one ends', async () => {
    verifies('9.16-token')
    const { file, token, keep, reach } = await open()
    const shim = reach('--token-file', file)
    await shim.host.ask(WHO)
    keep(await token('rotate', 'alice', '--keep', '3s'))
    await shim.hasLostBus()
    expect(await shim.host.ask({ ...WHO, id: 'again' }, 15_000)).toMatchObject({ result: { principal: 'alice' } })
  })
})

describe('9.16 a certificate', () => {
  const mapped = () => open({ certificates: [{ subject: 'CN=agent-*', as: 'alice' }] }, '--client-ca', ca())
  const shown = (name: string) => {
    const { cert, key } = testAuthority().client({ name })
    return ['--cert', cert, '--key', key]
  }

  test('9.16 of a subject that is named lets its principal in without a token', async () => {
    verifies('9.16-client-ca')
    const { reach } = await mapped()
    const shim = reach(...shown('agent-7'))
    expect(await shim.host.ask(WHO)).toMatchObject({ result: { principal: 'alice', via: 'certificate' } })
    expect(await shim.host.ask({ id: 1, method: 'm' })).toMatchObject({ id: 1, result: {} })
  })

  test('9.16 of another subject needs a token', async () => {
    verifies('9.16-client-ca')
    const { file, reach } = await mapped()
    const stranger = reach(...shown('somebody'))
    expect(await stranger.host.ask({ id: 1, method: 'm' })).toMatchObject(UNKNOWN)
    expect((await stranger.ended()).code).toBe(1)
    const known = reach(...shown('somebody'), '--token-file', file)
    expect(await known.host.ask(WHO)).toMatchObject({ result: { principal: 'alice', via: 'token' } })
  })

  test('9.2 goes behind a token: whose token comes first is who it is', async () => {
    const { file, token, keep, reach } = await mapped()
    keep(await token('add', 'bob', '--pools', 'echo'))
    // The bus looks at its file twice a second.
    await eventually('the bus to know bob', async () => {
      const shim = reach(...shown('somebody'), '--token-file', file)
      shim.host.send(WHO)
      return (await shim.host.next()).result?.principal === 'bob'
    })
    const shim = reach(...shown('agent-9'), '--token-file', file)
    expect(await shim.host.ask(WHO)).toMatchObject({ result: { principal: 'bob', via: 'token' } })
  })

  test('9.16 is judged before the first line, however early that comes', async () => {
    const { bus } = await mapped()
    for (let n = 0; n < 10; n++) {
      const client = await connectTls(addressOf(bus), textsOf(testAuthority().client({ name: 'agent-8' })))
      expect(await client.ask({ id: n, method: 'm' })).toMatchObject({ id: n, result: {} })
      client.close()
    }
  })
})
