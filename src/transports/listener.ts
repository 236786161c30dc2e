/**
 * What every door has in common, as types: a way to hand over connections, and a way to be closed.
 *
 * A door carries bytes. It frames nothing, answers nothing and knows no protocol; what it hands over is half-open capable,
 * so that a client that has ended its writing side still gets its answers (contract 4.1.2).
 */
import type { Duplex } from 'node:stream'
import type { PeerCertificate } from 'node:tls'
import type { Door } from '../kernel/vocabulary.ts'

export interface ConnectionInfo {
  readonly door: Door
  /** Only this machine's own programs can be at the other end. */
  readonly isLocal: boolean
  /** The address of the listener that was connected to, as in `Listener.address`. */
  readonly listener: string
  /** Who is at the other end, as far as the system tells: `127.0.0.1:50412`, or empty. */
  readonly peer: string
  /**
   * Of a TLS connection, which is handed over before its handshake: the certificate that the peer has proved to be its
   * own, undefined if it has none. Fails when the handshake does; the stream is destroyed then, and nobody need listen.
   */
  readonly secured?: Promise<PeerCertificate | undefined>
}

/** Takes over a connection. It must attach its `error` listener before it returns. */
export type Accept = (socket: Duplex, info: ConnectionInfo) => void

export interface Listener {
  /** `stdio`, `unix:/path`, `tcp:127.0.0.1:7400` or `tls:127.0.0.1:7443` with the port that was really bound. */
  readonly address: string
  /** Stops accepting and removes what the door put into the file system; accepted connections live on. */
  close(): Promise<void>
}

export interface DoorOptions {
  /** Hears of trouble with accepting, a few times a second at most; the door goes on serving. */
  readonly onTrouble?: (message: string) => void
}
