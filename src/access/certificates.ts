/**
 * Who a client certificate is (contract 9.16): the first rule whose pattern fits its name, or one of its alternative names.
 *
 * The certificate was verified by the handshake; here it is only read. A pattern is `CN=`, `DNS:`, `URI:` or `email:` with
 * a text in which `*` is any run of characters. A certificate that has several common names has none: which of them
 * would count is a matter of taste, and somebody would be mistaken for another.
 */
import { X509Certificate } from 'node:crypto'
import type { PeerCertificate } from 'node:tls'
import { matches } from '../kernel/rights.ts'
import { shortDigest } from './token.ts'

export interface CertificateRule {
  readonly subject: string
  /** A principal of the access file. */
  readonly as: string
}

export interface CertificateProof {
  readonly rule: CertificateRule
  readonly credential: string
  readonly expiresAtMs: number
}

const KIND = /^(CN=|DNS:|URI:|email:)/

/** What a certificate proves; nothing without one, or if no pattern fits. */
export function proofOfCertificate(
  rules: readonly CertificateRule[],
  certificate: PeerCertificate | X509Certificate,
): CertificateProof | undefined {
  const read = certificate instanceof X509Certificate ? certificate.toLegacyObject() : certificate
  if (read.fingerprint256 === undefined) return undefined
  const names = namesOf(read)
  const rule = rules.find(({ subject }) => KIND.test(subject) && names.some((name) => fits(subject, name)))
  if (rule === undefined) return undefined
  const digest = read.fingerprint256.replaceAll(':', '').toLowerCase()
  return { rule, credential: shortDigest(digest), expiresAtMs: Date.parse(read.valid_to) }
}

/** As patterns write them. A kind of name that no pattern can name is left out. */
function namesOf({ subject, subjectaltname }: PeerCertificate): string[] {
  const commonName: unknown = subject?.CN
  const alternative = alternativeNames(subjectaltname ?? '').filter((name) => KIND.test(name))
  return typeof commonName === 'string' ? [`CN=${commonName}`, ...alternative] : alternative
}

/** One name up to its comma, or, if anything in it could be mistaken, in quotes as JSON writes them. */
const NAME = /([^:,"]+):(?:("(?:[^"\\\p{Cc}]|\\["\\/]|\\u[0-9a-f]{4})*")|([^,"]*))(?:, |$)/uy

/** Nothing at all if the text is not what Node writes: half a list could leave out what was meant to be seen. */
function alternativeNames(text: string): string[] {
  const names: string[] = []
  NAME.lastIndex = 0
  while (NAME.lastIndex < text.length) {
    const [, kind, quoted, plain] = NAME.exec(text) ?? []
    if (kind === undefined) return []
    names.push(`${kind}:${quoted === undefined ? plain : JSON.parse(quoted)}`)
  }
  return names
}

/** In addresses `?` is itself; no name has half a character. */
function fits(pattern: string, name: string): boolean {
  return matches(pattern.replaceAll('?', '\ud800'), name.replaceAll('?', '\ud800'))
}
