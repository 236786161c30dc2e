/**
 * Tells what has become of the access file whenever it has changed (contract 9.10): the principals of a file that is
 * right, or what is wrong with one that is not. It keeps nothing of either and decides nothing: where there are problems,
 * whoever listens goes on with what it has. Each content is told once.
 */
import type { Environment } from '../config/environment.ts'
import type { Problem } from '../config/problem.ts'
import { FileWatch } from '../host/file-watch.ts'
import { type AccessBytes, fingerprint, parseAccessFile, readAccessBytes } from './access-file.ts'
import type { Principals } from './principals.ts'

export interface AccessWatchOptions {
  /** Absolute. */
  readonly file: string
  /** What `${NAME}` in `env` refers to. */
  readonly environment: Environment
  readonly onChange: (principals: Principals) => void
  readonly onTrouble: (problems: readonly Problem[]) => void
}

export type AccessStart =
  | { readonly ok: true; readonly principals: Principals; readonly watch: AccessWatch }
  | { readonly ok: false; readonly problems: readonly Problem[] }

export class AccessWatch {
  readonly #options: AccessWatchOptions
  readonly #watch: FileWatch
  /** What was told last. */
  #told = ''

  /** Reads the file now; where it has problems nothing is watched. */
  static start(options: AccessWatchOptions): AccessStart {
    // First the watch, then the look: what changes in between is told.
    const watch = new AccessWatch(options)
    const { file, environment } = options
    const read = readAccessBytes(file)
    const reading = read.ok ? parseAccessFile(file, read.bytes, environment) : read
    if (!reading.ok) {
      watch.close()
      return reading
    }
    watch.#told = sayingOf(read)
    return { ok: true, principals: reading.principals, watch }
  }

  private constructor(options: AccessWatchOptions) {
    this.#options = options
    this.#watch = new FileWatch([options.file], () => this.look())
  }

  /** Looks now; what it finds is told before it returns. */
  look(): void {
    const { file, environment, onChange, onTrouble } = this.#options
    const read = readAccessBytes(file)
    const saying = sayingOf(read)
    if (saying === this.#told) return
    this.#told = saying
    const reading = read.ok ? parseAccessFile(file, read.bytes, environment) : read
    if (reading.ok) onChange(reading.principals)
    else onTrouble(reading.problems)
  }

  close(): void {
    this.#watch.close()
  }
}

function sayingOf(read: AccessBytes): string {
  return read.ok ? fingerprint(read.bytes) : JSON.stringify(read.problems)
}
