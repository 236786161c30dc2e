/**
 * Looks at the access file twice a second and tells what has become of it (contract 9.10): the principals of a file that
 * is right, or what is wrong with one that is not. It keeps nothing of either and decides nothing: where there are
 * problems, whoever listens goes on with what it has.
 *
 * Each content is told once. A file is read again as long as it is so young that a second change could have left its time
 * and size as they were.
 */
import { lstatSync } from 'node:fs'
import type { Environment } from '../config/environment.ts'
import type { Problem } from '../config/problem.ts'
import { type AccessBytes, fingerprint, parseAccessFile, readAccessBytes } from './access-file.ts'
import type { Principals } from './principals.ts'

const LOOK_EVERY_MS = 500
/** Clocks of file systems tick as coarsely as this. */
const YOUNG_MS = 2_000

export interface AccessWatchOptions {
  /** Absolute. */
  readonly file: string
  /** What `${NAME}` in `env` refers to. */
  readonly environment: Environment
  readonly onChange: (principals: Principals) => void
  readonly onTrouble: (problems: readonly Problem[]) => void
  readonly lookEveryMs?: number
}

export type AccessStart =
  | { readonly ok: true; readonly principals: Principals; readonly watch: AccessWatch }
  | { readonly ok: false; readonly problems: readonly Problem[] }

export class AccessWatch {
  readonly #options: AccessWatchOptions
  readonly #timer: NodeJS.Timeout
  /** What the system said of the file that was read last; empty: it is to be read. */
  #seen = ''
  /** What was told last. */
  #told: string

  /** Reads the file now; where it has problems nothing is watched. */
  static start(options: AccessWatchOptions): AccessStart {
    const { file, environment } = options
    const read = readAccessBytes(file)
    const reading = read.ok ? parseAccessFile(file, read.bytes, environment) : read
    if (!reading.ok) return reading
    return { ok: true, principals: reading.principals, watch: new AccessWatch(options, sayingOf(read)) }
  }

  private constructor(options: AccessWatchOptions, told: string) {
    this.#options = options
    this.#told = told
    this.#timer = setInterval(() => this.look(), options.lookEveryMs ?? LOOK_EVERY_MS)
    // It alone keeps no bus running.
    this.#timer.unref()
  }

  /** Looks now; what it finds is told before it returns. */
  look(): void {
    const { file, environment, onChange, onTrouble } = this.#options
    const seen = facts(file)
    if (seen !== '' && seen === this.#seen) return
    this.#seen = seen
    const read = readAccessBytes(file)
    const saying = sayingOf(read)
    if (saying === this.#told) return
    this.#told = saying
    const reading = read.ok ? parseAccessFile(file, read.bytes, environment) : read
    if (reading.ok) onChange(reading.principals)
    else onTrouble(reading.problems)
  }

  close(): void {
    clearInterval(this.#timer)
  }
}

/** Equal as long as the file is the same and unchanged; empty when that cannot be told. */
function facts(file: string): string {
  const stats = lstatSync(file, { bigint: true, throwIfNoEntry: false })
  if (stats === undefined) return 'missing'
  const isYoung = Math.abs(Date.now() - Number(stats.ctimeMs)) < YOUNG_MS
  return isYoung ? '' : [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(' ')
}

function sayingOf(read: AccessBytes): string {
  return read.ok ? fingerprint(read.bytes) : JSON.stringify(read.problems)
}
