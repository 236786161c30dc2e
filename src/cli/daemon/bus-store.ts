/**
 * The one file in which a bus keeps things, with its thread: traces, and what is said in kept sessions.
 *
 * Opened where the configuration has use for it, and then for as long as the bus runs.
 */
import type { BusConfig } from '../../config/bus-config.ts'
import { SessionJournal } from '../../journal/journal.ts'
import type { BusEvent } from '../../kernel/events.ts'
import { inlineHost, threadHost } from '../../trace/engine-host.ts'
import { openTracing, type Tracing } from '../../trace/tracing.ts'
import { VERSION } from '../version.ts'
import type { Log } from './log.ts'
import { JOURNAL, storeEngine } from './store-engine.ts'

/** From its source a thread's entry cannot be loaded by every supported runtime; there the engine shares this thread. */
const isSource = import.meta.url.endsWith('.ts')

export interface BusStore {
  readonly tracing: Tracing
  readonly journal: SessionJournal | undefined
  close(): Promise<void>
}

export async function openBusStore(config: BusConfig, log: Log, tell: (event: BusEvent) => void): Promise<BusStore> {
  const { aio, cluster } = config
  const makeHost = isSource
    ? () => inlineHost(storeEngine())
    : () => threadHost(new URL('./store-thread.js', import.meta.url))
  const tracing = await openTracing({
    store: { ...aio.store, node: cluster?.node, makeHost },
    collector: aio.otlp,
    version: VERSION,
    log: (level, message) => log.write(level, message),
  })
  const port = tracing.store.tenant(JOURNAL)
  const { retentionDays } = aio.store
  const journal = port === undefined ? undefined : new SessionJournal({ port, tell, nowMs: Date.now, retentionDays })
  const close = async (): Promise<void> => {
    await journal?.close()
    await tracing.close()
  }
  return { tracing, journal, close }
}
