/**
 * How often the workers of each pool were started anew by request: another revision of the same configuration, so that the
 * kernel does with such a pool what it does with one that has changed (contract 7.5).
 */
import type { BusConfig } from '../../config/bus-config.ts'
import type { PoolId } from '../../kernel/vocabulary.ts'

export class PoolRestarts {
  readonly #counts = new Map<PoolId, number>()

  count(pool: PoolId): void {
    this.#counts.set(pool, (this.#counts.get(pool) ?? 0) + 1)
  }

  /** The configuration with the revisions that its pools have by now. */
  applyTo(config: BusConfig): BusConfig {
    if (this.#counts.size === 0) return config
    const pools = config.bus.pools.map((pool) => {
      const count = this.#counts.get(pool.id)
      return count === undefined ? pool : { ...pool, revision: `${pool.revision}+${count}` }
    })
    return { ...config, bus: { ...config.bus, pools } }
  }
}
