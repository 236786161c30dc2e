/**
 * What a worker finds in its environment: a small safe set, what the agents that ship with the bus are documented to read,
 * then what its pool gives it (contract 5.4).
 *
 * The environment of the bus may hold keys of every service its user has; none of them reaches a worker unless the
 * file says so, by its `env` or by naming an agent whose own variables they are. Nothing here is logged and no value
 * appears in what is returned about a mistake.
 */
import type { AgentLaunch } from './bus-config.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Names without which ordinary programs stumble, and which hold no secret. */
const SAFE_NAMES = new Set([
  ...['PATH', 'HOME', 'LANG', 'LANGUAGE', 'TMPDIR', 'USER', 'LOGNAME', 'SHELL', 'TERM', 'TZ'],
  ...[
    'SYSTEMROOT',
    'SYSTEMDRIVE',
    'WINDIR',
    'COMSPEC',
    'PATHEXT',
    'TEMP',
    'TMP',
    'USERPROFILE',
    'APPDATA',
    'LOCALAPPDATA',
  ],
])

const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']

/** What each agent that ships with the bus is documented to read (docs/openai-agent.md, docs/registry.md). */
export const AGENT_VARIABLES: Readonly<Record<AgentLaunch['agent'], readonly string[]>> = {
  openai: [
    ...['OPENAI_BASE_URL', 'OPENAI_API_KEY', 'OPENAI_MODEL', 'OPENAI_SYSTEM_PROMPT', 'OPENAI_MAX_TOKENS'],
    ...['OPENAI_TEMPERATURE', 'OPENAI_API_VERSION', 'OPENAI_HEADERS', 'OPENAI_VISION', 'OPENAI_MAX_RETRIES'],
    ...['OPENAI_TIMEOUT_SEC', 'OPENAI_SESSION_DIR'],
    ...withLowerCase(PROXIES),
  ],
  // Where its index and credentials are comes from the section of the file that says so.
  registry: withLowerCase(PROXIES),
  echo: [],
}

function withLowerCase(names: readonly string[]): string[] {
  return names.flatMap((name) => [name, name.toLowerCase()])
}

export interface EnvironmentOptions {
  readonly env: Readonly<Record<string, string>>
  readonly inheritEnv: boolean
  /** An agent that ships with the bus. */
  readonly agent?: AgentLaunch['agent']
}

/** The whole environment of a worker; later layers win, so credentials come last. */
export function workerEnvironment(
  { env, inheritEnv, agent }: EnvironmentOptions,
  daemon: Environment,
  ...layers: readonly Readonly<Record<string, string>>[]
): Record<string, string> {
  const own = agent === undefined ? [] : AGENT_VARIABLES[agent]
  const inherited = Object.entries(daemon).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && (inheritEnv || isSafe(entry[0]) || own.includes(entry[0])),
  )
  return Object.assign(Object.fromEntries(inherited), env, ...layers)
}

export interface Expansion {
  readonly value: string
  /** Names that the environment does not have. */
  readonly unset: readonly string[]
  /** A `${` that begins no reference. */
  readonly malformed: boolean
}

/** Replaces each `${NAME}` by its value in `environment`; `$${` stands for `${` itself. */
export function expandReferences(text: string, environment: Environment): Expansion {
  const unset: string[] = []
  let malformed = false
  const value = text.replace(/\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{/g, (match, name: string | undefined) => {
    if (match === '$${') return '${'
    if (name === undefined) malformed = true
    else if (environment[name] === undefined) unset.push(name)
    return name === undefined ? match : (environment[name] ?? '')
  })
  return { value, unset, malformed }
}

/** The spelling under which `expandReferences` gives back `text` itself. */
export function escapeReferences(text: string): string {
  return text.replaceAll('${', () => '$${')
}

function isSafe(name: string): boolean {
  // Windows spells its names in any case (`Path`, `SystemRoot`); elsewhere a lower-case twin is a stranger.
  const known = process.platform === 'win32' ? name.toUpperCase() : name
  return SAFE_NAMES.has(known) || name.startsWith('LC_')
}
