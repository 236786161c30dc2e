/** Paths as the file writes them: relative to the file itself, `~/` for the home directory. Touches no file. */
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { Environment } from './environment.ts'

export interface Places {
  /** The directory of the configuration file. */
  readonly base: string
  readonly home: string
  /** Where the bus was started; workers run there unless their pool says otherwise. */
  readonly startedIn: string
}

export function placesFor(file: string, environment: Environment, startedIn: string): Places {
  return { base: dirname(file), home: environment['HOME'] || homedir(), startedIn }
}

export function resolvePath(text: string, { base, home }: Places): string {
  if (text === '~' || text.startsWith('~/')) return join(home, text.slice(1))
  return resolve(base, text)
}
