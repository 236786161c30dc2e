/** What every socket door does alike: one suite, run by each. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Accept, ConnectionInfo, Listener } from './listener.ts'
import { listenTcp } from './tcp.ts'
import { listenUnix } from './unix.ts'

let folder: string
let listener: Listener
const accepted: Array<{ socket: Duplex; info: ConnectionInfo }> = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stdio-bus-doors-'))
})

afterEach(async () => {
  await listener.close()
  for (const { socket } of accepted.splice(0)) socket.destroy()
  await rm(folder, { recursive: true })
})

const keep: Accept = (socket, info) => {
  socket.on('error', () => {})
  accepted.push({ socket, info })
}

function dial(address: string): Socket {
  const tcp = /^tcp:(.+):(\d+)$/.exec(address)
  return tcp ? connect(Number(tcp[2]), tcp[1]) : connect(address.slice('unix:'.length))
}

async function meet(): Promise<{ client: Socket; socket: Duplex; info: ConnectionInfo }> {
  const client = dial(listener.address)
  await once(client, 'connect')
  while (accepted.length === 0) await new Promise(setImmediate)
  return { client, ...accepted.at(-1)! }
}

describe.each([
  ['unix', (accept: Accept) => listenUnix(join(folder, 'bus.sock'), accept)],
  ['tcp', (accept: Accept) => listenTcp('127.0.0.1:0', { allowUnauthenticated: false }, accept)],
] as const)('the %s door', (door, open) => {
  beforeEach(async () => {
    listener = await open(keep)
  })

  it('says where it is, and who came through which door', async () => {
    const { client, info } = await meet()
    expect(listener.address).toMatch(door === 'tcp' ? /^tcp:127\.0\.0\.1:[1-9]\d*$/ : /^unix:.*bus\.sock$/)
    expect(info).toEqual({
      door,
      isLocal: door !== 'tcp',
      listener: listener.address,
      peer: door === 'tcp' ? `127.0.0.1:${client.localPort}` : '',
    })
    client.destroy()
  })

  it('4.1.2 still carries answers to a client that has ended its writing side', async () => {
    const { client, socket } = await meet()
    client.end('question')
    const [question] = await once(socket, 'data')
    expect(String(question)).toBe('question')
    await once(socket, 'end')
    socket.end('answer')
    expect(await text(client)).toBe('answer')
  })

  it('stops accepting at once when closed, while accepted connections live on', async () => {
    const { client, socket } = await meet()
    await listener.close()
    const late = dial(listener.address)
    const [refusal] = await once(late, 'error')
    expect(['ENOENT', 'ECONNREFUSED']).toContain(refusal.code)
    socket.write('still here')
    const [chunk] = await once(client, 'data')
    expect(String(chunk)).toBe('still here')
    client.destroy()
  })

  it('may be closed twice', async () => {
    await listener.close()
    await expect(listener.close()).resolves.toBeUndefined()
  })
})
