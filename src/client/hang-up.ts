/** Ends a connection, in an orderly way or at once. */
import type { Duplex } from 'node:stream'

export const HANG_UP_TIMEOUT_MS = 1_000

/** Writes what is left and lets the bus close first: a socket torn down over unread bytes takes its last lines along. */
export function hangUp(socket: Duplex, done: () => void): void {
  destroyInTime(socket, done)
  socket.once('end', () => socket.destroy())
  socket.resume()
  socket.end()
}

/** Writes what is left and closes both directions: nobody wants what would still come. */
export function tearDown(socket: Duplex, done: () => void): void {
  destroyInTime(socket, done)
  socket.once('finish', () => socket.destroy()).end()
  if (socket.writableFinished) socket.destroy()
}

function destroyInTime(socket: Duplex, done: () => void): void {
  const timer = setTimeout(() => socket.destroy(), HANG_UP_TIMEOUT_MS)
  socket.once('close', () => {
    clearTimeout(timer)
    done()
  })
}
