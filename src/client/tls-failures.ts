/** Why a TLS connection did not come about, in words: what we think of the other side, and what it thinks of us. */
import { BusRefused } from './errors.ts'

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

export function whyUntrusted(cause: NodeJS.ErrnoException): string | undefined {
  return UNTRUSTED[cause.code ?? '']
}

/** What the other side said of our part of the handshake; undefined where the failure is another. */
export function refusedHandshake(cause: Error): BusRefused | undefined {
  const code = (cause as NodeJS.ErrnoException).code ?? ''
  if (!ALERT.test(code)) return undefined
  const why = WANTS_CERTIFICATE.test(code)
    ? 'it wants a certificate that it knows (cert, key)'
    : `it does not accept the TLS handshake (${code})`
  return new BusRefused('unauthenticated', `the bus refuses this connection: ${why}`)
}
