/**
 * Starts the few programs of others that an installation needs (npm, uv, bzip2): without a shell, in their own process
 * group, with a bound on their time and on what is kept of their words.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { RegistryError } from './errors.ts'

const KEPT_BYTES = 16 * 1024

/** A program that ran and ended badly, with its last words. */
export class ProgramFailed extends Error {
  override readonly name = 'ProgramFailed'
}

/** The full path of a program in PATH; its absence is an error that says what to do. */
export async function findProgram(name: string, searchPath = process.env['PATH'] ?? ''): Promise<string> {
  for (const folder of searchPath.split(delimiter).filter((part) => part !== '')) {
    const path = join(folder, name)
    if (await isExecutable(path)) return path
  }
  throw new RegistryError('runtime_missing', name)
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

export interface ProgramRun {
  readonly cwd: string
  readonly env?: NodeJS.ProcessEnv
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
}

export interface ProgramEnd {
  readonly exitCode: number | null
  readonly timedOut: boolean
  /** The last words on stdout and stderr. */
  readonly output: string
}

/** Runs a program to its end. An abort ends its group and throws the reason of the abort. */
export async function runProgram(command: string, args: readonly string[], run: ProgramRun): Promise<ProgramEnd> {
  run.signal?.throwIfAborted()
  const child = spawn(command, args, {
    cwd: run.cwd,
    env: run.env ?? process.env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let timedOut = false
  const timer = setTimeout(() => {
    timedOut = true
    endGroup(child)
  }, run.timeoutMs)
  const abort = () => endGroup(child)
  run.signal?.addEventListener('abort', abort, { once: true })
  try {
    const output = collect(child)
    const exitCode = await ended(child)
    run.signal?.throwIfAborted()
    return { exitCode, timedOut, output: output() }
  } finally {
    clearTimeout(timer)
    run.signal?.removeEventListener('abort', abort)
  }
}

/** The stdout of a program, as a stream that fails when the program does. */
export async function* pipeThrough(command: string, args: readonly string[]): AsyncGenerator<Uint8Array> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const end = ended(child)
  end.catch(() => {}) // Looked at below, and only if stdout has come to its end.
  const words = tail(child.stderr)
  try {
    yield* child.stdout
    const exitCode = await end
    if (exitCode !== 0) throw new ProgramFailed(`${command} ended with ${exitCode}: ${words()}`)
  } finally {
    endGroup(child)
  }
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve(code))
  })
}

function collect(child: ChildProcess): () => string {
  const outputs = [child.stdout, child.stderr].map(tail)
  return () =>
    outputs
      .map((read) => read())
      .join('\n')
      .trim()
}

function tail(stream: NodeJS.ReadableStream | null): () => string {
  let kept = ''
  stream?.setEncoding('utf8')
  stream?.on('data', (text: string) => {
    kept = (kept + text).slice(-KEPT_BYTES)
  })
  return () => kept.trim()
}

/** SIGKILL for the whole group: these programs write into a folder that is thrown away. */
function endGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    child.kill('SIGKILL')
  }
}
