/**
 * What a worker finds in its environment: a small safe set, then what its pool gives it (contract 5.4).
 *
 * The environment of the bus may hold keys of every service its user has; none of them reaches a worker unless the
 * file says so. Nothing here is logged and no value appears in what is returned about a mistake.
 */
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

export interface EnvironmentOptions {
  readonly env: Readonly<Record<string, string>>
  readonly inheritEnv: boolean
}

/** The whole environment of a worker; later layers win, so credentials come last. */
export function workerEnvironment(
  { env, inheritEnv }: EnvironmentOptions,
  daemon: Environment,
  ...layers: readonly Readonly<Record<string, string>>[]
): Record<string, string> {
  const inherited = Object.entries(daemon).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && (inheritEnv || isSafe(entry[0])),
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
