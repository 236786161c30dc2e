/**
 * Joins pools that name agents of the registry to the registry; what is installed on the way is told in the log.
 *
 * Most configurations name no such agent: this file is loaded for those that do, and the registry with it.
 */
import type { BusConfig } from '../../config/bus-config.ts'
import type { PoolId } from '../../kernel/vocabulary.ts'
import type { RegistryOptions } from '../../registry/resolve.ts'
import type { RegistrySources } from '../../registry/sources.ts'
import type { ResolveAgent } from './launches.ts'
import type { Log } from './log.ts'

export const resolveRegistryAgent: ResolveAgent = async (_pool, launch, config, log) => {
  const { resolveAgent } = await import('../../registry/resolve.ts')
  const { distribution, args, env } = launch
  const sources = await sourcesOf(config)
  return resolveAgent(launch.registry, { sources, distribution, args, env, ...reportTo(log) })
}

/** Fails when the file of secrets cannot be used, or others can read it. */
export async function checkCredentials(config: BusConfig): Promise<void> {
  const { readCredentials } = await import('../../registry/credentials.ts')
  await readCredentials((await sourcesOf(config)).credentialsFile)
}

/** What the configuration says of the registry, for the worker that offers all its agents; the pool's own `env` wins. */
export async function settingsForLauncher(
  id: PoolId,
  config: BusConfig,
): Promise<{ args: string[]; env: Record<string, string> }> {
  const { index, agentsFile, credentialsFile, cacheDir } = await sourcesOf(config)
  const lineBytes = config.bus.pools.find((pool) => pool.id === id)!.limits.maxInputBufferBytes
  return {
    args: [
      ...['--cache', cacheDir],
      ...['--idle-timeout', String(config.registry.idleTimeoutMs / 1000)],
      // One agent's long line must not cost the others their launcher; a name of its own may lengthen a line a little.
      ...['--max-line', String(Math.ceil(Math.max(lineBytes - 1024, lineBytes / 2)))],
    ],
    env: {
      STDIO_BUS_REGISTRY: index,
      ...(agentsFile === undefined ? {} : { STDIO_BUS_AGENTS: agentsFile }),
      ...(credentialsFile === undefined ? {} : { STDIO_BUS_CREDENTIALS: credentialsFile }),
    },
  }
}

/** Says in the log what is being brought, once per step, and what is not as it should be. */
export function reportTo(log: Log): Pick<Required<RegistryOptions>, 'onProgress' | 'onWarning'> {
  const steps = new Map<string, string>()
  return {
    onProgress: ({ id, version, phase }) => {
      if (steps.get(id) === phase) return
      steps.set(id, phase)
      log.write('info', `${phase} ${id} ${version}`)
    },
    onWarning: (text) => log.write('warn', text),
  }
}

async function sourcesOf({ registry }: BusConfig): Promise<RegistrySources> {
  const { chooseSources } = await import('../../registry/sources.ts')
  return chooseSources({}, process.env, registry)
}
