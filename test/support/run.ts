/** Runs a program to its end and gives all it said; a program that does not end is killed, and that is a failure. */
import { spawn } from 'node:child_process'

export interface Finished {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly cwd: string
  readonly env: Record<string, string>
  readonly stdin?: string
  readonly timeoutMs: number
}

export function run(command: string, args: readonly string[], options: RunOptions): Promise<Finished> {
  const child = spawn(command, args, { cwd: options.cwd, env: options.env, stdio: 'pipe' })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk))
  child.stdin.on('error', () => {})
  child.stdin.end(options.stdin ?? '')
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`${args.join(' ')} did not end within ${options.timeoutMs} ms\n${stdout}\n${stderr}`))
    }, options.timeoutMs)
    child.once('error', reject)
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      resolve({ code, signal, stdout, stderr })
    })
  })
}
