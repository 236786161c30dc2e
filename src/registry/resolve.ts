/**
 * From the id of an agent to a command line that can be started like any other.
 *
 * `openRegistry` reads the index once and answers many; `resolveAgent` is for one. Secrets are in `env` only: whoever
 * shows a resolved agent shows the names in `secretNames`, never their values.
 */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DEFAULT_ARCHIVE_LIMITS } from './archive/tree.ts'
import { ownPackage } from './builtin.ts'
import { type Catalogue, findAgent, type ListedAgent, loadCatalogue } from './catalogue.ts'
import { type Credentials, readCredentials } from './credentials.ts'
import { type Choice, chooseDistribution, type Kind } from './distribution.ts'
import type { AgentEntry } from './entry.ts'
import { RegistryError } from './errors.ts'
import { installAgent } from './install/install.ts'
import type { InstallJob, Progress } from './install/job.ts'
import { findInstalled, type Installed } from './install/store.ts'
import { currentPlatform, type Platform } from './platform.ts'
import type { RegistrySources } from './sources.ts'

export interface RegistryOptions {
  readonly sources: RegistrySources
  readonly refresh?: boolean | undefined
  readonly platform?: Platform | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
  readonly onWarning?: ((text: string) => void) | undefined
}

/** What a pool says of its agent beside the id. */
export interface AgentWish {
  readonly distribution?: Kind | undefined
  /** Follow the arguments of the distribution. */
  readonly args?: readonly string[] | undefined
  /** Over the index's, under the credentials. */
  readonly env?: Readonly<Record<string, string>> | undefined
}

export interface ResolvedAgent {
  readonly id: string
  readonly name: string
  readonly version: string
  readonly kind: Kind
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** The variables of `env` that must never be shown. */
  readonly secretNames: readonly string[]
  /** Where it is installed; undefined for what ships with the bus or was there before. */
  readonly folder: string | undefined
}

export interface Registry {
  readonly catalogue: Catalogue
  find(id: string): ListedAgent
  /** Whether `resolve` would start without installing; undefined when this platform has no distribution of it. */
  isInstalled(id: string, wish?: AgentWish): Promise<boolean | undefined>
  resolve(id: string, wish?: AgentWish): Promise<ResolvedAgent>
}

export async function resolveAgent(id: string, options: RegistryOptions & AgentWish): Promise<ResolvedAgent> {
  const registry = await openRegistry(options)
  return registry.resolve(id, options)
}

export async function openRegistry(options: RegistryOptions): Promise<Registry> {
  // Before anything is fetched: a mistake of the user should not wait for the network.
  const credentials = await readCredentials(options.sources.credentialsFile)
  const request = { nowMs: Date.now(), refresh: options.refresh ?? false, signal: options.signal }
  const catalogue = await loadCatalogue(options.sources, request)
  for (const warning of catalogue.warnings) options.onWarning?.(warning)
  const platform = options.platform ?? currentPlatform()
  const find = (id: string): ListedAgent => findAgent(catalogue, id)
  const choose = (id: string, wish?: AgentWish): Choice =>
    chooseDistribution(find(id).entry, platform, wish?.distribution)
  return {
    catalogue,
    find,
    isInstalled: async (id, wish) =>
      isPresent(
        find(id),
        choiceOrNone(() => choose(id, wish)),
        options.sources.cacheDir,
      ),
    resolve: async (id, wish = {}) => {
      const choice = choose(id, wish)
      const start = await prepare(find(id), choice, options)
      return assemble(find(id).entry, choice, start, wish, credentials)
    },
  }
}

function choiceOrNone(choose: () => Choice): Choice | undefined {
  try {
    return choose()
  } catch (error) {
    if (error instanceof RegistryError) return undefined
    throw error
  }
}

async function isPresent(
  agent: ListedAgent,
  choice: Choice | undefined,
  cacheDir: string,
): Promise<boolean | undefined> {
  if (choice === undefined) return undefined
  if (isLocal(agent, choice) || bundledProgram(choice) !== undefined) return true
  return (await findInstalled(cacheDir, agent.entry, choice)) !== undefined
}

/** How a program is started, before the entry's own arguments. */
interface Start {
  readonly command: string
  readonly args: readonly string[]
  readonly folder: string | undefined
}

async function prepare(agent: ListedAgent, choice: Choice, options: RegistryOptions): Promise<Start> {
  if (isLocal(agent, choice)) return { command: choice.target.cmd ?? '', args: [], folder: undefined }
  const bundled = bundledProgram(choice)
  if (bundled !== undefined) return startBundled(bundled)
  return startInstalled(await installAgent(jobOf(agent.entry, options), choice))
}

/** A command of this machine: only the user's own agents file may name one. */
function isLocal(agent: ListedAgent, choice: Choice): boolean {
  return agent.origin === 'agents file' && choice.kind === 'binary' && choice.target.archive === undefined
}

/** The program of this very package that the choice means, if it does. */
function bundledProgram(choice: Choice): string | undefined {
  const own = ownPackage()
  if (choice.kind !== 'npx' || choice.target.package !== `${own.name}@${own.version}`) return undefined
  const bin = own.bin[choice.target.cmd ?? own.name]
  return bin === undefined ? undefined : join(own.root, bin)
}

async function startBundled(program: string): Promise<Start> {
  if (!(await stat(program).catch(() => undefined))) {
    throw new RegistryError('command_missing', 'this package', 'it has not been built: npm run build')
  }
  return { command: process.execPath, args: [program], folder: undefined }
}

function startInstalled({ folder, record }: Installed): Start {
  const path = join(folder, record.program.path)
  if (record.program.runner === 'system') return { command: path, args: [], folder }
  return { command: process.execPath, args: [path], folder }
}

const MIB = 1024 * 1024

function jobOf(entry: AgentEntry, options: RegistryOptions): InstallJob {
  return {
    entry,
    cacheDir: options.sources.cacheDir,
    signal: options.signal,
    onProgress: options.onProgress ?? (() => {}),
    onWarning: options.onWarning ?? (() => {}),
    timeoutMs: 15 * 60_000,
    maxArchiveBytes: 1_024 * MIB,
    archiveLimits: DEFAULT_ARCHIVE_LIMITS,
  }
}

function assemble(
  entry: AgentEntry,
  choice: Choice,
  start: Start,
  wish: AgentWish,
  credentials: Credentials,
): ResolvedAgent {
  const secrets = credentials.get(entry.id) ?? {}
  return {
    id: entry.id,
    name: entry.name,
    version: entry.version,
    kind: choice.kind,
    command: start.command,
    args: [...start.args, ...(choice.target.args ?? []), ...(wish.args ?? [])],
    env: { ...choice.target.env, ...wish.env, ...secrets },
    secretNames: Object.keys(secrets),
    folder: start.folder,
  }
}
