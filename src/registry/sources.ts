/**
 * Where the launcher looks: flag over environment over configuration over default, each setting for itself.
 *
 * Paths become absolute here and nowhere else. Nothing is read.
 */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The index of the Agent Client Protocol. */
export const DEFAULT_INDEX = 'https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json'
const DEFAULT_TTL_MS = 3 * 60 * 60 * 1_000

export interface RegistrySources {
  /** An http(s) address or an absolute path. */
  readonly index: string
  readonly cacheDir: string
  readonly ttlMs: number
  readonly agentsFile: string | undefined
  readonly credentialsFile: string | undefined
}

export interface SourceSettings {
  readonly index?: string | undefined
  readonly cacheDir?: string | undefined
  readonly ttlMs?: number | undefined
  readonly agentsFile?: string | undefined
  readonly credentialsFile?: string | undefined
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Each setting and the variables that may give it, ours before those of the existing launcher. */
const VARIABLES = {
  index: ['STDIO_BUS_REGISTRY', 'ACP_REGISTRY_URL'],
  agentsFile: ['STDIO_BUS_AGENTS', 'ACP_CUSTOM_AGENTS_PATH'],
  credentialsFile: ['STDIO_BUS_CREDENTIALS', 'ACP_API_KEYS_PATH'],
} as const

export function chooseSources(flags: SourceSettings, env: Environment, config: SourceSettings): RegistrySources {
  const pick = (name: keyof typeof VARIABLES): string | undefined =>
    flags[name] ?? fromEnvironment(env, VARIABLES[name]) ?? config[name]
  return {
    index: absoluteIndex(pick('index') ?? DEFAULT_INDEX),
    cacheDir: resolve(flags.cacheDir ?? config.cacheDir ?? join(homedir(), '.stdio-bus', 'registry')),
    ttlMs: flags.ttlMs ?? config.ttlMs ?? DEFAULT_TTL_MS,
    agentsFile: absoluteFile(pick('agentsFile')),
    credentialsFile: absoluteFile(pick('credentialsFile')),
  }
}

export const isUrl = (index: string): boolean => /^https?:\/\//.test(index)

/** An empty variable counts as unset, as in a shell. */
function fromEnvironment(env: Environment, names: readonly string[]): string | undefined {
  return names.map((name) => env[name]).find((value) => value !== undefined && value !== '')
}

function absoluteIndex(index: string): string {
  return isUrl(index) ? index : absolutePath(index)
}

function absoluteFile(path: string | undefined): string | undefined {
  return path === undefined ? undefined : absolutePath(path)
}

function absolutePath(path: string): string {
  return path.startsWith('file://') ? fileURLToPath(path) : resolve(path)
}
