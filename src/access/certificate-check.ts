/**
 * What `check` says of the certificates of doors with TLS (contract 9.17, 9.27): files that cannot be used, a key that is
 * another's or open to others, an end that has come or is near, a name that is not the one clients ask for.
 *
 * It opens no door. What would keep the bus from starting is an error, what would keep clients from trusting it a warning.
 */
import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { BusConfig, HttpDoor, TlsDoor } from '../config/bus-config.ts'
import type { CheckContext } from '../config/check.ts'
import { doorPath } from '../config/check.ts'
import { byPlace, type Finding, listOf, type Path, type Problem, quote } from '../config/problem.ts'
import { isLoopbackIp } from '../host/address.ts'
import { UnusableFile } from '../host/given-file.ts'
import { readTlsMaterial, type TlsFiles, type TlsMaterial } from '../host/tls-files.ts'

const SOON_MS = 14 * 24 * 60 * 60 * 1000
const PEM = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

export function checkCertificates({ config, source }: CheckContext, nowMs = Date.now()): Problem[] {
  const findings = (['tls', 'http'] as const).flatMap((kind) =>
    config.listen[kind].flatMap((door, index) =>
      hasFiles(door) ? checkDoor(door, { path: doorPath(source, kind, index), config, nowMs }) : [],
    ),
  )
  return findings.map(source.place).sort(byPlace)
}

/** A web door may do without. */
function hasFiles(door: TlsDoor | HttpDoor): door is TlsDoor {
  return door.cert !== undefined && door.key !== undefined
}

interface Place {
  readonly path: Path
  readonly config: BusConfig
  readonly nowMs: number
}

function checkDoor(door: TlsDoor, { path, config, nowMs }: Place): Finding[] {
  const own = read({ cert: door.cert, key: door.key }, (file) => [...path, file === door.cert ? 'cert' : 'key'])
  const authorities = read({ ca: door.clientCa }, () => [...path, 'client_ca'])
  const findings = [own, authorities].flatMap((material) => ('finding' in material ? [material.finding] : []))
  if ('ca' in authorities) findings.push(...timesOf(authorities.ca ?? [], [...path, 'client_ca'], nowMs))
  const chain = ('cert' in own && own.cert?.match(PEM)) || []
  findings.push(...timesOf(chain, [...path, 'cert'], nowMs))
  const [first] = chain
  if (first === undefined) return findings
  return [...findings, ...hostFindings(new X509Certificate(first), hostsOf(door, config), [...path, 'cert'])]
}

/** As a door takes them, so that what is said here is what a start would say. */
function read(files: TlsFiles, placeOf: (file: string) => Path): TlsMaterial | { readonly finding: Finding } {
  try {
    return readTlsMaterial(files)
  } catch (error) {
    if (!(error instanceof UnusableFile)) throw error
    const { file, why } = error
    const suggestion = why.split(': ')[1]
    const found = `${quote(file)}, which ${why.split(': ')[0]}`
    const allowed = 'a certificate and its key in PEM, the key for nobody else to read'
    return { finding: { path: placeOf(file), found, allowed, ...(suggestion === undefined ? {} : { suggestion }) } }
  }
}

function timesOf(certificates: readonly string[], path: Path, nowMs: number): Finding[] {
  return certificates.flatMap((pem) => timeFindings(new X509Certificate(pem), path, nowMs))
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
function hostsOf({ host, publicUrl: own }: TlsDoor & Pick<HttpDoor, 'publicUrl'>, config: BusConfig): string[] {
  const door = ['0.0.0.0', '::'].includes(host) ? [] : [host]
  const publicUrl = own ?? config.publicUrl
  const url = publicUrl === undefined ? [] : [new URL(publicUrl).hostname.replace(/^\[|\]$/g, '')]
  return [...new Set([...door, ...url])]
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
