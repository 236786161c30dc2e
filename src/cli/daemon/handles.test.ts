import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Duplex, PassThrough } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Authority } from '../../../test/support/certificates.ts'
import { readByEvents, readLent, type Writer, writeByStream, writerOf } from './handles.ts'

/** The two ways to use a socket; both must behave alike. */
const WAYS = {
  'by its handle': { read: readLent, write: writerOf },
  'as a stream': { read: readByEvents, write: writeByStream },
}

/** What the system takes of a peer that does not read is less. */
const MUCH = Buffer.alloc(4 * 1024 * 1024, 'much of it ')

let folder: string
let server: Server
const open: Duplex[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'stdio-bus-handles-'))
  server = createServer({ allowHalfOpen: true })
})
afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy()
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

describe.each(Object.entries(WAYS))('a socket that is used %s', (_name, way) => {
  interface Ends {
    /** Ours, and what it was given and told. */
    readonly near: Duplex
    readonly write: Writer
    readonly received: () => string
    readonly drains: () => number
    readonly events: string[]
    /** The peer's. */
    readonly far: Socket
  }

  async function joinEnds(): Promise<Ends> {
    const path = join(folder, 's')
    await once(server.listen(path), 'listening')
    const far = connect({ path, allowHalfOpen: true })
    const [accepted] = (await once(server, 'connection')) as [Socket]
    let text = ''
    let drains = 0
    const near = way.read(accepted, (chunk: Buffer) => {
      text += chunk.latin1Slice()
    })
    const events: string[] = []
    for (const name of ['end', 'finish', 'error', 'close']) near.on(name, () => events.push(name))
    const write = way.write(near, () => drains++)
    open.push(near, far)
    far.on('error', () => {})
    return { near, write, received: () => text, drains: () => drains, events, far }
  }

  async function until(isSo: () => boolean): Promise<void> {
    for (let turn = 0; turn < 1_000_000 && !isSo(); turn++) await nextTurn()
    expect(isSo()).toBe(true)
  }

  test('gives what comes, once it is resumed, and not while it is paused', async () => {
    const { near, received, far } = await joinEnds()
    far.write('one\n')
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    expect(received()).toBe('')
    near.resume()
    await until(() => received() === 'one\n')
    near.pause()
    far.write('two\n')
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    near.resume()
    await until(() => received() === 'one\ntwo\n')
  })

  test('ends in halves: what the peer is still owed can be written after its end', async () => {
    const { near, write, events, far } = await joinEnds()
    near.resume()
    far.end('last\n')
    await once(near, 'end')
    expect(write([Buffer.from('answer\n')])).toBe(0)
    near.end()
    far.setEncoding('utf8')
    expect((await far.toArray()).join('')).toBe('answer\n')
    await until(() => events.includes('close'))
    expect(events.filter((name) => name !== 'finish')).toEqual(['end', 'close'])
    expect(write([Buffer.from('too late')])).toBe(0)
  })

  test('an end that comes while it is paused is told when it is resumed', async () => {
    const { near, received, events, far } = await joinEnds()
    near.resume()
    far.write('first\n')
    await until(() => received() === 'first\n')
    near.pause()
    far.end('last\n')
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    near.resume()
    await until(() => events.includes('end'))
    expect(received()).toBe('first\nlast\n')
  })

  test('tells what a peer that does not read has not taken, and when it has taken it', async () => {
    const { write, drains, far } = await joinEnds()
    far.pause()
    expect(write([Buffer.from('little')])).toBe(0)
    expect(drains()).toBe(0)
    const pendingBytes = write([MUCH.subarray(0, 1000), MUCH])
    expect(pendingBytes).toBeGreaterThan(0)
    expect(pendingBytes).toBeLessThanOrEqual(MUCH.length + 1000)
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    expect(drains()).toBe(0)
    let bytes = 0
    far.on('data', (chunk) => {
      bytes += chunk.length
    })
    far.resume()
    await until(() => bytes === MUCH.length + 1006)
    await until(() => drains() === 1)
    expect(write([Buffer.from('more')])).toBe(0)
    await until(() => bytes === MUCH.length + 1010)
    expect(drains()).toBe(1)
  })

  test('what is not taken yet still arrives when it is ended behind it', async () => {
    const { near, write, far } = await joinEnds()
    far.pause()
    expect(write([MUCH])).toBeGreaterThan(0)
    near.end()
    const chunks = await far.toArray()
    expect(Buffer.concat(chunks).equals(MUCH)).toBe(true)
  })

  test('a peer that is gone is an error and a close, and takes nothing', async () => {
    const { near, write, events, far } = await joinEnds()
    near.resume()
    far.destroy()
    await until(() => {
      if (!near.destroyed) write([Buffer.from('x')])
      return events.includes('close')
    })
    expect(events).toContain('error')
    expect(write([Buffer.from('x')])).toBe(0)
  })

  test('one that is destroyed over what was not taken closes once', async () => {
    const { near, write, events, far } = await joinEnds()
    far.pause()
    expect(write([MUCH])).toBeGreaterThan(0)
    near.destroy()
    await until(() => events.includes('close'))
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    expect(events).toEqual(['close'])
  })

  test('many at once, read slowly and with pauses, get the bytes that were sent', async () => {
    const path = join(folder, 'many')
    await once(server.listen(path), 'listening')
    const size = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 30_000, max: 200_000 }))
    const sender = fc.array(size, { minLength: 1, maxLength: 8 })
    const joinOne = async (read: (near: Duplex, chunk: Buffer) => void): Promise<{ near: Duplex; far: Socket }> => {
      const far = connect(path)
      const [accepted] = (await once(server, 'connection')) as [Socket]
      const near: Duplex = way.read(accepted, (chunk: Buffer) => read(near, chunk))
      open.push(near, far)
      return { near, far }
    }
    const run = async (senders: number[][], pausesAt: number): Promise<void> => {
      let chunks = 0
      const ends: Promise<void>[] = []
      for (const [number, sizes] of senders.entries()) {
        const [sent, got] = [createHash('sha1'), createHash('sha1')]
        const { near, far } = await joinOne((near, chunk) => {
          got.update(chunk)
          if (chunks++ % 3 !== pausesAt) return
          near.pause()
          setImmediate(() => near.resume())
        })
        near.resume()
        for (const bytes of sizes) {
          const part = Buffer.alloc(bytes, `${number}:${bytes};`)
          sent.update(part)
          far.write(part)
        }
        far.end()
        ends.push(once(near, 'end').then(() => expect(got.digest('hex')).toBe(sent.digest('hex'))))
      }
      await Promise.all(ends)
    }
    await fc.assert(fc.asyncProperty(fc.array(sender, { minLength: 1, maxLength: 5 }), fc.nat(2), run), { numRuns: 15 })
  })
})

test('the door goes on counting the connections whose sockets were replaced', async () => {
  const path = join(folder, 's')
  await once(server.listen(path), 'listening')
  const far = connect(path)
  const [accepted] = (await once(server, 'connection')) as [Socket]
  const near = readLent(accepted, () => {})
  open.push(far, near)
  expect(near).not.toBe(accepted)
  await nextTurn()
  const count = (): Promise<number> =>
    new Promise((resolve, reject) => server.getConnections((error, n) => (error ? reject(error) : resolve(n))))
  expect(await count()).toBe(1)
  near.destroy()
  await once(near, 'close')
  expect(await count()).toBe(0)
})

test('a stream without a handle, one that has been read from and one derived from a socket stay what they are', async () => {
  const stream = new PassThrough()
  expect(readLent(stream, () => {})).toBe(stream)
  class Derived extends Socket {}
  const derived = new Derived()
  expect(readLent(derived, () => {})).toBe(derived)
  const path = join(folder, 's')
  await once(server.listen(path), 'listening')
  const far = connect(path)
  const [accepted] = (await once(server, 'connection')) as [Socket]
  open.push(far, accepted)
  accepted.pause()
  expect(readLent(accepted, () => {})).toBe(accepted)
})

describe('a TLS stream', () => {
  let authority: Authority

  beforeAll(() => {
    authority = new Authority()
  })
  afterAll(() => authority.remove())

  async function joinTls(): Promise<{ near: Duplex; far: TLSSocket; write: Writer; drains: () => number }> {
    let drains = 0
    const accepted = new Promise<Duplex>((resolve) => {
      const files = authority.server()
      const secure = createTlsServer({ cert: readFileSync(files.cert), key: readFileSync(files.key) }, resolve)
      server = secure
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as { port: number }
    const far = connectTls({ port, host: '127.0.0.1', ca: readFileSync(authority.ca) })
    const [near] = await Promise.all([accepted, once(far, 'secureConnect')])
    open.push(near, far)
    return { near, far, write: writerOf(near, () => drains++), drains: () => drains }
  }

  test('what the system has taken is written, without further news of it', async () => {
    const { far, write, drains } = await joinTls()
    const received: string[] = []
    far.on('data', (chunk) => received.push(String(chunk)))
    expect(write([Buffer.from('one '), Buffer.from('line\n')])).toBe(0)
    while (received.join('') !== 'one line\n') await nextTurn()
    expect(write([Buffer.from('another\n')])).toBe(0)
    while (received.join('') !== 'one line\nanother\n') await nextTurn()
    expect(drains()).toBe(0)
  })

  test('what it has not taken is told, and once when it has; nothing is lost', async () => {
    const { far, write, drains } = await joinTls()
    expect(write([MUCH])).toBeGreaterThan(0)
    expect(write([Buffer.from('the last')])).toBeGreaterThan(MUCH.length)
    expect(drains()).toBe(0)
    const chunks: Buffer[] = []
    let bytes = 0
    far.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      bytes += chunk.length
    })
    while (bytes < MUCH.length + 8 || drains() === 0) await nextTurn()
    expect(Buffer.concat(chunks).equals(Buffer.concat([MUCH, Buffer.from('the last')]))).toBe(true)
    expect(drains()).toBe(1)
  })
})
