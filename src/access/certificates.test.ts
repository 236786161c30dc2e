/** Certificates that OpenSSL has made, also such that try to be taken for another. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { PeerCertificate } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { proofOfCertificate } from './certificates.ts'

function certificate(name: string): X509Certificate {
  return new X509Certificate(readFileSync(new URL(`../../test/fixtures/access/${name}.pem`, import.meta.url)))
}

function fits(subject: string, name: string): boolean {
  return proofOfCertificate([{ subject, as: 'agent' }], certificate(name)) !== undefined
}

/** As `getPeerCertificate` would give it, with another text of alternative names. */
function withNames(subjectaltname: string): PeerCertificate {
  return { ...certificate('agent').toLegacyObject(), subjectaltname }
}

describe('a pattern', () => {
  test.each([
    'CN=agent-7',
    'CN=agent-*',
    'CN=*',
    'DNS:agents.corp',
    'DNS:*.corp',
    'URI:spiffe://corp/agents/*',
    'email:*@corp',
  ])('%s fits', (subject) => {
    verifies('9.16-subject')
    expect(fits(subject, 'agent')).toBe(true)
  })

  test.each([
    ...[
      'CN=agent',
      'CN=Agent-7',
      'CN=agent-?',
      'cn=agent-7',
      'CN:agent-7',
      'DNS:agent-7',
      'DNS=agent-7.corp',
      'dns:*',
      'O=Corp',
    ],
    ...[
      'URI:spiffe://corp/agent/*',
      'URI:spiffe://corp/agents/seven??',
      'email:seven',
      '*',
      '',
      'agent-7',
      '*agent-7',
      'IP:*',
    ],
  ])('%s does not', (subject) => {
    verifies('9.16-subject')
    expect(fits(subject, 'agent')).toBe(false)
  })

  test('in an address ? is itself', () => {
    expect(fits('URI:spiffe://corp/agents/seven?x', 'agent')).toBe(true)
    expect(fits('URI:spiffe://corp/agents/seve??x', 'agent')).toBe(false)
  })

  test('the first that fits counts', () => {
    const rules = [
      { subject: 'CN=other', as: 'other' },
      { subject: 'DNS:*.corp', as: 'first' },
      { subject: 'CN=agent-7', as: 'second' },
    ]
    expect(proofOfCertificate(rules, certificate('agent'))?.rule).toBe(rules[1])
  })
})

test('of several common names none counts, and other names do', () => {
  verifies('9.16-several-names')
  for (const subject of ['CN=agent-7', 'CN=admin', 'CN=*', 'CN=agent-7,admin'])
    expect(fits(subject, 'two-names')).toBe(false)
  expect(fits('DNS:two.corp', 'two-names')).toBe(true)
})

describe('a name that looks like several', () => {
  test.each(['DNS:admin.corp', 'DNS:*', 'URI:spiffe://corp/agents/*', 'URI:spiffe://corp/x'])(
    'is not %s',
    (subject) => {
      verifies('9.16-subject')
      expect(fits(subject, 'sly')).toBe(false)
    },
  )

  test('is itself', () => {
    expect(fits('URI:spiffe://corp/x, DNS:admin.corp, URI:spiffe://corp/agents/y', 'sly')).toBe(true)
    expect(fits('CN=sly, DNS:admin.corp', 'sly')).toBe(true)
    expect(fits('email:sly@corp', 'sly')).toBe(true)
  })

  test.each([
    'DNS:"x',
    'DNS:a"b", DNS:admin.corp',
    'DNS:a,DNS:admin.corp',
    'x',
    ':',
    'URI:"\\q"',
    'URI:"a\nb"',
    'DNS:a, , DNS:admin.corp',
  ])('a list that is none of Node has no names at all: %j', (text) => {
    const rules = [
      { subject: 'DNS:*', as: 'x' },
      { subject: 'URI:*', as: 'x' },
      { subject: 'email:*', as: 'x' },
    ]
    expect(proofOfCertificate(rules, withNames(text))).toBeUndefined()
  })
})

test('what it proves: 8 digits of its fingerprint, until it ends', () => {
  const read = certificate('agent')
  for (const given of [read, read.toLegacyObject()]) {
    expect(proofOfCertificate([{ subject: 'CN=agent-7', as: 'agent' }], given)).toEqual({
      rule: { subject: 'CN=agent-7', as: 'agent' },
      credential: read.fingerprint256.replaceAll(':', '').slice(0, 8).toLowerCase(),
      expiresAtMs: Date.parse(read.validTo),
    })
  }
})

test('no certificate, or one without a name, proves nothing', () => {
  verifies('9.16-subject')
  expect(proofOfCertificate([{ subject: 'CN=*', as: 'x' }], {} as PeerCertificate)).toBeUndefined()
  for (const subject of ['CN=*', 'DNS:*', 'URI:*', 'email:*', 'CN=', '*']) expect(fits(subject, 'nameless')).toBe(false)
})
