import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect as connectPlain, createServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { Authority, type Pair } from '../../test/support/certificates.ts'
import { eventually, within } from '../../test/support/waiting.ts'
import type { ConnectionInfo, Listener } from './listener.ts'
import { listenTls, type TlsOptions } from './tls.ts'

let authority: Authority
let strangers: Authority
let server: Pair
let caText: string
const listeners: Listener[] = []
const clients: Socket[] = []

beforeAll(() => {
  authority = new Authority()
  strangers = new Authority('strangers')
  server = authority.server()
  caText = readFileSync(authority.ca, 'utf8')
})
afterAll(() => {
  authority.remove()
  strangers.remove()
})
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close()
  for (const client of clients.splice(0)) client.destroy()
})

interface Came {
  readonly socket: Duplex
  readonly info: ConnectionInfo
  /** All it has said so far. */
  said: string
  /** What it had said when it was known to be secured. */
  saidBefore?: string
}

interface House {
  readonly port: number
  readonly address: string
  readonly came: Came[]
  readonly told: string[]
  /** The next connection, however its handshake ends. */
  next(): Promise<Came>
}

async function open(options: Partial<TlsOptions> = {}): Promise<House> {
  const came: Came[] = []
  const told: string[] = []
  let taken = 0
  const all = {
    allowUnauthenticated: false,
    ...server,
    onTrouble: (message: string) => void told.push(message),
    onExchanged: () => void told.push('exchanged'),
    ...options,
  }
  const listener = await listenTls('127.0.0.1:0', all, (socket, info) => {
    const each: Came = { socket, info, said: '' }
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      each.said += chunk
    })
    info.secured!.then(
      () => {
        each.saidBefore = each.said
      },
      () => {},
    )
    came.push(each)
  })
  listeners.push(listener)
  const port = Number(listener.address.split(':').at(-1))
  const next = () => {
    const mine = taken++
    return eventually('a connection', () => came[mine])
  }
  return { port, address: listener.address, came, told, next }
}

function dial(port: number, options: ConnectionOptions = {}): TLSSocket {
  const client = connect({ host: '127.0.0.1', port, ca: caText, allowHalfOpen: true, ...options } as ConnectionOptions)
  clients.push(client.on('error', () => {}))
  return client
}

function pairOf({ cert, key }: Pair): ConnectionOptions {
  return { cert: read(cert), key: read(key) }
}

function read(path: string): Buffer {
  return readFileSync(path)
}

const failure = (came: Came) =>
  came.info.secured!.then(
    () => 'none',
    (error: Error) => error.message,
  )

describe('the tls door', () => {
  it('9.16 hands a connection over before its handshake, and tells when it is secured', async () => {
    verifies('9.16-door')
    const house = await open()
    const silent = connectPlain(house.port, '127.0.0.1')
    clients.push(silent)
    const first = await house.next()
    expect(house.address).toMatch(/^tls:127\.0\.0\.1:[1-9]\d*$/)
    expect(first.info).toMatchObject({ door: 'tls', isLocal: false, listener: house.address })
    expect(first.info.peer).toBe(`127.0.0.1:${silent.localPort}`)

    const client = dial(house.port)
    client.write('hello')
    const second = await house.next()
    expect(await second.info.secured).toBeUndefined()
    await eventually('its bytes', () => second.said === 'hello')
    second.socket.write('welcome')
    expect(String((await once(client, 'data'))[0])).toBe('welcome')
  })

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    '4.1.2 %s: who has ended its writing side still gets its answers',
    async (v) => {
      const house = await open()
      const client = dial(house.port, { minVersion: v, maxVersion: v })
      client.end('question')
      const came = await house.next()
      await eventually('its end', () => came.socket.readableEnded)
      expect(came.said).toBe('question')
      came.socket.end('answer'.repeat(50_000))
      expect((await text(client)).length).toBe(300_000)
      expect(client.getProtocol() ?? v).toBe(v)
    },
  )

  it('9.16 takes nothing older than TLS 1.2', async () => {
    verifies('9.16-version')
    const house = await open()
    dial(house.port, { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' })
    expect(await failure(await house.next())).toMatch(/unsupported protocol|version/i)
  })

  it('takes up no earlier session, whose certificate may have expired', async () => {
    const house = await open()
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const first = dial(house.port, { minVersion: version, maxVersion: version })
      let session: Buffer | undefined
      first.on('session', (each) => {
        session = each
      })
      await once(first, 'secureConnect')
      const again = dial(house.port, {
        minVersion: version,
        maxVersion: version,
        session: session ?? first.getSession(),
      } as ConnectionOptions)
      await once(again, 'secureConnect')
      expect(again.isSessionReused()).toBe(false)
    }
  })

  it.each([
    ['plain TCP', 'hello there, this is no TLS at all\n'],
    ['an HTTP request', 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'],
    ['a ClientHello that is cut', Buffer.from('1603010200010001fc0303', 'hex')],
  ])('%s is turned away, and said', async (_what, bytes) => {
    const house = await open()
    const client = connectPlain(house.port, '127.0.0.1').on('error', () => {})
    clients.push(client)
    client.end(bytes)
    const came = await house.next()
    expect(await failure(came)).not.toBe('none')
    await eventually('its end', () => came.socket.destroyed)
    expect(came.said).toBe('')
    expect(house.told[0]).toMatch(/^a TLS handshake with 127\.0\.0\.1:\d+ failed: /)
  })

  it('bytes that are no TLS any more end the connection', async () => {
    const house = await open()
    const raw = connectPlain(house.port, '127.0.0.1')
    clients.push(raw)
    const client = connect({ socket: raw, ca: caText, host: '127.0.0.1' }).on('error', () => {})
    await once(client, 'secureConnect')
    const came = await house.next()
    raw.write('this was not encrypted by anybody, and is long enough')
    await eventually('its end', () => came.socket.destroyed)
    expect(came.said).toBe('')
  })

  it('9.3 a handshake that never ends, ends', async () => {
    verifies('9.16-handshake')
    const house = await open()
    const client = connectPlain(house.port, '127.0.0.1')
    clients.push(client)
    expect(await within(9_000, 'the end of the handshake', failure(await house.next()))).toBe('it took too long')
    await once(client.resume(), 'close')
  }, 12_000)
})

describe('9.16 certificates of clients', () => {
  const asks = () => ({ clientCa: authority.ca })
  const alice = () => pairOf(authority.client({ name: 'alice', altNames: 'URI:spiffe://corp/agents/alice' }))

  it('one that the authority has signed is told', async () => {
    verifies('9.16-client-ca')
    const house = await open(asks())
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      dial(house.port, { ...alice(), minVersion: version, maxVersion: version }).write('hi')
      const came = await house.next()
      const certificate = await came.info.secured
      expect(certificate?.subject.CN).toBe('alice')
      expect(certificate?.subjectaltname).toBe('URI:spiffe://corp/agents/alice')
      await eventually('its bytes', () => came.said === 'hi')
    }
  })

  const BAD: Record<string, () => ConnectionOptions> = {
    'of another authority': () => pairOf(strangers.client()),
    'that has expired': () => pairOf(authority.client({ days: [-2, -1] })),
    'that is not valid yet': () => pairOf(authority.client({ days: [1, 2] })),
    'of a server': () => pairOf(authority.server()),
  }

  it.each(Object.keys(BAD))('one %s is refused, where one is required and where not', async (which) => {
    verifies('9.16-client-ca')
    for (const isClientCertOptional of [false, true]) {
      for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
        const house = await open({ ...asks(), isClientCertOptional })
        const client = dial(house.port, { ...BAD[which]!(), minVersion: version, maxVersion: version })
        client.write('let me in')
        const came = await house.next()
        expect(await failure(came)).toMatch(/certificate/)
        expect(came.socket.destroyed).toBe(true)
        await eventually('its end', () => client.resume().readableEnded || client.destroyed)
        expect(came.said).toBe('')
        expect(house.told.join()).toMatch(/failed: its certificate does not hold/)
      }
    }
  })

  it('none is refused where one is required, and is none where it is optional', async () => {
    verifies('9.16-optional')
    const strict = await open(asks())
    const client = dial(strict.port)
    client.write('let me in')
    const came = await strict.next()
    expect(await failure(came)).toMatch(/peer did not return a certificate/)
    expect(came.said).toBe('')
    const lenient = await open({ ...asks(), isClientCertOptional: true })
    dial(lenient.port).write('hi')
    const second = await lenient.next()
    expect(await second.info.secured).toBeUndefined()
    await eventually('its bytes', () => second.said === 'hi')
  })

  it('none is asked for without an authority', async () => {
    const house = await open()
    dial(house.port, alice())
    expect(await (await house.next()).info.secured).toBeUndefined()
  })

  it('is told before the first byte, also where that has come with the end of the handshake', async () => {
    const house = await open(asks())
    const port = await relayInOne(house.port)
    dial(port, alice()).end('early')
    const came = await house.next()
    await eventually('its end', () => came.socket.readableEnded)
    expect([came.saidBefore, came.said]).toEqual(['', 'early'])
  })
})

/** Lets the first flight of a client pass, and gathers all others into one. */
async function relayInOne(to: number): Promise<number> {
  const relay = createServer({ allowHalfOpen: true }, (near) => {
    const far = connectPlain({ port: to, host: '127.0.0.1', allowHalfOpen: true })
    clients.push(near, far)
    far.pipe(near)
    near.once('data', (hello) => {
      far.write(hello)
      const rest: Buffer[] = []
      near.on('data', (chunk) => rest.push(chunk))
      near.once('end', () => far.end(Buffer.concat(rest)))
    })
  })
  relay.listen(0, '127.0.0.1')
  await once(relay, 'listening')
  listeners.push({ address: '', close: async () => void relay.close() })
  return (relay.address() as AddressInfo).port
}

describe('9.17 what cannot be used is said at the start, exit 2', () => {
  const BAD: Record<string, [() => Partial<TlsOptions>, RegExp]> = {
    'a certificate that is not there': [() => ({ cert: authority.path('none.pem') }), /none\.pem does not exist/],
    'a key that is not there': [() => ({ key: authority.path('none.key') }), /none\.key does not exist/],
    'an authority that is not there': [() => ({ clientCa: authority.path('none.pem') }), /none\.pem does not exist/],
    'a folder': [() => ({ cert: authority.folder }), /is a folder/],
    'a key of another certificate': [() => ({ key: authority.server().key }), /is not the key of/],
    'a certificate in the place of the key': [
      () => ({ key: copy(server.cert, 'wrong.key', 0o600) }),
      /holds no private key/,
    ],
    'a key in the place of the certificate': [() => ({ cert: server.key }), /holds no certificate/],
    'a key in the place of the authority': [() => ({ clientCa: server.key }), /holds no certificate/],
    'a certificate that is cut': [() => ({ cert: cut(server.cert) }), /holds no certificate/],
    'a certificate that is damaged': [
      () => ({ cert: damaged(server.cert) }),
      /holds a certificate that cannot be read/,
    ],
    'a key that its group may read': [
      () => ({ key: copy(server.key, 'group.key', 0o640) }),
      /open to other users.*chmod 600/,
    ],
    'a key that others may read': [() => ({ key: copy(server.key, 'world.key', 0o604) }), /open to other users/],
    'a link to a key that others may read': [
      () => ({ key: linkTo(copy(server.key, 'linked.key', 0o644)) }),
      /open to other users/,
    ],
  }

  it.each(Object.keys(BAD))('%s', async (which) => {
    verifies('9.17-start')
    const [options, message] = BAD[which]!
    const refused = open(options())
    await expect(refused).rejects.toMatchObject({ name: 'UnusableFile', exitCode: 2 })
    await expect(refused).rejects.toThrow(message)
    await expect(refused).rejects.not.toThrow(/BEGIN|MII/)
  })

  it('a key behind a link is as good as any', async () => {
    const house = await open({ key: linkTo(server.key) })
    dial(house.port)
    expect(await (await house.next()).info.secured).toBeUndefined()
  })
})

describe('9.17 exchanged while the door is open', () => {
  it('new handshakes take the new pair, live connections stay, and a bad pair is only logged', async () => {
    verifies('9.17-exchange', '9.17-bad-pair')
    const cert = copy(server.cert, 'live.pem')
    const key = copy(server.key, 'live.key', 0o600)
    const house = await open({ cert, key })
    const old = dial(house.port)
    await once(old, 'secureConnect')
    const lives = await house.next()
    const before = old.getPeerCertificate().serialNumber

    const next = authority.server()
    replace(next.cert, cert)
    await eventually('the mismatch to be told', () => house.told.some((each) => each.includes('is not the key of')))
    const between = dial(house.port)
    await once(between, 'secureConnect')
    expect(between.getPeerCertificate().serialNumber).toBe(before)

    replace(next.key, key, 0o600)
    await eventually('the exchange', () => house.told.includes('exchanged'))
    const late = dial(house.port)
    await once(late, 'secureConnect')
    expect(late.getPeerCertificate().serialNumber).not.toBe(before)

    lives.socket.write('still here')
    expect(String((await once(old, 'data'))[0])).toBe('still here')
    chmodSync(key, 0o644)
    await eventually('the open key to be told', () => house.told.some((each) => each.includes('open to other users')))
    const last = dial(house.port)
    await once(last, 'secureConnect')
  })

  it('the authority of clients too', async () => {
    verifies('9.17-exchange')
    const clientCa = copy(authority.ca, 'clients.pem')
    const house = await open({ clientCa })
    const [ours, theirs] = [pairOf(authority.client()), pairOf(strangers.client({ name: 'stranger' }))]
    dial(house.port, theirs)
    expect(await failure(await house.next())).toMatch(/certificate/)
    replace(strangers.ca, clientCa)
    await eventually('the exchange', () => house.told.includes('exchanged'))
    dial(house.port, theirs)
    expect((await (await house.next()).info.secured)?.subject.CN).toBe('stranger')
    dial(house.port, ours)
    expect(await failure(await house.next())).toMatch(/certificate/)
  })

  it('a folder of links that is exchanged as a whole, as mounted secrets are', async () => {
    const [one, two] = ['first', 'second'].map((name) => authority.path(name))
    const pairs = [server, authority.server()]
    for (const [at, folder] of [one!, two!].entries()) {
      mkdirSync(folder)
      copyFileSync(pairs[at]!.cert, `${folder}/tls.crt`)
      copyFileSync(pairs[at]!.key, `${folder}/tls.key`)
      chmodSync(`${folder}/tls.key`, 0o600)
    }
    const data = authority.path('data')
    symlinkSync(one!, data)
    const house = await open({ cert: `${data}/tls.crt`, key: `${data}/tls.key` })
    symlinkSync(two!, `${data}.new`)
    renameSync(`${data}.new`, data)
    await eventually('the exchange', () => house.told.includes('exchanged'))
    expect(house.told).toEqual(['exchanged'])
  })
})

function copy(from: string, name: string, mode = 0o644): string {
  const path = authority.path(name)
  copyFileSync(from, path)
  chmodSync(path, mode)
  return path
}

/** Moves a copy into the place of a file. */
function replace(from: string, path: string, mode = 0o644): void {
  copyFileSync(from, `${path}.new`)
  chmodSync(`${path}.new`, mode)
  renameSync(`${path}.new`, path)
}

function linkTo(path: string): string {
  const link = authority.path(`link-${Math.random()}`)
  symlinkSync(path, link)
  return link
}

function cut(path: string): string {
  const name = authority.path('cut.pem')
  writeFileSync(name, read(path).subarray(0, 200))
  return name
}

function damaged(path: string): string {
  const name = authority.path('damaged.pem')
  writeFileSync(name, String(read(path)).replace(/\n.{8}/, '\nAAAAAAAA'))
  return name
}
