/**
 * Installs an npm package into a folder of its own, without running any of its scripts, and finds its program.
 *
 * npm does the fetching and checks the integrity; the program is later started directly, so nothing is resolved again and
 * no network is needed.
 */
import { chmod, open, readFile, realpath, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { PackageTarget } from '../entry.ts'
import { RegistryError } from '../errors.ts'
import { findProgram, type ProgramEnd, runProgram } from '../programs.ts'
import { type InstallJob, report } from './job.ts'
import type { InstalledProgram } from './store.ts'

const FLAGS = [
  '--ignore-scripts',
  '--omit=dev',
  '--install-links',
  '--prefer-offline',
  '--no-audit',
  '--no-fund',
  '--no-progress',
  '--no-update-notifier',
  '--global=false',
  '--loglevel=error',
]

interface Manifest {
  readonly name: string
  readonly version: string
  readonly bin?: string | Readonly<Record<string, string>>
  readonly engines?: { readonly node?: string }
}

export async function installNpx(job: InstallJob, target: PackageTarget, content: string): Promise<InstalledProgram> {
  const npm = await findProgram('npm')
  const spec = pinNpmPackage(target.package, job.entry.version)
  await writeFile(join(content, 'package.json'), '{ "private": true }\n')
  report(job, 'installing')
  const end = await runProgram(npm, ['install', `--prefix=${content}`, ...FLAGS, '--', spec], {
    cwd: content,
    timeoutMs: job.timeoutMs,
    signal: job.signal,
  })
  if (end.exitCode !== 0) throw explainNpm(spec, end)
  const manifest = await readManifest(content)
  if (!meetsEngine(manifest.engines?.node)) {
    job.onWarning(`${spec} asks for Node ${manifest.engines?.node}; this is ${process.version}`)
  }
  return describeProgram(content, await chooseProgram(content, manifest, target.cmd, spec))
}

/** A bare name means the version of the entry; what has a version, a tag or a file keeps it. */
export function pinNpmPackage(spec: string, version: string): string {
  return spec.startsWith('file:') || spec.lastIndexOf('@') > 0 ? spec : `${spec}@${version}`
}

/** Only the plain form `>=A.B.C` is judged; whatever else an engine range says is left to the agent. */
export function meetsEngine(range: string | undefined, node: string = process.versions.node): boolean {
  const floor = range?.trim().match(/^>=\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?$/)
  if (!floor) return true
  const wanted = floor.slice(1).map((part) => Number(part ?? 0))
  const present = node.split('.').map(Number)
  const at = wanted.findIndex((part, index) => part !== present[index])
  return at === -1 || (present[at] ?? 0) > (wanted[at] ?? 0)
}

const NPM_FAULTS: readonly (readonly [RegExp, 'network' | 'package_not_found'])[] = [
  [/\b(E404|ETARGET|ENOVERSIONS|ENOENT)\b/, 'package_not_found'],
  [
    /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENOTCACHED|ERR_SOCKET_TIMEOUT)\b/,
    'network',
  ],
]

function explainNpm(spec: string, end: ProgramEnd): RegistryError {
  if (end.timedOut) return new RegistryError('install_failed', spec, 'npm took too long')
  const fault = NPM_FAULTS.find(([pattern]) => pattern.test(end.output))
  const lines = end.output.split('\n').filter((line) => !line.includes('A complete log of this run'))
  return new RegistryError(fault?.[1] ?? 'install_failed', spec, `npm: ${lines.join(' ').slice(-600)}`)
}

async function readManifest(content: string): Promise<Manifest> {
  const { dependencies } = JSON.parse(await readFile(join(content, 'package.json'), 'utf8'))
  const name = Object.keys(dependencies)[0] ?? ''
  return JSON.parse(await readFile(join(content, 'node_modules', name, 'package.json'), 'utf8'))
}

/** As npx chooses: the program that was named, the only one, or the one that is called like the package. */
async function chooseProgram(
  content: string,
  manifest: Manifest,
  cmd: string | undefined,
  spec: string,
): Promise<string> {
  const plainName = manifest.name.slice(manifest.name.indexOf('/') + 1)
  const bins = typeof manifest.bin === 'string' ? { [plainName]: manifest.bin } : (manifest.bin ?? {})
  const names = Object.keys(bins)
  const same = new Set(Object.values(bins)).size === 1
  const chosen = cmd ?? (same ? names[0] : names.find((name) => name === plainName))
  const own = chosen === undefined ? undefined : bins[chosen]
  const path = own === undefined ? join('.bin', chosen ?? '') : join(manifest.name, own)
  const found = chosen && (await realpath(join(content, 'node_modules', path)).catch(() => undefined))
  if (found) return found
  throw new RegistryError('command_missing', spec, `its programs are: ${names.join(', ') || 'none'}`)
}

/** Scripts for Node are started by the Node that runs us, whatever PATH says; anything else by the system. */
async function describeProgram(content: string, path: string): Promise<InstalledProgram> {
  const inside = relative(await realpath(content), path)
  const shebang = await firstLine(path)
  const isNode = shebang.startsWith('#!') ? /\bnode\s*$/.test(shebang) : /\.[cm]?js$/.test(path)
  if (!isNode) await chmod(path, 0o755)
  return { runner: isNode ? 'node' : 'system', path: inside }
}

async function firstLine(path: string): Promise<string> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(256), 0, 256, 0)
    return buffer.toString('latin1', 0, bytesRead).split('\n')[0] ?? ''
  } finally {
    await file.close()
  }
}
