/**
 * What a configuration may not change while the bus runs (contract 7.5, 9.23, 14.1). Each row says what the log is told and what
 * whoever asked for the reload; nothing of a refused configuration is taken up.
 */
import { isDeepStrictEqual } from 'node:util'
import type { BusConfig, ClusterConfig } from '../../config/bus-config.ts'
import { ControlError } from '../../console/control-server.ts'
import type { Log } from './log.ts'

interface Refusal {
  readonly applies: (wanted: BusConfig, running: RunningConfig) => boolean
  readonly log: string
  readonly answer: string
}

export interface RunningConfig {
  readonly config: BusConfig
  readonly recordsPayloads: boolean
}

const REFUSALS: readonly Refusal[] = [
  {
    applies: ({ listen }, { config }) => JSON.stringify(listen) !== JSON.stringify(config.listen),
    log: 'listen has changed, which needs a restart',
    answer: 'listen has changed: restart the bus for that; the old configuration stays',
  },
  {
    applies: ({ cluster }, { config }) => !isSameNode(cluster, config.cluster),
    log: 'cluster has changed, which needs a restart',
    answer:
      'cluster has changed, and not only export and import: restart the bus for that; the old configuration stays',
  },
  {
    applies: ({ access }, { recordsPayloads }) => access !== undefined && recordsPayloads,
    log: 'access and --record-payloads exclude each other',
    answer: 'this bus records payloads, and with "access" credentials would be among them',
  },
]

/** Throws what whoever asked is answered. */
export function refuseWhatMayNotChange(wanted: BusConfig, running: RunningConfig, log: Log): void {
  const refusal = REFUSALS.find(({ applies }) => applies(wanted, running))
  if (refusal === undefined) return
  log.write('error', `reload refused: ${refusal.log}`)
  throw new ControlError(refusal.answer)
}

/** A node takes up what it exports and imports, and nothing else, while it runs. */
function isSameNode(one: ClusterConfig | undefined, other: ClusterConfig | undefined): boolean {
  const fixed = (config: ClusterConfig | undefined): unknown => config && { ...config, exports: [], imports: [] }
  return isDeepStrictEqual(fixed(one), fixed(other))
}
