/**
 * What is left of a file when its mistakes are taken out, so that `check` can go on looking at the rest.
 *
 * A draft is never run. Values at fault are left out and keep their defaults; where that is not enough there is no draft.
 */
import type { Finding, Path } from './problem.ts'
import { type ConfigFile, configFile } from './schema.ts'

export function draftOf(value: unknown, findings: readonly Finding[]): ConfigFile | undefined {
  const rest = structuredClone(value)
  for (const { path } of findings) removeKey(rest, path)
  const parsed = configFile.safeParse(rest)
  return parsed.success ? parsed.data : undefined
}

/** Only keys are removed, never elements of a list: the others must keep their places. */
function removeKey(value: unknown, path: Path): void {
  const key = path.at(-1)
  let owner = value
  for (const step of path.slice(0, -1)) owner = (owner as Record<string | number, unknown> | undefined)?.[step]
  if (typeof key === 'string' && typeof owner === 'object' && owner !== null)
    delete (owner as Record<string, unknown>)[key]
}
