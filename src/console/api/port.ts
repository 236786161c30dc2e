/** All that the API of the console knows of the bus, as types. */

import type { KeptRow, KeptWish, OpenQuestion, PassingRow } from '../../kernel/kept/session-view.ts'
import type { Identity } from '../../kernel/rights.ts'
import type { SpanCounts } from '../../kernel/traffic.ts'
import type { Admitted, Judgement } from '../../web/port.ts'
import type { WebRequest } from '../../web/web-request.ts'
import type { Status } from '../status.ts'
import type { BusClient } from './bus-client.ts'
import type { TraceFormat } from './trace-routes.ts'

/** A line of the log, as JSON, and its number. */
export interface LogLine {
  readonly seq: number
  readonly line: string
}

/** Puts a question to the trace store; fails with what it is refused for. */
export type TraceQuery = (method: 'list' | 'get' | 'export', params: object) => Promise<unknown>

export type { KeptRow as SessionRow, OpenQuestion } from '../../kernel/kept/session-view.ts'

/** What somebody may see of sessions. */
export interface SessionsPort {
  page(
    identity: Identity,
    wish: KeptWish,
  ): { readonly sessions: readonly KeptRow[]; readonly next: string | undefined } | undefined
  one(identity: Identity, session: string, pool?: string): KeptRow | undefined
  live(identity: Identity): { readonly kept: readonly KeptRow[]; readonly passing: readonly PassingRow[] }
  openQuestions(): readonly OpenQuestion[]
  /** Several clients share the workers of the pool. */
  isShared(pool: string): boolean
}

/** Somebody of the access file, or who is there without one. */
export interface PrincipalView {
  readonly name: string
  readonly role: string | null
  readonly pools: readonly string[] | null
  /** In the access file, so that it can be revoked. */
  readonly is_listed: boolean
  readonly tokens: readonly { readonly expires: string | null }[]
  /** How it proved who it is, the last time. */
  readonly via: string | null
  readonly connections: number
  readonly pending: number
  readonly refused: number
  /** When it last came, left or was refused; null: not since the bus was started. */
  readonly last_seen: string | null
}

/** A pool, for whoever may use it. */
export interface PoolView {
  readonly id: string
  /** `mcp`, `acp`; null: its workers have not shown it yet. */
  readonly protocol: string | null
  readonly ready: number
  /** Its sessions outlive their clients (contract 12). */
  readonly keeps_sessions: boolean
  /** Where its processes run; null: it has none on this machine. */
  readonly cwd: string | null
}

/** A value of the configuration and where it comes from. */
export interface SettingView {
  readonly path: string
  readonly value: unknown
  readonly origin: string
}

export interface ConfigurationView {
  readonly file: string
  readonly settings: readonly SettingView[]
  readonly findings: readonly { readonly severity: string; readonly place: string; readonly text: string }[]
  /** What a reload would change, or why it would be refused. */
  readonly pending: { readonly changed: readonly string[]; readonly problem: string | null }
}

export interface FileChange {
  readonly changed: readonly string[]
  /** Why it could not be loaded. */
  readonly mistake: string | null
}

export interface Expiry {
  readonly what: string
  readonly endsAtMs: number
  readonly todo: string
  /** Below `/console/`. */
  readonly link: string
}

export interface ConsolePort {
  readonly version: string
  status(): Status
  history(pool: string): readonly SpanCounts[]
  /** The pools of the configuration. */
  pools(): readonly string[]
  poolViews(): readonly PoolView[]
  /** Its workers are reached at a URL. */
  isRemote(pool: string): boolean
  /** A longer message is refused. */
  readonly maxMessageBytes: () => number
  /** Who shows this token (contract 15.3), slowed as at every door; undefined: no token holds here. */
  judge(token: string, web: WebRequest): Promise<Judgement>
  /** A wrong code was shown: settles when that may be said (contract 9.25). */
  refuse(web: WebRequest): Promise<void>
  stillHolds(admitted: Admitted): boolean
  /** Reads the configuration again; fails with what is wrong with it. */
  reload(): Promise<unknown>
  /** One worker starts anew; what it owes is answered with an error. */
  restart(worker: number): void
  /** The last lines of the log, as JSON, and every one from now on until the returned function is called. */
  logs(): readonly LogLine[]
  followLogs(follower: (seq: number, line: string) => void): () => void
  /** The traces that somebody may see; undefined: none are kept. */
  traces(identity: Identity): TraceQuery | undefined
  /** Calls back whenever a call begins or ends, until what it returns is called. */
  followTraces(changed: () => void): () => void
  readonly traceFormats: Readonly<Record<string, TraceFormat>>
  readonly sessions: SessionsPort
  /** A client of the bus with somebody's rights; `isQuiet`: it only looks on. */
  openClient(admitted: Admitted, peer: string, isQuiet: boolean, pool?: string): BusClient
  /** undefined: everybody may everything, there is no access file. */
  principals(): readonly PrincipalView[] | undefined
  /** As `token rm` does; false: there is no such principal. */
  revoke(name: string): Promise<boolean>
  configuration(): Promise<ConfigurationView>
  /** How the configuration on disk differs from the one that runs, as it was a moment ago. */
  fileChange(): FileChange
  /** What holds until a day that is known: certificates of the doors, tokens. */
  expiries(): readonly Expiry[]
  /** What somebody did here, for the audit log (contract 15.5). */
  audit(identity: Identity, method: string, outcome: string): void
}
