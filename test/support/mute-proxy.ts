/** A way to a server that can go mute: nothing passes and nothing is closed, as where a network is cut. */
import { connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export interface MuteProxy {
  readonly url: string
  mute(): void
  /** What was held back passes now. */
  speak(): void
}

export async function startMuteProxy(port: number): Promise<MuteProxy> {
  const sockets = new Set<Socket>()
  let isMute = false
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', (bytes) => to.write(bytes))
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      if (isMute) from.pause()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port: own } = server.address() as { port: number }
  return {
    url: `nats://127.0.0.1:${own}`,
    mute: () => {
      isMute = true
      for (const socket of sockets) socket.pause()
    },
    speak: () => {
      isMute = false
      for (const socket of sockets) socket.resume()
    },
  }
}
