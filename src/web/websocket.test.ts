/** A peer that the bus does not read from cannot be heard to answer pings (contract 10.14, 10.16). */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { WebSocketPeer } from '../../test/support/web.ts'
import type { MessageListener } from '../transports/messages.ts'
import { acceptWebSocket } from './websocket.ts'

const PING_MS = 30_000

test('whoever is held up is not taken for dead, whoever is silent is', async () => {
  verifies('10.14-pings')
  const lines: string[] = []
  const client = { id: 1, send: (line: Buffer) => lines.push(String(line)), drained: () => {}, leave: () => {} }
  let listener!: MessageListener
  const open = (...[, , , heard]: [unknown, unknown, unknown, MessageListener]) => {
    listener = heard
    return client
  }
  const port = { maxMessageBytes: 1_000, refused: () => {}, open } as never
  const server = createServer()
  server.on('upgrade', (request, socket, head) => {
    const web = { request, admitted: {}, connection: {} } as never
    acceptWebSocket(port, { binary: 'refused', headers: {} }, { web, socket, head })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const peer = new WebSocketPeer(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  await peer.opened()

  listener.pause()
  peer.socket.send('{}')
  vi.advanceTimersByTime(5 * PING_MS)
  listener.resume()
  await vi.waitFor(() => expect(lines).toEqual(['{}']))

  peer.socket.pause()
  vi.advanceTimersByTime(5 * PING_MS)
  peer.socket.resume()
  expect((await peer.closed).code).toBe(1006)
})
