/**
 * Chooses how an agent is brought to this machine: binary if this platform has one, then npx, then uvx, unless the user
 * names one of them. It looks at the entry only; whether the programs for it are there shows at the installation.
 */
import type { AgentEntry, BinaryTarget, PackageTarget } from './entry.ts'
import { RegistryError } from './errors.ts'
import type { Platform } from './platform.ts'

export const KINDS = ['binary', 'npx', 'uvx'] as const
export type Kind = (typeof KINDS)[number]

export type Choice =
  | { readonly kind: 'binary'; readonly target: BinaryTarget }
  | { readonly kind: 'npx' | 'uvx'; readonly target: PackageTarget }

export function chooseDistribution(
  entry: AgentEntry,
  platform: Platform | undefined,
  wanted: Kind | undefined,
): Choice {
  const usable = choicesOf(entry, platform)
  const choice = wanted === undefined ? usable[0] : usable.find(({ kind }) => kind === wanted)
  if (choice !== undefined) return choice
  const has = `it has ${describeDistributions(entry).join(', ')}; this platform is ${platform ?? 'unknown to the index'}`
  const lacksKind = wanted !== undefined && (entry.distribution[wanted] === undefined || usable.length > 0)
  throw new RegistryError(lacksKind ? 'distribution_missing' : 'platform_unsupported', entry.id, has)
}

/** All ways for this platform, the preferred one first. */
export function choicesOf(entry: AgentEntry, platform: Platform | undefined): readonly Choice[] {
  return KINDS.map((kind) => choiceOf(entry, kind, platform)).filter((choice) => choice !== undefined)
}

/** For people: `npx`, `uvx`, and `binary` with its platforms. */
export function describeDistributions(entry: AgentEntry): readonly string[] {
  const { binary, npx, uvx } = entry.distribution
  const platforms = Object.keys(binary ?? {})
  const texts = [
    platforms.length > 0 ? `binary (${platforms.join(' ')})` : undefined,
    npx === undefined ? undefined : 'npx',
    uvx === undefined ? undefined : 'uvx',
  ]
  return texts.filter((text) => text !== undefined)
}

function choiceOf(entry: AgentEntry, kind: Kind, platform: Platform | undefined): Choice | undefined {
  if (kind !== 'binary') {
    const target = entry.distribution[kind]
    return target === undefined ? undefined : { kind, target }
  }
  const target = platform === undefined ? undefined : entry.distribution.binary?.[platform]
  return target === undefined ? undefined : { kind, target }
}
