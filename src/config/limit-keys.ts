/**
 * The limits as the file spells them, each with the kernel's name, its unit and its reason (contract 8.1).
 *
 * Defaults are not repeated here: they are read from the kernel. `perPool` marks the limits that a pool may override,
 * which are those that bound a worker; the others count clients or the whole bus, and a pool has no say in them.
 */
import { DEFAULT_LIMITS, type Limits } from '../kernel/limits.ts'

export interface LimitKey {
  readonly name: keyof Limits
  /** Code spelling = file spelling times this: seconds become milliseconds. */
  readonly factor: 1 | 1000
  readonly min: number
  readonly max: number
  readonly perPool: boolean
  readonly description: string
}

const GIB = 1024 ** 3
/** The longest a timer of the runtime can be set to. */
const MAX_TIMER_SEC = Math.floor((2 ** 31 - 1) / 1000)
const MAX_COUNT = 1_000_000_000

const bytes = { factor: 1, min: 0, max: 1024 * GIB } as const
const seconds = { factor: 1000, min: 0, max: MAX_TIMER_SEC } as const
const count = { factor: 1, min: 0, max: MAX_COUNT } as const

export const LIMIT_KEYS = {
  max_input_buffer: {
    name: 'maxInputBufferBytes',
    factor: 1,
    min: 1,
    max: GIB,
    perPool: true,
    description:
      'The longest line in bytes, without its newline. Whoever sends a longer one is closed. Agents send an image as one line: raise it to 33554432 (32 MiB) for them. In a pool it governs the lines of its workers; a client may send lines as long as the largest of all.',
  },
  max_output_queue: {
    ...bytes,
    name: 'maxOutputQueueBytes',
    perPool: true,
    description:
      'Bytes waiting for one peer before the bus pauses those who send to it. Nothing is dropped; reading resumes below half of it.',
  },
  max_restarts: {
    ...count,
    name: 'maxRestarts',
    perPool: true,
    description: 'How often one worker may be restarted within restart_window_sec before it is parked.',
  },
  restart_window_sec: {
    ...seconds,
    name: 'restartWindowMs',
    perPool: true,
    description: 'The time over which restarts are counted. A parked worker comes back when the window has room.',
  },
  drain_timeout_sec: {
    ...seconds,
    name: 'drainTimeoutMs',
    perPool: false,
    description: 'How long a stop waits for outstanding requests before it answers them with shutting_down.',
  },
  backpressure_timeout_sec: {
    ...seconds,
    name: 'backpressureTimeoutMs',
    perPool: true,
    description: 'How long a peer may leave its queue full before it is closed; a worker is restarted.',
  },
  max_clients: {
    ...count,
    name: 'maxClients',
    perPool: false,
    description: 'Connections at a time; one more is refused with too_many_clients.',
  },
  max_sessions_per_client: {
    ...count,
    name: 'maxSessionsPerClient',
    perPool: false,
    description: 'Sessions one connection may hold; one more is refused with too_many_sessions.',
  },
  max_pending_per_client: {
    ...count,
    name: 'maxPendingPerClient',
    perPool: false,
    description: 'Unanswered requests of one connection; one more is refused with too_many_pending.',
  },
  request_timeout_sec: {
    ...seconds,
    name: 'requestTimeoutMs',
    perPool: true,
    description:
      'After this a request is answered with request_timeout and the worker is sent the cancel. 0 means never: agents may think for hours.',
  },
  max_total_buffer: {
    ...bytes,
    name: 'maxTotalBufferBytes',
    perPool: false,
    description:
      'Everything the bus holds for all its peers, in bytes. Above it the largest holders are paused, then closed.',
  },
  blocking_timeout_sec: {
    ...seconds,
    name: 'blockingTimeoutMs',
    perPool: true,
    description: 'How long a client that does not read may hold up a worker that others use before it is closed.',
  },
  half_close_timeout_sec: {
    ...seconds,
    name: 'halfCloseTimeoutMs',
    perPool: false,
    description: 'How long a client that has ended its writing side is kept for the answers it is owed.',
  },
  max_journal_bytes: {
    ...bytes,
    name: 'maxJournalBytes',
    perPool: false,
    description:
      'What is kept of all sessions together, in bytes; above it the oldest turns go, of ended sessions first.',
  },
} as const satisfies Record<string, LimitKey>

export type LimitName = keyof typeof LIMIT_KEYS
export type PoolLimitName = {
  [K in LimitName]: (typeof LIMIT_KEYS)[K]['perPool'] extends true ? K : never
}[LimitName]

export const LIMIT_NAMES = Object.keys(LIMIT_KEYS) as LimitName[]
export const POOL_LIMIT_NAMES = LIMIT_NAMES.filter((key) => LIMIT_KEYS[key].perPool) as PoolLimitName[]

/** The default of a limit in the spelling of the file. */
export function defaultLimit(key: LimitName): number {
  return DEFAULT_LIMITS[LIMIT_KEYS[key].name] / LIMIT_KEYS[key].factor
}

/** `base` with the limits that the file gives laid over it. */
export function layLimits(base: Limits, given: Partial<Record<LimitName, number | undefined>>): Limits {
  const laid: { -readonly [K in keyof Limits]: number } = { ...base }
  for (const key of LIMIT_NAMES) {
    const value = given[key]
    if (value !== undefined) laid[LIMIT_KEYS[key].name] = value * LIMIT_KEYS[key].factor
  }
  return laid
}
