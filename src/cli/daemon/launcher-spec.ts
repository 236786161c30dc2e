/** The launcher as the kernel sees it: a pool per agent, and how messages name one. Decides nothing. */
import { DEFAULT_LIMITS, type Limits } from '../../kernel/limits.ts'
import type { BusSpec, PoolSpec } from '../../kernel/vocabulary.ts'
import type { Catalogue } from '../../registry/catalogue.ts'
import { FIELD } from '../../wire/fields.ts'
import { VERSION } from '../version.ts'

interface Bounds {
  readonly idleTimeoutMs: number
  readonly maxLineBytes: number
}

const MIB = 1024 * 1024
const DAY_MS = 24 * 60 * 60_000
/** An installation has its own bound, a quarter of an hour; the program may take a minute more. */
const START_TIMEOUT_MS = 16 * 60_000

/** The one client may be a bus with many clients of its own: it is trusted with their number, and never closed for being slow. */
const CLIENT_LIMITS: Limits = {
  ...DEFAULT_LIMITS,
  maxInputBufferBytes: 256 * MIB,
  maxOutputQueueBytes: 16 * MIB,
  maxPendingPerClient: 100_000,
  maxSessionsPerClient: 1_000_000,
  backpressureTimeoutMs: DAY_MS,
  blockingTimeoutMs: DAY_MS,
  halfCloseTimeoutMs: 1_000,
  // The launcher ends within a second, whatever is still owed (contract 3.3).
  drainTimeoutMs: 0,
}

export function launcherSpec(catalogue: Catalogue, bounds: Bounds): BusSpec {
  return {
    pools: [...catalogue.agents.keys()].map((id) => poolOf(id, bounds)),
    defaultPool: undefined,
    limits: CLIENT_LIMITS,
    addressing: {
      fields: [FIELD.agentId, FIELD.paramsAgentId, FIELD.metaAgentId],
      welcome: JSON.stringify(describeLauncher(catalogue)),
    },
  }
}

function poolOf(id: string, { idleTimeoutMs, maxLineBytes }: Bounds): PoolSpec {
  return {
    id,
    instances: 1,
    maxInstances: 1,
    sharing: 'shared',
    protocol: 'acp',
    era: 'auto',
    restart: 'always',
    startTimeoutMs: START_TIMEOUT_MS,
    hangTimeoutMs: 0,
    isLazy: true,
    ...(idleTimeoutMs === 0 ? {} : { idleTimeoutMs }),
    limits: { ...DEFAULT_LIMITS, maxInputBufferBytes: maxLineBytes },
    trace: false,
    revision: id,
  }
}

/** What an `initialize` that names no agent is answered (spec R7). */
function describeLauncher({ agents }: Catalogue): object {
  return {
    protocolVersion: 1,
    agentInfo: { name: 'stdio-bus', title: 'stdio Bus agent launcher', version: VERSION },
    agentCapabilities: {},
    authMethods: [],
    _meta: {
      'stdio-bus/agents': [...agents.values()].map(({ entry }) => ({
        id: entry.id,
        name: entry.name,
        version: entry.version,
      })),
    },
  }
}
