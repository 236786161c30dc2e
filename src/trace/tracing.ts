/**
 * The whole trace room, assembled: a store, and a collector that gets every call live when one is configured.
 */
import { LiveExport } from './live-export.ts'
import { OtlpSender } from './otlp-sender.ts'
import { openTraceStore, type TraceStore } from './store.ts'
import { type StoreOptions, settingsOf } from './store-settings.ts'

export interface CollectorOptions {
  readonly endpoint: string
  readonly headers?: Readonly<Record<string, string>>
  readonly payloads?: boolean
  readonly compat?: boolean
}

export interface TracingOptions {
  readonly store: StoreOptions
  readonly collector?: CollectorOptions | undefined
  readonly version: string
  log(level: 'info' | 'warn' | 'error', message: string): void
}

export interface Tracing {
  readonly store: TraceStore
  close(): Promise<void>
}

/** Never rejects: a store or a collector that does not work is a line in the log. */
export async function openTracing({ store: wanted, collector, version, log }: TracingOptions): Promise<Tracing> {
  const otlp = { version, payloads: collector?.payloads ?? false, compat: collector?.compat ?? false }
  const store = await openTraceStore({
    ...wanted,
    otlp,
    onState: ({ state, reason, message }) => {
      if (state === 'ok') log('info', message)
      else log(reason === 'in_use' ? 'warn' : 'error', message)
    },
  })
  if (collector === undefined) return { store, close: () => store.close() }

  const sender = new OtlpSender(
    { ...collector, ...otlp, onState: ({ state, message }) => log(state === 'ok' ? 'info' : 'warn', message) },
    () => store.ids.busInstance,
  )
  const { payloadBytes, redact } = settingsOf(wanted)
  const live = new LiveExport(store.ids, (span) => sender.add(span), { ...otlp, payloadBytes, redact })
  const leave = store.follow(live.take)
  const close = async (): Promise<void> => {
    leave()
    live.close()
    await Promise.all([sender.close(), store.close()])
  }
  return { store, close }
}
