/**
 * What can be set about the trace store, with its defaults and its bounds in one place.
 */
import type { QueueBounds } from './change-queue.ts'
import { type EngineHost, inlineHost, threadHost } from './engine-host.ts'
import type { OtlpOptions } from './export-otlp.ts'
import type { PayloadPolicy } from './payload.ts'
import type { RecentBounds } from './recent-traces.ts'
import type { LinkTimes, StateChange } from './store-link.ts'

export interface StoreOptions {
  /** The database file; without it traces are kept in memory, which is then no failure. */
  readonly path?: string | undefined
  /** What this bus is called among several. */
  readonly node?: string | undefined
  /** 0 keeps traces for ever. */
  readonly retentionDays?: number | undefined
  readonly payloadBytes?: number | undefined
  readonly redact?: readonly string[] | undefined
  /** How `export` writes OTLP. */
  readonly otlp?: OtlpOptions | undefined
  /** Told once of every change of state; the first `ok` included. */
  readonly onState?: ((change: StateChange) => void) | undefined
  readonly nowMs?: (() => number) | undefined
  readonly makeHost?: (() => EngineHost) | undefined
  readonly times?: Partial<StoreTimes> | undefined
  readonly bounds?: Partial<StoreBounds> | undefined
}

export interface StoreTimes extends LinkTimes {
  /** A question waits this long for the database, then memory answers. */
  readonly queryMs: number
  readonly closeMs: number
}

export interface StoreBounds {
  readonly queue: QueueBounds
  readonly recent: RecentBounds
  /** Open calls that are followed; those above are counted as missing. */
  readonly maxOpen: number
  /** Traces whose losses are counted between two batches. */
  readonly maxCharged: number
  /** Payloads above this are not remembered beside the database. */
  readonly rememberedPayloadBytes: number
}

export interface StoreSettings extends PayloadPolicy {
  readonly path: string | undefined
  readonly node: string | undefined
  readonly retentionDays: number
  readonly otlp: OtlpOptions
  readonly onState: (change: StateChange) => void
  readonly nowMs: () => number
  readonly makeHost: () => EngineHost
  readonly times: StoreTimes
  readonly bounds: StoreBounds
}

const MIB = 1024 * 1024

export const DEFAULT_TIMES: StoreTimes = { stallMs: 5_000, retryMs: 30_000, queryMs: 5_000, closeMs: 2_000 }

export const DEFAULT_BOUNDS: StoreBounds = {
  queue: { maxRows: 20_000, maxPayloadBytes: 32 * MIB },
  recent: { maxCalls: 10_000, maxPayloadBytes: 16 * MIB },
  maxOpen: 50_000,
  maxCharged: 10_000,
  rememberedPayloadBytes: 65_536,
}

/** From its source the thread's entry cannot be loaded by every supported runtime; there the engine shares this thread. */
const isSource = import.meta.url.endsWith('.ts')

export function settingsOf(options: StoreOptions): StoreSettings {
  return {
    path: options.path,
    node: options.node,
    retentionDays: options.retentionDays ?? 14,
    payloadBytes: options.payloadBytes ?? 16_384,
    redact: options.redact ?? [],
    otlp: options.otlp ?? {},
    onState: options.onState ?? (() => {}),
    nowMs: options.nowMs ?? Date.now,
    makeHost: options.makeHost ?? (isSource ? () => inlineHost() : () => threadHost()),
    times: { ...DEFAULT_TIMES, ...options.times },
    bounds: { ...DEFAULT_BOUNDS, ...options.bounds },
  }
}
