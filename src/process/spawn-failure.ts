/**
 * Turns the system's refusal to execute a command into a sentence for people (contract 7.2).
 *
 * The system says ENOENT for a missing command, a missing directory and a missing interpreter alike, so we look again. The
 * sentence names the command and the directory, never arguments or environment.
 */
import { accessSync, constants, statSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'
import type { Launch, SpawnFailure } from './launch.ts'
import { NoFifos } from './pipes.ts'

/** Where the system looks when the worker's environment has no PATH. */
const DEFAULT_PATH = '/bin:/usr/bin'

const EXPLAINED: Readonly<Record<string, (launch: Launch) => string>> = {
  ENOENT: explainMissing,
  EACCES: explainDenied,
  EPERM: explainDenied,
  ENOTDIR: explainMissing,
  E2BIG: () => 'arguments and environment together are larger than the system takes: shorten them',
  EAGAIN: () => 'the system has no room for another process: raise the limit of processes (ulimit -u)',
  ENOMEM: () => 'the system has no memory for another process: stop something, or start fewer instances',
  EMFILE: () => 'the bus is out of file descriptors: raise its limit (ulimit -n)',
  ENFILE: () => 'the system is out of file descriptors: stop something, or raise fs.file-max',
  ENOEXEC: ({ command }) => `not a program for this machine: ${command}`,
  ERR_INVALID_ARG_VALUE: () => 'command, args, env or cwd contains a NUL character: remove it',
}

/** The reason why `launch` could not be executed, given what the system answered. */
export function explainSpawnFailure(error: unknown, launch: Launch): SpawnFailure {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
  if (error instanceof NoFifos) return { code, reason: error.message }
  const explain = EXPLAINED[code]
  return { code, reason: explain ? explain(launch) : `the system refused to execute ${launch.command} (${code})` }
}

/** The file that `launch.command` means in the worker's own PATH and directory, executable or not. */
export function findCommand({ command, env, cwd }: Launch): string | undefined {
  if (command.includes('/')) return isFile(resolve(cwd, command)) ? resolve(cwd, command) : undefined
  const folders = (env['PATH'] ?? DEFAULT_PATH).split(':').map((folder) => resolve(cwd, folder))
  const files = folders.map((folder) => join(folder, command)).filter(isFile)
  return files.find(isExecutable) ?? files[0]
}

function explainMissing(launch: Launch): string {
  const trouble = explainDirectory(launch.cwd)
  if (trouble !== undefined) return trouble
  const { command } = launch
  const file = findCommand(launch)
  if (file !== undefined)
    return `the interpreter that the first line of ${file} names does not exist: install it, or correct the line`
  if (/\s/.test(command))
    return `there is no program ${JSON.stringify(command)}: no shell takes a command apart; ${inWords(command)}`
  if (!command.includes('/')) return `command not found in PATH: ${command}; install it, or give its full path`
  const where = isAbsolute(command) ? '' : ` (relative to ${launch.cwd})`
  return `command not found: ${command}${where}; check the path`
}

/** As the configuration has a program and its arguments. */
function inWords(line: string): string {
  const [command, ...args] = line
    .trim()
    .split(/\s+/)
    .map((word) => JSON.stringify(word))
  return `write "command": ${command}, "args": [${args.join(', ')}]`
}

function explainDenied(launch: Launch): string {
  const trouble = explainDirectory(launch.cwd)
  if (trouble !== undefined) return trouble
  const file = findCommand(launch)
  if (file === undefined) return `command not found or not allowed to be looked at: ${launch.command}; check the path`
  if (!isExecutable(file)) return `not executable: ${file}; try chmod +x`
  return `permission to execute ${file} was denied: check its interpreter and the mount options of its file system`
}

function explainDirectory(cwd: string): string | undefined {
  const found = stat(cwd)
  if (!found) return `cwd does not exist: ${cwd}; create it, or correct the path`
  if (!found.isDirectory()) return `cwd is not a directory: ${cwd}; correct the path`
  return isExecutable(cwd) ? undefined : `cwd may not be entered by this user: ${cwd}; check its permissions`
}

function isFile(path: string): boolean {
  return stat(path)?.isFile() ?? false
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function stat(path: string) {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}
