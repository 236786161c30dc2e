/**
 * What the console knows of files: how the configuration on disk differs from the one that runs, and what ends soon (contract 15.7).
 *
 * Whoever looks gets what was so a moment ago; files are read behind it, and only while somebody looks. A file that cannot be read
 * ends nothing: who needs it says so elsewhere.
 */
import { X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import type { BusConfig } from '../../config/bus-config.ts'
import type { Expiry, FileChange, PrincipalView } from '../../console/api/port.ts'
import { viewConfiguration } from './console-settings.ts'

export interface FileLooksOptions {
  readonly config: () => BusConfig
  /** The files of the certificates that the doors show. */
  readonly certificates: () => readonly string[]
  readonly principals: () => readonly PrincipalView[] | undefined
}

const FILE_MS = 500
const EXPIRY_MS = 10_000
const SAME: FileChange = { changed: [], mistake: null }

/** A value that is read again when somebody asks for it and it is old. */
class Remembered<Value> {
  readonly #read: () => Promise<Value>
  readonly #maxAgeMs: number
  #value: Value
  #atMs = Number.NEGATIVE_INFINITY

  constructor(first: Value, maxAgeMs: number, read: () => Promise<Value>) {
    this.#value = first
    this.#maxAgeMs = maxAgeMs
    this.#read = read
  }

  get(): Value {
    if (performance.now() - this.#atMs < this.#maxAgeMs) return this.#value
    this.#atMs = Number.POSITIVE_INFINITY
    this.#read()
      .then(
        (value) => {
          this.#value = value
        },
        () => {},
      )
      .finally(() => {
        this.#atMs = performance.now()
      })
    return this.#value
  }
}

export class FileLooks {
  readonly #options: FileLooksOptions
  readonly #change = new Remembered<FileChange>(SAME, FILE_MS, () => this.#lookAtFile())
  readonly #expiries = new Remembered<readonly Expiry[]>([], EXPIRY_MS, () => this.#lookAtExpiries())
  /** What the last look at the configuration was of, and what it found. */
  #seen: { readonly running: BusConfig; readonly stamp: string; readonly change: FileChange } | undefined

  constructor(options: FileLooksOptions) {
    this.#options = options
  }

  change(): FileChange {
    return this.#change.get()
  }

  expiries(): readonly Expiry[] {
    return this.#expiries.get()
  }

  /** Read only if something about it is other than at the last look. */
  async #lookAtFile(): Promise<FileChange> {
    const running = this.#options.config()
    const stamp = await stampOf(running.file)
    if (this.#seen?.running === running && this.#seen.stamp === stamp) return this.#seen.change
    const { pending, findings } = await viewConfiguration(running)
    const mistake = findings.find(({ severity }) => severity === 'error')
    const isBad = pending.problem !== null && mistake !== undefined
    const change = { changed: pending.changed, mistake: isBad ? `${mistake.place}: ${mistake.text}` : null }
    this.#seen = { running, stamp, change }
    return change
  }

  async #lookAtExpiries(): Promise<readonly Expiry[]> {
    const certificates = await Promise.all(this.#options.certificates().map(expiryOf))
    const tokens = (this.#options.principals() ?? []).flatMap(({ name, tokens: known }) => {
      const ends = known.flatMap(({ expires }) => (expires === null ? [] : [Date.parse(expires)]))
      // One that has another which holds longer is not locked out.
      return ends.length < known.length || ends.length === 0 ? [] : [tokenOf(name, Math.max(...ends))]
    })
    return [...certificates.flat(), ...tokens]
  }
}

async function stampOf(file: string): Promise<string> {
  const { mtimeMs, size, ino } = await stat(file)
  return [mtimeMs, size, ino].join(' ')
}

async function expiryOf(file: string): Promise<Expiry[]> {
  try {
    const { validTo } = new X509Certificate(await readFile(file))
    const todo = 'Renew it: the door takes the new files by itself.'
    return [{ what: `the certificate ${file}`, endsAtMs: Date.parse(validTo), todo, link: 'config' }]
  } catch {
    return []
  }
}

function tokenOf(name: string, endsAtMs: number): Expiry {
  const todo = `Give ${name} another: stdio-bus token add ${name}.`
  return { what: `the token of ${name}`, endsAtMs, todo, link: 'access' }
}
