/** The embedded bus in types, and nothing else: what a program may give it, ask it and hear of it. */
import type { EventEmitter } from 'node:events'
import type { BusConnection } from '../client/connection.ts'
import type { ConfigObject } from './config-object.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface StartOptions {
  /** What the configuration file holds, as an object; or the path of a file. */
  readonly config: ConfigObject | string
  /** What relative paths in an object are relative to (default: the working directory of the process). */
  readonly cwd?: string
  /** What is logged, from this level on (default `info`); it is told as `log` events and written nowhere. */
  readonly logLevel?: LogLevel
  /** Let TCP, TLS and HTTP doors listen where other machines can connect. */
  readonly allowUnauthenticated?: boolean
}

export interface LogEntry {
  readonly level: LogLevel
  /** ISO 8601. */
  readonly time: string
  readonly msg: string
  readonly pool?: string
  readonly worker?: number
  readonly [field: string]: unknown
}

export type WorkerNews =
  | { readonly pool: string; readonly what: 'started'; readonly pid: number | undefined }
  | { readonly pool: string; readonly what: 'failed'; readonly reason: string }
  | { readonly pool: string; readonly what: 'ended'; readonly isClean: boolean }

/** Somebody has come through a door, or has gone. */
export interface ClientNews {
  readonly what: 'came' | 'went'
  readonly door: string
  readonly peer: string
}

export interface BusEvents {
  log: [entry: LogEntry]
  worker: [news: WorkerNews]
  client: [news: ClientNews]
  /** The bus has ended, and nothing of it is left. */
  ended: []
}

export interface BusStatus {
  readonly phase: string
  readonly workers: readonly {
    readonly id: number
    readonly pool: string
    readonly state: string
    readonly pid: number | null
    readonly restarts: number
    readonly outstanding: number
    readonly sessions: number
    readonly last_error?: string
  }[]
  readonly clients: number
  readonly sessions: number
  readonly outstanding: number
  readonly queue_bytes: number
  readonly uptime_sec: number
  readonly addresses: readonly string[]
  readonly [field: string]: unknown
}

export interface EmbeddedBus extends EventEmitter<BusEvents> {
  /** Where clients connect: `unix:/path`, `tcp:127.0.0.1:7400`, with the port that was really bound. */
  readonly addresses: readonly string[]
  /** Resolves when the bus has ended, by `stop()` or by whoever may stop it over its control socket. */
  readonly ended: Promise<void>
  /** What `stdio-bus status --json` shows. */
  status(): BusStatus
  /** A client of this program itself, without a socket. */
  connect(options?: { readonly pool?: string }): Promise<BusConnection>
  /** Takes another configuration, or reads its file again; all or nothing. Fails with a sentence, and the old one stays. */
  reload(config?: ConfigObject): Promise<void>
  /** Ends it: what is owed is waited for, at most `drain_timeout_sec`; with `atOnce` nothing is. */
  stop(options?: { readonly atOnce?: boolean }): Promise<void>
}
