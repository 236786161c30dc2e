/** Joins a pool that names an agent of the registry to the registry; what is installed on the way is shown on stderr. */
import type { ResolveAgent } from './launches.ts'

export const resolveRegistryAgent: ResolveAgent = async (_pool, launch, { registry }) => {
  // Most configurations name no such agent: the registry is loaded for those that do.
  const { chooseSources } = await import('../../registry/sources.ts')
  const { resolveAgent } = await import('../../registry/resolve.ts')
  const sources = chooseSources({}, process.env, registry)
  const { distribution, args, env } = launch
  return resolveAgent(launch.registry, { sources, distribution, args, env })
}
