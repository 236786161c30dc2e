/** The ways to NATS: TLS and WebSocket with certificates on both sides, and files of credentials (contract 14.1, 14.9). */
import { createHash } from 'node:crypto'
import { createAccount, createOperator, createUser, type KeyPair } from '@nats-io/nkeys'
import { describe, expect, test } from 'vitest'
import { verifies } from '../conformance/verifies.ts'
import { startBus, testWorkspace } from '../support/bus.ts'
import { freePort, startNats, withNats } from '../support/nats.ts'
import { testAuthority } from '../support/tls.ts'
import { clusterConfig, ECHO, startNode, untilReachable } from './nodes.ts'

const NEEDS_TLS = (): string => {
  const { cert, key } = testAuthority().server()
  return `{ cert_file: "${cert}", key_file: "${key}", ca_file: "${testAuthority().ca}", verify: true }`
}
/** What a node shows and believes. */
const files = () => ({ tls: { ca: testAuthority().ca, ...testAuthority().client() } })

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString()

/** A token as NATS has them: signed by `by`, about `about`. */
function tokenOf(about: KeyPair, by: KeyPair, nats: object): string {
  const claims = { jti: '', iat: 1, iss: by.getPublicKey(), name: 'x', sub: about.getPublicKey(), nats }
  const jti = createHash('sha256').update(JSON.stringify(claims)).digest('hex')
  const encoded = [
    { typ: 'JWT', alg: 'ed25519-nkey' },
    { ...claims, jti },
  ].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  const signed = encoded.join('.')
  return `${signed}.${Buffer.from(by.sign(Buffer.from(signed))).toString('base64url')}`
}

/** The configuration of a server that lets in whoever has the credentials, and these. */
function issue(): { readonly config: string; readonly credentials: string } {
  const [operator, account, user] = [createOperator(), createAccount(), createUser()]
  const limits = { subs: -1, data: -1, payload: -1, conn: -1, leaf: -1, imports: -1, exports: -1, wildcards: true }
  const ofAccount = tokenOf(account, operator, { type: 'account', version: 2, limits })
  const ofUser = tokenOf(user, account, { type: 'user', version: 2, subs: -1, data: -1, payload: -1 })
  const config = [
    `operator: ${tokenOf(operator, operator, { type: 'operator', version: 2 })}`,
    'resolver: MEMORY',
    `resolver_preload: { ${account.getPublicKey()}: ${ofAccount} }`,
  ].join('\n')
  const credentials = [
    '-----BEGIN NATS USER JWT-----',
    ofUser,
    '------END NATS USER JWT------',
    '',
    '-----BEGIN USER NKEY SEED-----',
    textOf(user.getSeed()),
    '------END USER NKEY SEED------',
    '',
  ].join('\n')
  return { config, credentials }
}

withNats(6, () => {
  test('nodes meet over TLS and over WebSocket, each proving who it is', async () => {
    verifies('14.2-reach')
    const [port, webPort] = [await freePort(), await freePort()]
    await startNats({ port, config: `tls ${NEEDS_TLS()}\nwebsocket { port: ${webPort}, tls ${NEEDS_TLS()} }` })
    const [a, b] = await Promise.all([
      startNode(`tls://127.0.0.1:${port}`, 'n1', { pools: [{ ...ECHO, id: 'one' }], cluster: files() }),
      startNode(`wss://127.0.0.1:${webPort}`, 'n2', { pools: [{ ...ECHO, id: 'two' }], cluster: files() }),
    ])
    await untilReachable(a, 'two')
    await untilReachable(b, 'one')
  })

  test('a node that shows a file of credentials is let in', async () => {
    verifies('14.2-reach')
    const { config, credentials } = issue()
    const nats = await startNats({ config })
    const path = testWorkspace().writeOwn('node.creds', credentials)
    const [a] = await Promise.all([
      startNode(nats, 'n1', { cluster: { credentials: path } }),
      startNode(nats, 'n2', { pools: [ECHO], cluster: { credentials: path } }),
    ])
    await untilReachable(a, 'echo')
  })

  test('a percent sign in a password is one', async () => {
    verifies('14.2-reach')
    const nats = await startNats({ config: 'authorization { user: me, password: "100%" }' })
    const url = `nats://me:\${NATS_PASSWORD}@127.0.0.1:${nats.port}`
    const env = { NATS_PASSWORD: '100%' }
    const [a] = await Promise.all([startNode(url, 'n1', { env }), startNode(url, 'n2', { pools: [ECHO], env })])
    await untilReachable(a, 'echo')
  })

  describe('a file that holds no credentials', () => {
    const { credentials } = issue()
    test.each([
      ['nothing', ''],
      ['something else', 'hello'],
      ['no key', credentials.slice(0, credentials.indexOf('-----BEGIN USER'))],
    ])('but %s is a mistake', async (_what, text) => {
      verifies('14.1-mistakes')
      const path = testWorkspace().writeOwn('node.creds', text)
      const config = clusterConfig('nats://127.0.0.1:1', 'n1', { cluster: { credentials: path } })
      const bus = await startBus({ config, unready: true })
      expect((await bus.exit).code).toBe(2)
      expect(bus.log.text).toContain('node.creds holds no credentials of a NATS user')
    })
  })
})
