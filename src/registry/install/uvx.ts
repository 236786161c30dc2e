/**
 * Installs a Python package with `uv` into an environment of its own, and finds its program.
 *
 * The environment is made relocatable: it is built in one folder and moved to its place by a rename.
 */
import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { PackageTarget } from '../entry.ts'
import { RegistryError } from '../errors.ts'
import { findProgram, runProgram } from '../programs.ts'
import { type InstallJob, report } from './job.ts'
import type { InstalledProgram } from './store.ts'

const ENVIRONMENT = 'venv'
const PROGRAMS = process.platform === 'win32' ? 'Scripts' : 'bin'

export async function installUvx(job: InstallJob, target: PackageTarget, content: string): Promise<InstalledProgram> {
  const uv = await findProgram('uv')
  const requirement = pinPythonPackage(target.package, job.entry.version)
  const environment = join(content, ENVIRONMENT)
  report(job, 'installing')
  await runUv(job, uv, requirement, content, ['venv', '--relocatable', '--no-project', environment])
  const python = join(environment, PROGRAMS, 'python')
  await runUv(job, uv, requirement, content, ['pip', 'install', '--python', python, '--', requirement])
  const program = join(ENVIRONMENT, PROGRAMS, target.cmd ?? programOf(target.package))
  const executable = await access(join(content, program), constants.X_OK).then(
    () => true,
    () => false,
  )
  if (!executable) throw new RegistryError('command_missing', requirement, `there is no ${program} in it`)
  return { runner: 'system', path: program }
}

/** uvx writes `name@1.2.3`, pip `name==1.2.3`; a bare name means the version of the entry. */
export function pinPythonPackage(spec: string, version: string): string {
  if (spec.startsWith('file:')) return fileURLToPath(spec.startsWith('file://') ? spec : `file://${spec.slice(5)}`)
  if (/[=~<>!]=/.test(spec)) return spec
  const [name = spec, wanted] = spec.split('@')
  return wanted === 'latest' ? name : `${name}==${wanted ?? version}`
}

function programOf(spec: string): string {
  return /^[A-Za-z0-9._-]+/.exec(spec.startsWith('file:') ? '' : spec)?.[0] ?? ''
}

const NETWORK = /error sending request|dns error|failed to connect|connection refused|timed out|offline/i
const NOT_FOUND = /no solution found|not found in the package registry|no such file/i

async function runUv(job: InstallJob, uv: string, spec: string, cwd: string, args: readonly string[]): Promise<void> {
  const env = { ...process.env, UV_NO_PROGRESS: '1', NO_COLOR: '1' }
  const end = await runProgram(uv, args, { cwd, env, timeoutMs: job.timeoutMs, signal: job.signal })
  if (end.exitCode === 0) return
  if (end.timedOut) throw new RegistryError('install_failed', spec, 'uv took too long')
  const reason = NETWORK.test(end.output)
    ? 'network'
    : NOT_FOUND.test(end.output)
      ? 'package_not_found'
      : 'install_failed'
  throw new RegistryError(reason, spec, `uv: ${end.output.replaceAll('\n', ' ').slice(-600)}`)
}
