/**
 * What `check` says of the certificates of doors with TLS (contract 9.17, 9.27): files that cannot be used, a key that is
 * another's or open to others, an end that has come or is near, a name that is not the one clients ask for.
 *
 * It opens no door. What would keep the bus from starting is an error, what would keep clients from trusting it a warning.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { BusConfig, TlsDoor } from '../config/bus-config.ts'
import type { CheckContext } from '../config/check.ts'
import { doorPath } from '../config/check.ts'
import { byPlace, type Finding, listOf, type Path, type Problem, quote } from '../config/problem.ts'
import { isLoopbackIp } from '../host/address.ts'

const SOON_MS = 14 * 24 * 60 * 60 * 1000
const PEM = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g
const MAX_BYTES = 1024 * 1024

export async function checkCertificates({ config, source }: CheckContext, nowMs = Date.now()): Promise<Problem[]> {
  const findings = config.listen.tls.map((door, index) => {
    return checkDoor(door, { path: doorPath(source, 'tls', index), config, nowMs })
  })
  return (await Promise.all(findings)).flat().map(source.place).sort(byPlace)
}

interface Place {
  readonly path: Path
  readonly config: BusConfig
  readonly nowMs: number
}

async function checkDoor(door: TlsDoor, { path, config, nowMs }: Place): Promise<Finding[]> {
  const [cert, key, authorities] = await Promise.all([
    certificatesIn(door.cert, [...path, 'cert']),
    keyIn(door.key, [...path, 'key']),
    door.clientCa === undefined ? [] : certificatesIn(door.clientCa, [...path, 'client_ca']),
  ])
  const findings = [cert, key, authorities].flatMap((read) => (read instanceof Unusable ? [read.finding] : []))
  const timesOf = (certificates: readonly X509Certificate[], place: Path): Finding[] =>
    certificates.flatMap((certificate) => timeFindings(certificate, place, nowMs))
  if (!(authorities instanceof Unusable)) findings.push(...timesOf(authorities, [...path, 'client_ca']))
  if (cert instanceof Unusable) return findings
  findings.push(...timesOf(cert, [...path, 'cert']))
  const own = cert[0]!
  if (!(key instanceof Unusable) && !own.checkPrivateKey(key)) {
    findings.push({ path: [...path, 'key'], found: 'the key of another certificate', allowed: 'the key of cert' })
  }
  return [...findings, ...hostFindings(own, hostsOf(door, config), [...path, 'cert'])]
}

function timeFindings(certificate: X509Certificate, path: Path, nowMs: number): Finding[] {
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
  const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
  const warning = (found: string): Finding[] => [
    {
      severity: 'warning',
      path,
      found,
      allowed: 'a certificate that is valid for 14 days or more',
      suggestion: 'renew it',
    },
  ]
  if (to <= nowMs) return warning(`a certificate that expired on ${day(to)}`)
  if (from > nowMs) return warning(`a certificate that is not valid before ${day(from)}`)
  return to - nowMs < SOON_MS ? warning(`a certificate that expires on ${day(to)}`) : []
}

/** What clients ask for, as far as the file tells: an address that stands for all of them is no name. */
function hostsOf({ host }: TlsDoor, { access }: BusConfig): string[] {
  const door = ['0.0.0.0', '::'].includes(host) ? [] : [host]
  const url = access?.publicUrl === undefined ? [] : [new URL(access.publicUrl).hostname.replace(/^\[|\]$/g, '')]
  return [...door, ...url]
}

function hostFindings(certificate: X509Certificate, hosts: readonly string[], path: Path): Finding[] {
  if (hosts.length === 0 || hosts.some((host) => isFor(certificate, host))) return []
  return [
    {
      severity: 'warning',
      path,
      found: `a certificate for ${quote(certificate.subjectAltName ?? certificate.subject)}`,
      allowed: `one for ${listOf(hosts.map(quote))}, which clients ask for`,
    },
  ]
}

/** Whoever asks for an address of this machine may as well have asked for its name. */
function isFor(certificate: X509Certificate, host: string): boolean {
  if (isIP(host) === 0) return certificate.checkHost(host) !== undefined
  return certificate.checkIP(host) !== undefined || (isLoopbackIp(host) && isFor(certificate, 'localhost'))
}

async function certificatesIn(file: string, path: Path): Promise<X509Certificate[] | Unusable> {
  const text = await textOf(file, path)
  if (text instanceof Unusable) return text
  try {
    const found = (text.match(PEM) ?? []).map((pem) => new X509Certificate(pem))
    if (found.length > 0) return found
  } catch {
    // What is between the lines of PEM is no certificate: the same as none.
  }
  return new Unusable(path, `${quote(file)}, which holds no certificate`, 'certificates in PEM')
}

async function keyIn(file: string, path: Path): Promise<KeyObject | Unusable> {
  const text = await textOf(file, path)
  if (text instanceof Unusable) return text
  const { mode } = await stat(file)
  if (process.platform !== 'win32' && (mode & 0o077) !== 0) {
    return new Unusable(path, 'a key that others may read', 'a key only its owner may read', `run chmod 600 ${file}`)
  }
  try {
    return createPrivateKey(text)
  } catch {
    return new Unusable(path, `${quote(file)}, which holds no private key without a passphrase`, 'a private key in PEM')
  }
}

async function textOf(file: string, path: Path): Promise<string | Unusable> {
  try {
    const facts = await stat(file)
    if (!facts.isFile() || facts.size > MAX_BYTES)
      return new Unusable(path, `${quote(file)}, which is no file in PEM`, 'a file in PEM')
    return await readFile(file, 'utf8')
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    const found = code === 'ENOENT' ? 'which does not exist' : `which cannot be read (${code})`
    return new Unusable(path, `${quote(file)}, ${found}`, 'a file in PEM that this user may read')
  }
}

/** In place of what a file should have held: why it does not. */
class Unusable {
  readonly finding: Finding

  constructor(path: Path, found: string, allowed: string, suggestion?: string) {
    this.finding = { path, found, allowed, ...(suggestion === undefined ? {} : { suggestion }) }
  }
}
