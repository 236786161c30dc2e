/**
 * Notices that a TLS connection was closed because of who we are.
 *
 * The handshake ends for us before the other side has looked at our certificate. What it thinks of it comes afterwards, as
 * an alert or, where there is one to be looked at, as an end without a word; to come back would end the same way. Over any
 * other transport nobody is turned away like that.
 */
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { explainConnection } from '../host/connection-failures.ts'
import { BusRefused } from './errors.ts'

/** Whoever is let in stays longer than this, or hears something. */
const SOON_MS = 2_000
const WITHOUT_A_WORD = 'the bus refuses this connection without a word: it may not know the certificate of this client'

/** To be asked when the socket has closed. */
export type TurnedAway = () => BusRefused | undefined

export function watchForTurningAway(socket: Duplex): TurnedAway {
  if (!isSecured(socket)) return () => undefined
  const isSilenceTelling = Object.keys(socket.getCertificate() ?? {}).length > 0
  const openedAtMs = performance.now()
  let alert: BusRefused | undefined
  let hasHeard = false
  socket.on('error', (error) => {
    const { trouble, why } = explainConnection(error)
    if (trouble === 'refused') alert ??= refusedFor(why)
  })
  socket.once('data', () => {
    hasHeard = true
  })
  return () => {
    if (alert !== undefined || !isSilenceTelling || hasHeard) return alert
    return performance.now() - openedAtMs > SOON_MS ? undefined : new BusRefused('unauthenticated', WITHOUT_A_WORD)
  }
}

export function refusedFor(why: string): BusRefused {
  return new BusRefused('unauthenticated', `the bus refuses this connection: ${why}`)
}

function isSecured(socket: Duplex): socket is TLSSocket {
  return 'encrypted' in socket
}
