/**
 * Certificates and keys as both ends of a TLS connection take them: PEM files, read and checked as a whole.
 *
 * Nothing is connected here. What is returned can be used: every certificate can be read, and a key belongs to its
 * certificate. What cannot is refused with the name of its file, never with anything of its content.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readGivenFile, readSecretFile, UnusableFile } from './given-file.ts'

/** Paths. A certificate goes with its key. */
export interface TlsFiles {
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** Whose signature the other side's certificate must have. */
  readonly ca?: string | undefined
}

/** What `tls.createSecureContext` takes. */
export interface TlsMaterial {
  readonly cert?: string
  readonly key?: string
  readonly ca?: string[]
}

/** Older versions are broken. */
export const MIN_TLS_VERSION = 'TLSv1.2' as const

const CERTIFICATES = /-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----[^-]+-----END \1-----/g
const LOCKED_KEY = /^-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m

/** Fails with UnusableFile. */
export function readTlsMaterial({ cert, key, ca }: TlsFiles): TlsMaterial {
  const authority = ca === undefined ? {} : { ca: certificatesIn(ca, readGivenFile(ca)).map(String) }
  if (cert === undefined && key === undefined) return authority
  if (cert === undefined) throw new UnusableFile(key!, 'is the key of no certificate: name its certificate too')
  if (key === undefined) throw new UnusableFile(cert, 'is a certificate without a key: name its key too')
  const chain = readGivenFile(cert)
  const secret = readSecretFile(key)
  const [own] = certificatesIn(cert, chain)
  if (!own!.checkPrivateKey(keyIn(key, secret))) {
    throw new UnusableFile(key, `is not the key of ${cert}: name the two that belong together`)
  }
  return { ...authority, cert: chain, key: secret }
}

/** At least one. */
function certificatesIn(path: string, text: string): X509Certificate[] {
  const found = text.match(CERTIFICATES) ?? []
  if (found.length === 0) throw new UnusableFile(path, 'holds no certificate in PEM form')
  try {
    return found.map((each) => new X509Certificate(each))
  } catch (cause) {
    throw new UnusableFile(path, 'holds a certificate that cannot be read', { cause })
  }
}

function keyIn(path: string, text: string): KeyObject {
  if (LOCKED_KEY.test(text)) throw new UnusableFile(path, 'is locked by a passphrase: give one that is not')
  try {
    return createPrivateKey(text)
  } catch (cause) {
    throw new UnusableFile(path, 'holds no private key in PEM form', { cause })
  }
}
