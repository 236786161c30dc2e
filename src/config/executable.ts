/**
 * Whether a command can be executed, looked up as the system will look it up for the worker: in the worker's own PATH,
 * relative to the worker's own directory. It runs nothing.
 */
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, resolve } from 'node:path'

export interface Lookup {
  readonly command: string
  /** The directory of the worker. */
  readonly cwd: string
  readonly path: string | undefined
}

/** Why the command cannot be executed, or nothing. */
export async function refuseExecution({ command, cwd, path }: Lookup): Promise<string | undefined> {
  if (/[/\\]/.test(command)) return refuseFile(resolve(cwd, command))
  const folders = (path ?? DEFAULT_PATH).split(delimiter)
  const verdicts = await Promise.all(
    folders.flatMap((folder) => spellings(resolve(cwd, folder, command))).map(refuseFile),
  )
  if (verdicts.includes(undefined)) return undefined
  return verdicts.find((verdict) => verdict !== MISSING) ?? 'a command that is not in the PATH of the worker'
}

const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'
const MISSING = 'a file that does not exist'

async function refuseFile(file: string): Promise<string | undefined> {
  const found = await stat(file).catch(() => undefined)
  if (found === undefined) return MISSING
  if (!found.isFile()) return 'something that is no file'
  const isExecutable = await access(file, constants.X_OK).then(
    () => true,
    () => false,
  )
  return isExecutable ? undefined : 'a file without permission to execute it'
}

function spellings(file: string): string[] {
  return process.platform === 'win32' ? [file, `${file}.exe`, `${file}.cmd`] : [file]
}
