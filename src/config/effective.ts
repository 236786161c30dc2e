/**
 * The values that hold, one by one, and where each comes from: a line of the file, the environment by way of one, a flag of the
 * command line, or a default (contract 15.14).
 *
 * No secret is among them: what an environment, headers, a token or an address are given literally is masked, and `${NAME}` stays a
 * name.
 */
import { defaultLimit, LIMIT_NAMES } from './limit-keys.ts'
import { type Path, showPath } from './problem.ts'
import { configFile } from './schema.ts'
import type { Source } from './source.ts'

export interface EffectiveValue {
  readonly path: string
  readonly value: unknown
  /** `FILE:LINE`, `FILE:LINE (environment)`, `flag`, or `default`. */
  readonly origin: string
}

const SECRET_MAPS = new Set<string | number>(['env', 'headers'])
const SECRETS = new Set<string | number>(['token'])
const MASK = '(masked)'
/** Of an address: whoever stands before the host, and parameters that hold credentials. */
const USER = /^([a-z][a-z\d+.-]*:\/\/)([^/?#]*)(?=@)/i
const SECRET_PARAMETER = /([?&][^=&#]*(?:key|token|secret|pass|sig|auth|credential)[^=&#]*=)([^&#]*)/gi

/** Nothing where the file has mistakes. `flags`: keys of the file that the command line has replaced, whole. */
export function effectiveValues(
  source: Source,
  flags: Readonly<Record<string, unknown>> = {},
): readonly EffectiveValue[] {
  const parsed = configFile.safeParse(source.value)
  if (!parsed.success) return []
  return leavesOf({ ...withLimits(parsed.data), ...flags }, []).map(({ path, value }) => ({
    path: showPath(path),
    value: isSecret(path) ? masked(value) : withoutCredentials(value),
    origin: Object.hasOwn(flags, path[0]!) ? 'flag' : originOf(source, path, value),
  }))
}

function originOf(source: Source, path: Path, value: unknown): string {
  if (!isIn(source.value, path)) return 'default'
  const place = `${source.file}:${lineOf(source, path)}`
  return isReference(value) ? `${place} (environment)` : place
}

/** The defaults of limits are the kernel's, and not in the schema. */
function withLimits(data: ReturnType<typeof configFile.parse>): object {
  const limits = Object.fromEntries(LIMIT_NAMES.map((name) => [name, data.limits[name] ?? defaultLimit(name)]))
  return { ...data, limits }
}

function leavesOf(value: unknown, path: Path): { path: Path; value: unknown }[] {
  if (typeof value !== 'object' || value === null) return value === undefined ? [] : [{ path, value }]
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  if (entries.length === 0) return path.length === 0 ? [] : [{ path, value }]
  return entries.flatMap(([key, inner]) => leavesOf(inner, [...path, key]))
}

function isSecret(path: Path): boolean {
  return SECRETS.has(path.at(-1)!) || path.slice(0, -1).some((key) => SECRET_MAPS.has(key))
}

/** A reference is no secret. */
function masked(value: unknown): unknown {
  return isReference(value) ? value : MASK
}

function withoutCredentials(value: unknown): unknown {
  if (typeof value !== 'string' || !value.includes('://')) return value
  const hide = (_: string, before: string, secret: string): string =>
    `${before}${secret.split(':').every(isReference) ? secret : MASK}`
  return value.replace(USER, hide).replace(SECRET_PARAMETER, hide)
}

function isReference(value: unknown): boolean {
  return typeof value === 'string' && /^(?:\$\{\w+\})+$/.test(value)
}

function isIn(value: unknown, path: Path): boolean {
  let at: unknown = value
  for (const key of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return false
    at = (at as Record<string | number, unknown>)[key]
  }
  return true
}

function lineOf(source: Source, path: Path): number {
  return source.place({ path, found: '', allowed: '' }).line
}
