/**
 * Why a connection did not come about, in words: nobody is there, we do not trust whoever is, or it does not want us.
 *
 * Judged by the codes of the system and of TLS alone; what a cause says in its own words is not shown.
 */
export type ConnectionTrouble = 'unreachable' | 'untrusted' | 'refused'

export interface ConnectionFailure {
  readonly trouble: ConnectionTrouble
  /** A clause for people, as in `there is no such socket`. */
  readonly why: string
}

const NO_TLS = 'it does not speak TLS'
const SILENT = 'it does not answer'
const UNREACHABLE: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such socket',
  ECONNREFUSED: 'nobody listens there',
  ECONNRESET: 'it broke the connection off',
  EPIPE: 'it broke the connection off',
  EACCES: 'this user may not use it',
  ENOTSOCK: 'it is not a socket',
  ETIMEDOUT: SILENT,
  UND_ERR_CONNECT_TIMEOUT: SILENT,
  UND_ERR_SOCKET: 'it broke the connection off',
  EHOSTUNREACH: 'there is no way to the host',
  ENETUNREACH: 'there is no way to the network',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be looked up now',
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
}

const UNSIGNED = 'its certificate is not signed by an authority that is trusted here: name that authority (ca)'
/** What is wrong with the certificate of the other side. */
const UNTRUSTED: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  CERT_REVOKED: 'its certificate was revoked',
  INVALID_PURPOSE: 'its certificate is not one of a server',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is of another host',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNSIGNED,
  SELF_SIGNED_CERT_IN_CHAIN: UNSIGNED,
  UNABLE_TO_GET_ISSUER_CERT: UNSIGNED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNSIGNED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNSIGNED,
  CERT_SIGNATURE_FAILURE: UNSIGNED,
}
/** So the other side says within the handshake, or after it, that it does not want it. */
const ALERT = /^ERR_SSL_.*ALERT/
const WANTS_CERTIFICATE = /CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE/

export function explainConnection(cause: unknown): ConnectionFailure {
  const code = (cause as NodeJS.ErrnoException | null)?.code ?? 'no code'
  const untrusted = UNTRUSTED[code]
  if (untrusted !== undefined) return { trouble: 'untrusted', why: untrusted }
  if (!ALERT.test(code)) return { trouble: 'unreachable', why: UNREACHABLE[code] ?? `it cannot be reached (${code})` }
  const why = WANTS_CERTIFICATE.test(code)
    ? 'it wants a certificate that it knows (cert, key)'
    : `it does not accept the TLS handshake (${code})`
  return { trouble: 'refused', why }
}
