/**
 * The TLS door: the TCP door with every connection secured (contract 9.16, 9.17).
 *
 * A connection is handed over as soon as it is accepted, so that whoever keeps its time counts the handshake too. What
 * is written meanwhile waits, and nothing is read before whoever took it knows that it is secured. A certificate that does not hold is refused, also
 * where none would do: a bad proof is never taken for no proof. Certificates and keys are exchanged under a running door:
 * new handshakes take the new, live connections stay, and a pair that does not hold changes nothing.
 */
import { constants, createHash } from 'node:crypto'
import type { Socket } from 'node:net'
import { createSecureContext, type PeerCertificate, type SecureContext, TLSSocket } from 'node:tls'
import type { TcpAddress } from '../host/address.ts'
import { FileWatch } from '../host/file-watch.ts'
import { UnusableFile } from '../host/given-file.ts'
import { MIN_TLS_VERSION, readTlsMaterial, type TlsFiles, type TlsMaterial } from '../host/tls-files.ts'
import { rarely } from './acceptor.ts'
import { parseTcpAddress, resolveTcpAddress, type TcpPolicy } from './address.ts'
import type { Accept, DoorOptions, Listener } from './listener.ts'
import { bindTcp } from './tcp.ts'

export interface TlsOptions extends TcpPolicy, DoorOptions {
  /** Paths of PEM files. */
  readonly cert: string
  readonly key: string
  /** Who signs the certificates of clients; left out, none is asked for. */
  readonly clientCa?: string | undefined
  /** A client may come without a certificate. */
  readonly isClientCertOptional?: boolean
  /** New handshakes take new certificates from now on. */
  readonly onExchanged?: (message: string) => void
}

/** No longer than anybody may take to be admitted (contract 9.3). */
const HANDSHAKE_TIMEOUT_MS = 5_000
/**
 * A session that is taken up again would bring back a certificate that has expired since, and lines live long enough to
 * do without; a handshake within a connection only costs.
 */
const SECURE_OPTIONS = constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION

/** Listens on `address` (`HOST:PORT`; port 0 picks one) and hands every connection to `accept`. */
export async function listenTls(address: TcpAddress | string, options: TlsOptions, accept: Accept): Promise<Listener> {
  const asked = typeof address === 'string' ? parseTcpAddress(address) : address
  const judged = await resolveTcpAddress(asked, options)
  const door = new TlsDoor(options, accept)
  try {
    const listener = await bindTcp('tls', judged, options, (raw, info) => door.take(raw as Socket, info))
    const close = (): Promise<void> => {
      door.close()
      return listener.close()
    }
    return { address: listener.address, close }
  } catch (error) {
    door.close()
    throw error
  }
}

class TlsDoor {
  readonly #options: TlsOptions
  readonly #accept: Accept
  readonly #files: TlsFiles
  readonly #watch: FileWatch
  readonly #report: (message: string) => void
  #context: SecureContext
  /** What was read last, or what was wrong with it: nothing is told twice. */
  #seen: string

  constructor(options: TlsOptions, accept: Accept) {
    this.#options = options
    this.#accept = accept
    this.#files = { cert: options.cert, key: options.key, ca: options.clientCa }
    this.#report = rarely(options.onTrouble ?? (() => {}))
    const paths = Object.values(this.#files).filter((path) => path !== undefined)
    this.#watch = new FileWatch(paths, () => this.#exchange())
    try {
      const material = readTlsMaterial(this.#files)
      this.#context = makeContext(this.#files, material)
      this.#seen = digestOf(material)
    } catch (error) {
      this.#watch.close()
      throw error
    }
  }

  readonly take: Accept = (raw, info) => {
    const { clientCa, isClientCertOptional = false } = this.#options
    const requestCert = clientCa !== undefined
    const socket = new TLSSocket(raw as Socket, {
      isServer: true,
      secureContext: this.#context,
      requestCert,
      rejectUnauthorized: requestCert && !isClientCertOptional,
    })
    const secured = handshake(socket, () => (requestCert ? provedCertificate(socket) : undefined))
    secured.catch((error: Error) => this.#report(`a TLS handshake with ${info.peer} failed: ${error.message}`))
    this.#accept(socket, { ...info, secured })
  }

  close(): void {
    this.#watch.close()
  }

  #exchange(): void {
    const { cert, onTrouble, onExchanged } = this.#options
    try {
      const material = readTlsMaterial(this.#files)
      if (!this.#isNew(digestOf(material))) return
      this.#context = makeContext(this.#files, material)
      onExchanged?.(`new TLS connections get the new certificate of ${cert}`)
    } catch (error) {
      const { message } = error as Error
      if (this.#isNew(message)) onTrouble?.(`the new certificate is not used, the old one stays: ${message}`)
    }
  }

  #isNew(seen: string): boolean {
    if (seen === this.#seen) return false
    this.#seen = seen
    return true
  }
}

function digestOf(material: TlsMaterial): string {
  return createHash('sha256').update(JSON.stringify(material)).digest('hex')
}

function makeContext(files: TlsFiles, material: TlsMaterial): SecureContext {
  try {
    return createSecureContext({ ...material, minVersion: MIN_TLS_VERSION, secureOptions: SECURE_OPTIONS })
  } catch (cause) {
    throw new UnusableFile(files.cert!, `cannot be used for TLS: ${(cause as Error).message}`, { cause })
  }
}

/** What `prove` says at its end. Fails, and destroys the stream, when that does, when it takes too long, when the peer leaves. */
function handshake<Proof>(socket: TLSSocket, prove: () => Proof): Promise<Proof> {
  return new Promise((resolve, reject) => {
    let isDone = false
    const fail = (error: Error): void => {
      isDone = true
      clearTimeout(timer)
      reject(error)
      socket.destroy()
    }
    // What has come is read before anything is judged to be late.
    const late = (): unknown => setImmediate(() => isDone || fail(new Error('it took too long')))
    const timer = setTimeout(late, HANDSHAKE_TIMEOUT_MS)
    socket.once('secure', () => {
      isDone = true
      clearTimeout(timer)
      try {
        resolve(prove())
      } catch (error) {
        fail(error as Error)
      }
    })
    // On this side of a connection the runtime tells every failure here, and those after the handshake only here.
    socket.on('_tlsError', fail)
    socket.once('close', () => fail(new Error('the other side has gone')))
    // Who ends before the handshake does will never finish it.
    socket.once('end', () => isDone || fail(new Error('the other side has gone')))
  })
}

/** What the runtime's types do not tell of its sockets. */
interface Inner {
  readonly _handle: { verifyError(): Error | null | undefined } | null
}

/** The certificate, held against the authority; without one it is up to the door whether the handshake has succeeded. */
function provedCertificate(socket: TLSSocket): PeerCertificate | undefined {
  const certificate = socket.getPeerCertificate()
  if (certificate === null || Object.keys(certificate).length === 0) return undefined
  const { _handle: handle } = socket as unknown as Inner
  if (handle === null) throw new Error('the other side has gone')
  const problem = handle.verifyError()
  if (problem) throw new Error(`its certificate does not hold (${problem.message})`)
  return certificate
}
