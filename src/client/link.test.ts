/** The link against a bus that is played by the test: every answer, refusal and silence is on purpose. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { dial } from './address.ts'
import { type BusError, BusGone, BusRefused } from './errors.ts'
import { Link, type LinkOptions } from './link.ts'

// biome-ignore lint/suspicious/noExplicitAny: what peers say has no type; the tests look into it
type Message = any

/** What the played bus does with a line of its n-th connection (from 0). */
type Play = (message: Message, socket: Socket, connection: number) => void

async function playedBus(play: Play): Promise<{ path: string; sockets: Socket[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'sb-'))
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    const connection = sockets.push(socket) - 1
    socket.on('error', () => {})
    createInterface({ input: socket }).on('line', (line) => play(JSON.parse(line), socket, connection))
  })
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const path = join(folder, 'bus.sock')
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return { path, sockets }
}

function linkTo(path: string, options: Partial<LinkOptions> = {}) {
  const heard: Message[] = []
  const news: string[] = []
  let end: (error: BusError | undefined) => void = () => {}
  const ended = new Promise<BusError | undefined>((resolve) => {
    end = resolve
  })
  const link = new Link(
    { dial: () => dial({ unix: path }), reconnectTimeoutMs: 3_000, ...options },
    {
      received: (lines) => {
        for (const line of lines.toString().trim().split('\n')) heard.push(JSON.parse(line))
      },
      drained: () => news.push('drained'),
      lost: (failed) => news.push(`lost ${failed}`),
      restored: () => news.push('restored'),
      ended: end,
    },
  )
  const say = (message: object) => link.write(Buffer.from(`${JSON.stringify(message)}\n`))
  return { link, heard, news, ended, say }
}

const answer = (socket: Socket, id: unknown, result: unknown = {}) =>
  void socket.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)

const refuse = (socket: Socket, id: unknown, reason: string, retryable: boolean) =>
  void socket.end(`${JSON.stringify({ id, error: { code: -32603, message: 'no', data: { reason, retryable } } })}\n`)

async function until(what: string, test: () => boolean): Promise<void> {
  for (let i = 0; i < 200; i++) {
    if (test()) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`did not happen: ${what}`)
}

test('4.1.2 what does not come within the bound is answered here, and the end is a clean one', async () => {
  const { path } = await playedBus(() => {})
  const { link, heard, ended, say } = linkTo(path)
  await link.open()
  say({ id: 1, method: 'x' })
  link.finish(100)
  expect(await ended).toBeUndefined()
  expect(heard).toMatchObject([{ id: 1, error: { code: -32603, data: { reason: 'request_timeout' } } }])
})

test('6.3 bus::open is the first line of every connection, and its answer is kept back', async () => {
  const firsts: Message[] = []
  const seen = new Set<number>()
  const { path, sockets } = await playedBus((message, socket, connection) => {
    if (!seen.has(connection)) firsts.push(message)
    seen.add(connection)
    answer(socket, message.id)
  })
  const { link, heard, news, say } = linkTo(path, { pool: 'p' })
  await link.open()
  sockets[0]!.destroy()
  await until('restored', () => news.includes('restored'))
  say({ id: 'mine', method: 'x' })
  await until('an answer', () => heard.length > 0)
  expect(firsts).toMatchObject(Array(2).fill({ method: 'bus::open', params: { pool: 'p' } }))
  expect(heard.map(({ id }) => id)).toEqual(['mine'])
  link.close()
})

test('a refusal that may pass is tried again, another one ends it', async () => {
  const { path, sockets } = await playedBus((message, socket, connection) => {
    if (connection === 1) return refuse(socket, null, 'too_many_clients', true)
    if (connection === 3) return refuse(socket, message.id, 'unknown_pool', false)
    answer(socket, message.id)
  })
  const { link, heard, news, ended } = linkTo(path, { pool: 'p' })
  await link.open()
  sockets[0]!.destroy()
  await until('restored', () => news.includes('restored'))
  expect(sockets).toHaveLength(3)
  sockets[2]!.destroy()
  expect(await ended).toMatchObject({ name: 'BusRefused', reason: 'unknown_pool' })
  expect(heard).toEqual([])
})

test('a worker that refuses the repeated introduction for good ends it; what waited is failed', async () => {
  const { path, sockets } = await playedBus((message, socket, connection) => {
    if (connection === 0) return answer(socket, message.id)
    refuse(socket, message.id, 'protocol_mismatch', false)
  })
  const { link, heard, ended, say } = linkTo(path)
  await link.open()
  say({ id: 0, method: 'initialize', params: { protocolVersion: 1 } })
  await until('initialized', () => heard.length === 1)
  sockets[0]!.destroy()
  await until('lost', () => sockets[0]!.destroyed)
  say({ id: 1, method: 'session/new' })
  expect(await ended).toBeInstanceOf(BusRefused)
  expect(heard[1]).toMatchObject({ id: 1, error: { data: { reason: 'bus_gone' } } })
})

test('a bus that breaks off in the middle of the introduction is looked for again', async () => {
  const repeated: Message[] = []
  const { path, sockets } = await playedBus((message, socket, connection) => {
    if (connection > 0 && message.method === 'initialize') repeated.push(message)
    if (connection === 1) return void socket.destroy()
    answer(socket, message.id)
  })
  const { link, heard, news, say } = linkTo(path)
  await link.open()
  say({ id: 0, method: 'initialize', params: { protocolVersion: 1 } })
  await until('initialized', () => heard.length === 1)
  sockets[0]!.destroy()
  await until('restored', () => news.includes('restored'))
  expect(repeated).toHaveLength(2)
  expect(heard).toHaveLength(1)
  link.close()
})

test('a bus that stays away: BusGone after the time that was given', async () => {
  verifies('6.10.4-gives-up')
  let dials = 0
  const { path, sockets } = await playedBus(() => {})
  const { link, ended, news } = linkTo(path, {
    reconnectTimeoutMs: 200,
    dial: () => dial({ unix: ++dials === 1 ? path : `${path}.gone` }),
  })
  await link.open()
  sockets[0]!.destroy()
  const error = await ended
  expect(error).toBeInstanceOf(BusGone)
  expect(error?.message).toMatch(/did not come back/)
  expect(dials).toBeGreaterThan(2)
  expect(news).toEqual(['lost 0'])
})

test('closed while the bus is away: nobody dials any more', async () => {
  let dials = 0
  const { path, sockets } = await playedBus(() => {})
  const { link, ended, news, say } = linkTo(path, {
    dial: () => dial({ unix: ++dials === 1 ? path : `${path}.gone` }),
  })
  await link.open()
  sockets[0]!.destroy()
  await until('lost', () => news.length > 0)
  expect(say({ id: 1, method: 'x' })).toBe(true)
  link.close()
  expect(await ended).toBeUndefined()
  const after = dials
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect(dials).toBe(after)
})

test('while the bus is away a writer is stopped at the bound and told when there is room', async () => {
  const { path, sockets } = await playedBus((message, socket) => answer(socket, message.id))
  let isAway = false
  const { link, heard, news, say } = linkTo(path, {
    dial: () => (isAway ? Promise.reject(new BusGone('not yet')) : dial({ unix: path })),
  })
  await link.open()
  isAway = true
  sockets[0]!.destroy()
  await until('lost', () => news.length > 0)
  const pad = 'x'.repeat(1024 * 1024)
  expect(say({ id: 1, method: 'x' })).toBe(true)
  expect(say({ id: 2, method: 'x', params: { pad } })).toBe(false)
  expect(news).not.toContain('drained')
  isAway = false
  await until('both answers', () => heard.length === 2)
  expect(news).toContain('drained')
  link.close()
})

test('a side that does not read still gets its connection back, and nothing before it reads', async () => {
  const { path, sockets } = await playedBus((message, socket) => answer(socket, message.id))
  const { link, heard, news, say } = linkTo(path, { pool: 'p' })
  await link.open()
  sockets[0]!.destroy()
  await until('lost', () => news.length > 0)
  link.pause()
  await until('restored', () => news.includes('restored'))
  say({ id: 1, method: 'x' })
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(heard).toEqual([])
  link.resume()
  await until('the answer', () => heard.length === 1)
  link.close()
})
