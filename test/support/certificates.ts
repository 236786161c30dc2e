/**
 * Certificates for tests, made when they are asked for: an authority, and whatever it signs. Keys are of an elliptic curve,
 * because they are made in no time.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Pair {
  readonly cert: string
  readonly key: string
}

export interface Wanted {
  /** The common name. */
  readonly name?: string
  /** As OpenSSL writes them: `IP:127.0.0.1,DNS:localhost`. */
  readonly altNames?: string
  readonly use?: 'serverAuth' | 'clientAuth'
  /** From when to when, in days from now. */
  readonly days?: readonly [from: number, to: number]
}

const DAY_MS = 86_400_000

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: 'pipe' })
}

/** `YYYYMMDDHHMMSSZ` */
function timeIn(days: number): string {
  return `${new Date(Date.now() + days * DAY_MS).toISOString().replace(/[-:T]|\.\d+Z/g, '')}Z`
}

export class Authority {
  readonly folder = mkdtempSync(join(tmpdir(), 'sb-ca-'))
  /** The path of its own certificate. */
  readonly ca: string
  readonly #key: string
  #made = 0

  constructor(name = 'an authority') {
    const { cert, key } = this.#request(name)
    this.ca = cert
    this.#key = key
    const subject = ['-subj', `/CN=${name}`]
    openssl('req', '-x509', '-new', '-key', key, '-out', cert, '-days', '2', ...subject, ...this.#constraints())
  }

  /** A certificate for 127.0.0.1 and localhost that servers may show. */
  server(wanted: Wanted = {}): Pair {
    return this.sign({ name: 'localhost', altNames: 'IP:127.0.0.1,DNS:localhost', use: 'serverAuth', ...wanted })
  }

  client(wanted: Wanted = {}): Pair {
    return this.sign({ name: 'a client', use: 'clientAuth', ...wanted })
  }

  sign({ name = 'somebody', altNames, use, days: [from, to] = [-1, 2] }: Wanted): Pair {
    const { cert, key } = this.#request(name)
    const request = `${key}.csr`
    openssl('req', '-new', '-key', key, '-out', request, '-subj', `/CN=${name}`)
    const extensions = [
      ...(altNames === undefined ? [] : [`subjectAltName=${altNames}`]),
      ...(use === undefined ? [] : [`extendedKeyUsage=${use}`]),
    ]
    const settings = `${key}.cnf`
    writeFileSync(settings, this.#settings(extensions))
    const files = ['-in', request, '-out', cert, '-cert', this.ca, '-keyfile', this.#key]
    const times = ['-startdate', timeIn(from), '-enddate', timeIn(to)]
    openssl('ca', '-batch', '-notext', '-config', settings, ...files, ...times)
    return { cert, key }
  }

  /** A path in the folder that goes with this authority. */
  path(name: string): string {
    return join(this.folder, name)
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }

  #request(name: string): Pair {
    const stem = this.path(`${++this.#made}-${name.replace(/\W/g, '-')}`)
    const key = `${stem}.key`
    openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', key)
    chmodSync(key, 0o600)
    return { cert: `${stem}.pem`, key }
  }

  #constraints(): string[] {
    return ['-addext', 'keyUsage=critical,keyCertSign']
  }

  #settings(extensions: readonly string[]): string {
    writeFileSync(this.path('index.txt'), '')
    writeFileSync(this.path('index.txt.attr'), 'unique_subject = no\n')
    return `[ca]
default_ca = it
[it]
database = ${this.path('index.txt')}
new_certs_dir = ${this.folder}
default_md = sha256
rand_serial = yes
policy = anything
x509_extensions = wanted
[anything]
commonName = supplied
[wanted]
basicConstraints = CA:FALSE
${extensions.join('\n')}
`
  }
}
