/** Ends a connection in an orderly way. */
import type { Socket } from 'node:net'

export const HANG_UP_TIMEOUT_MS = 1_000

/** Writes what is left and lets the bus close first: a socket torn down over unread bytes takes its last lines along. */
export function hangUp(socket: Socket, done: () => void): void {
  const timer = setTimeout(() => socket.destroy(), HANG_UP_TIMEOUT_MS)
  socket.once('close', () => {
    clearTimeout(timer)
    done()
  })
  socket.once('end', () => socket.destroy())
  socket.resume()
  socket.end()
}
