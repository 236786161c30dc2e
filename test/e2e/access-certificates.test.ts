/** Certificates as principals, at the TLS door of a real bus (contract 9.2, 9.16). */
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import type { Wanted } from '../support/certificates.ts'
import { connectTls, type LineClient } from '../support/line-client.ts'
import { pool } from '../support/pools.ts'
import { busPair, testAuthority, textsOf } from '../support/tls.ts'
import { STRANGE, sharedHouse, startHouse, UNKNOWN } from './access-harness.ts'

const WHO = { id: 'who', method: 'bus::whoami' }
const RULES = [
  { subject: 'CN=boss', as: 'boss' },
  { subject: 'URI:spiffe://corp/agents/*', as: 'agent' },
  { subject: 'DNS:*.agents.example', as: 'agent' },
  { subject: 'email:*@corp.example', as: 'person' },
]
const PRINCIPALS = { agent: { max_connections: 2 }, boss: { role: 'admin' }, person: {}, alice: {} }

function optional() {
  return { tls: { address: '127.0.0.1:0', ...busPair(), client_ca: testAuthority().ca, client_cert: 'optional' } }
}

describe('9.16 a certificate', () => {
  const house = sharedHouse({
    principals: PRINCIPALS,
    access: { certificates: RULES, audit: 'audit.log' },
    doors: [],
    get more() {
      return { listen: optional() }
    },
  })
  const tls = () => house().bus.addresses.find((each) => each.startsWith('tls:'))!
  const come = (wanted?: Wanted): Promise<LineClient> =>
    connectTls(tls(), wanted === undefined ? {} : textsOf(testAuthority().client(wanted)))

  test.each<[string, Wanted, string]>([
    ['CN', { name: 'boss' }, 'boss'],
    ['URI', { altNames: 'URI:spiffe://corp/agents/7' }, 'agent'],
    ['DNS', { altNames: 'DNS:a.agents.example' }, 'agent'],
    ['email', { altNames: 'email:ann@corp.example' }, 'person'],
  ])('9.16 by its %s is a principal without a token', async (_what, wanted, principal) => {
    verifies('9.16-principal')
    const client = await come(wanted)
    expect(await client.ask(WHO)).toMatchObject({
      result: { principal, via: 'certificate', expires: expect.any(String) },
    })
    expect(await client.ask({ id: 1, method: 'm' })).toMatchObject({ result: {} })
    const line = await house().audited({ event: 'open', principal })
    expect(line).toMatchObject({ via: 'certificate', door: 'tls', credential: expect.stringMatching(/^[0-9a-f]{8}$/) })
    client.close()
  })

  test.each<[string, Wanted | undefined]>([
    ['none at all', undefined],
    ['a CN that looks like another kind', { name: 'DNS:a.agents.example' }],
    ['a name beyond the pattern', { altNames: 'URI:spiffe://corp/other/7' }],
    ['a common name with a comma', { name: 'x, CN=boss' }],
    ['a DNS name that is in a CN', { name: 'a.agents.example' }],
    ['another case', { name: 'Boss' }],
  ])('9.16 %s needs a token, and comes in with one', async (_what, wanted) => {
    verifies('9.16-no-match')
    const stranger = await come(wanted)
    expect(await stranger.ask({ id: 1, method: 'm' })).toMatchObject(UNKNOWN)
    expect(await stranger.untilClosed()).toEqual([])
    const known = await come(wanted)
    const open = { id: 1, method: 'bus::open', params: { token: house().tokens['alice'] } }
    expect(await known.ask(open)).toMatchObject({ result: { principal: 'alice' } })
  })

  test('9.2 a token goes before it, and a bad one is refused whatever the certificate', async () => {
    verifies('9.2-before-certificate')
    const client = await come({ name: 'boss' })
    const open = (token: string) => ({ id: 1, method: 'bus::open', params: { token } })
    expect(await client.ask(open(house().tokens['alice']!))).toMatchObject({
      result: { principal: 'alice', role: 'user' },
    })
    const bad = await come({ name: 'boss' })
    expect(await bad.ask(open(STRANGE))).toMatchObject(UNKNOWN)
    expect(await bad.untilClosed()).toEqual([])
  })

  test('9.21 counts among max_connections, which is told and closed', async () => {
    verifies('9.21-connections')
    const wanted = { altNames: 'URI:spiffe://corp/agents/9' }
    const [one, two] = [await come(wanted), await come(wanted)]
    for (const client of [one, two]) await client.ask(WHO)
    const third = await come(wanted)
    expect(await third.untilClosed()).toMatchObject([{ id: null, error: { data: { reason: 'too_many_clients' } } }])
    for (const client of [one, two]) client.close()
  })
})

test('9.5 a certificate whose principal or rule is gone ends its connections', async () => {
  verifies('9.5-certificates')
  const house = await startHouse({
    principals: PRINCIPALS,
    access: { certificates: RULES },
    pools: [pool('silent')],
    doors: [],
    more: { listen: optional() },
  })
  const come = (wanted: Wanted) => connectTls(house.bus.addresses[0]!, textsOf(testAuthority().client(wanted)))
  const agent = await come({ altNames: 'URI:spiffe://corp/agents/1' })
  const boss = await come({ name: 'boss' })
  for (const client of [agent, boss]) await client.ask(WHO)
  agent.send({ id: 1, method: 'm' })
  await agent.taken()
  await house.change((rows) => rows.delete('agent'))
  expect(await agent.untilClosed()).toMatchObject([
    { id: 1, ...UNKNOWN },
    { id: null, ...UNKNOWN },
  ])
  expect(await boss.ask(WHO)).toMatchObject({ result: { principal: 'boss', role: 'admin' } })
})
