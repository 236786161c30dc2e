import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import type { Problem } from '../config/problem.ts'
import { parseConfig } from '../config/read.ts'
import { checkCertificates } from './certificate-check.ts'

/** For bus.example.com, localhost and 192.0.2.7, from 2026-11-18 to 2126-10-25. */
const FIXTURES = fileURLToPath(new URL('../../test/fixtures/access/', import.meta.url))
const VALID_AT = Date.UTC(2030, 0, 1)
const ENDS_AT = Date.UTC(2126, 9, 25, 3, 43, 24)
const DAY_MS = 86_400_000

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'certificates-'))
  for (const name of ['bus.crt', 'bus.key', 'other.key']) copyFileSync(join(FIXTURES, name), join(folder, name))
  for (const name of ['bus.key', 'other.key']) chmodSync(join(folder, name), 0o600)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

interface Door {
  readonly address?: string
  readonly cert?: string
  readonly key?: string
  readonly client_ca?: string
}

async function said(door: Door, { nowMs = VALID_AT, ...top }: { nowMs?: number; [key: string]: unknown } = {}) {
  const tls = { address: '0.0.0.0:0', cert: 'bus.crt', key: 'bus.key', ...door }
  const text = JSON.stringify({ pools: [{ id: 'a', command: 'cat' }], listen: { tls: [tls] }, ...top })
  const reading = parseConfig(join(folder, 'bus.json'), text, { environment: {}, cwd: folder })
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems))
  const problems = checkCertificates({ ...reading, environment: {} }, nowMs)
  return problems.map(({ severity, path, found, allowed }: Problem) => `${severity} ${path} ${found}; ${allowed}`)
}

it('9.27 nothing is said against a certificate that is right', async () => {
  for (const address of ['0.0.0.0:0', '[::]:0', 'bus.example.com:0', '127.0.0.1:0', 'localhost:0', '192.0.2.7:0']) {
    expect(await said({ address, client_ca: 'bus.crt' })).toEqual([])
  }
})

it.each([
  [ENDS_AT + DAY_MS, /^warning listen\.tls\[0\]\.cert a certificate that expired on 2126-10-25/],
  [ENDS_AT - 14 * DAY_MS + 1, /^warning listen\.tls\[0\]\.cert a certificate that expires on 2126-10-25/],
  [Date.UTC(2020, 0, 1), /^warning listen\.tls\[0\]\.cert a certificate that is not valid before 2026-11-18/],
])('9.27 a certificate is told that is out of time at %i', async (nowMs, words) => {
  verifies('9.27-certificates')
  expect(await said({}, { nowMs })).toEqual([expect.stringMatching(words)])
  expect(await said({}, { nowMs: ENDS_AT - 14 * DAY_MS })).toEqual([])
  const authority = words.source.replace('cert a', 'client_ca a')
  expect(await said({ client_ca: 'bus.crt' }, { nowMs })).toContainEqual(expect.stringMatching(authority))
})

it('9.27 a certificate for another host is told', async () => {
  verifies('9.27-certificates')
  const other =
    /^warning listen\.tls\[0\]\.cert a certificate for "DNS:bus\.example\.com.*; one for "other\.example\.com"/
  expect(await said({ address: 'other.example.com:0' })).toEqual([expect.stringMatching(other)])
  expect(await said({ address: '192.0.2.8:0' })).toEqual([expect.stringMatching(/one for "192\.0\.2\.8"/)])
  const oauth = { issuer: 'https://id.example.com', map: [{ claim: 'a', equals: 'b', as: 'c' }] }
  const access = { file: 'f', oauth }
  expect(await said({}, { access, public_url: 'https://other.example.com' })).toEqual([expect.stringMatching(other)])
  expect(await said({}, { access, public_url: 'https://bus.example.com' })).toEqual([])
  const twice = await said({ address: 'other.example.com:0' }, { access, public_url: 'https://other.example.com' })
  expect(twice).toEqual([expect.stringMatching(/one for "other\.example\.com", which/)])
})

it.each<[string, Door, RegExp]>([
  ['a certificate that is not there', { cert: 'gone.crt' }, /^error listen\.tls\[0\]\.cert .*does not exist/],
  ['a key that is not there', { key: 'gone.key' }, /^error listen\.tls\[0\]\.key .*does not exist/],
  ['the key of another', { key: 'other.key' }, /^error listen\.tls\[0\]\.key .*is not the key of/],
  ['a key as certificate', { cert: 'bus.key' }, /^error listen\.tls\[0\]\.cert .*no certificate/],
  ['a certificate as key', { key: 'private.crt' }, /^error listen\.tls\[0\]\.key .*no private key/],
  ['nonsense between the lines of PEM', { cert: 'broken.crt' }, /^error listen\.tls\[0\]\.cert .*cannot be read/],
  ['a folder', { cert: 'folder' }, /^error listen\.tls\[0\]\.cert .*is a folder/],
  ['authorities that are none', { client_ca: 'other.key' }, /^error listen\.tls\[0\]\.client_ca .*no certificate/],
  ['a key open to others', { key: 'open.key' }, /^error listen\.tls\[0\]\.key .*open to other users/],
])('9.17 %s is an error', async (_title, door, words) => {
  verifies('9.27-certificates')
  copyFileSync(join(folder, 'bus.crt'), join(folder, 'private.crt'))
  chmodSync(join(folder, 'private.crt'), 0o600)
  writeFileSync(join(folder, 'broken.crt'), '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')
  mkdirSync(join(folder, 'folder'))
  copyFileSync(join(folder, 'bus.key'), join(folder, 'open.key'))
  chmodSync(join(folder, 'open.key'), 0o640)
  expect(await said(door)).toEqual([expect.stringMatching(words)])
})
