/**
 * The store's side of the thread: takes requests in order, works on the database, replies to each exactly once.
 *
 * It decides nothing about failure: it says what went wrong and the front decides. It may run on a thread of its own or in
 * the caller's (tests, commands); it cannot tell.
 */
import { randomUUID } from 'node:crypto'
import { type Database, openDatabase, resultCode, SQLITE, type StoreTenant } from '../host/sqlite.ts'
import type { OtlpOptions } from './export-otlp.ts'
import { type PayloadPolicy, payloadKeeper } from './payload.ts'
import { type Answer, answerQuery, type QueryMethod, type TraceSource } from './query.ts'
import { type PackedBatch, unpackBatch } from './row.ts'
import { prepareDatabase } from './schema.ts'
import { sqlSource } from './sql-source.ts'
import { closeOpenCalls, lockStore, makePrivate, probe, reserveNumbers, sweepOld } from './upkeep.ts'
import { TraceWriter } from './writer.ts'

export interface EngineSettings extends PayloadPolicy {
  readonly path: string
  readonly otlp: OtlpOptions
}

/** What an open store tells about itself: its identity, and how far the ids of recent traces have come. */
export interface Opened {
  readonly busInstance: string
  readonly lastIds: readonly (readonly [traceId: string, maxId: number])[]
}

/** Every request and what it yields. */
export interface EngineCalls {
  open: {
    /** `isFirst`: no call of this process is open, so what is open in the file belongs to a run that has ended. */
    params: { settings: EngineSettings; nowMs: number; isFirst: boolean }
    yields: Opened
  }
  write: { params: { batch: PackedBatch }; yields: undefined }
  query: { params: { method: QueryMethod; params: unknown }; yields: Answer }
  reserve: { params: { day: string; count: number; atLeast: number }; yields: number }
  sweep: { params: { cutoffMs: number }; yields: boolean }
  /** Somebody else who has tables in the file. */
  tenant: { params: { name: string; op: string; params: unknown }; yields: unknown }
  close: { params: Record<string, never>; yields: undefined }
}

export type EngineOp = keyof EngineCalls
export type EngineRequest = { [Op in EngineOp]: { seq: number; op: Op; params: EngineCalls[Op]['params'] } }[EngineOp]
export interface EngineError {
  readonly reason: FailureReason
  readonly message: string
}
export type EngineReply = { seq: number; value: unknown } | { seq: number; error: EngineError }

/** Why a store does not work; the operator is told what to do about each. */
export type FailureReason =
  | 'in_use'
  | 'disk_full'
  | 'disk_error'
  | 'corrupt'
  | 'cannot_open'
  | 'not_ours'
  | 'no_sqlite'
  | 'slow'
  | 'failed'

const REASONS: Record<number, FailureReason> = {
  [SQLITE.busy]: 'in_use',
  [SQLITE.full]: 'disk_full',
  [SQLITE.ioError]: 'disk_error',
  [SQLITE.corrupt]: 'corrupt',
  [SQLITE.notDatabase]: 'corrupt',
  [SQLITE.cannotOpen]: 'cannot_open',
}
const SYSTEM_REASONS: Record<string, FailureReason> = {
  ENOSPC: 'disk_full',
  EDQUOT: 'disk_full',
  NOT_A_PLAIN_FILE: 'not_ours',
  NO_SQLITE: 'no_sqlite',
}

export type Tenants = Readonly<Record<string, StoreTenant>>

const REMEMBERED_TRACES = 10_000

export class Engine {
  #lock: Database | undefined
  #db: Database | undefined
  #writer: TraceWriter | undefined
  #source: TraceSource | undefined
  #otlp: OtlpOptions = {}
  readonly #tenants: Tenants
  /** Opening waits for an import; nothing may overtake it. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(tenants: Tenants = {}) {
    this.#tenants = tenants
  }

  /** Never rejects. */
  serve(request: EngineRequest): Promise<EngineReply> {
    const reply = this.#turn.then(() => this.#answer(request))
    this.#turn = reply
    return reply
  }

  async #answer({ seq, op, params }: EngineRequest): Promise<EngineReply> {
    try {
      const act = this.#acts[op] as (params: unknown) => unknown
      return { seq, value: await act(params) }
    } catch (error) {
      return { seq, error: describeFailure(error) }
    }
  }

  readonly #acts: { [Op in EngineOp]: (params: EngineCalls[Op]['params']) => unknown } = {
    open: (params) => this.#open(params),
    write: ({ batch }) => open(this.#writer).write(unpackBatch(batch)),
    query: ({ method, params }) => answerQuery(open(this.#source), method, params, this.#otlp),
    reserve: ({ day, count, atLeast }) => reserveNumbers(open(this.#db), day, count, atLeast),
    sweep: ({ cutoffMs }) => this.#sweep(cutoffMs),
    tenant: ({ name, op, params }) => open(this.#tenants[name]).serve(open(this.#db), op, params as never),
    close: () => this.#close(),
  }

  async #open({ settings, nowMs, isFirst }: EngineCalls['open']['params']): Promise<Opened> {
    this.#close()
    try {
      makePrivate(settings.path)
      this.#lock = await lockStore(settings.path)
      const db = await openDatabase(settings.path)
      this.#db = db
      prepareDatabase(db, randomUUID)
      for (const tenant of Object.values(this.#tenants)) tenant.prepare(db)
      probe(db)
      if (isFirst) closeOpenCalls(db, nowMs)
      this.#writer = new TraceWriter(db, payloadKeeper(settings))
      this.#source = sqlSource(db)
      this.#otlp = settings.otlp
      return { busInstance: this.#source.busInstance, lastIds: lastIds(db) }
    } catch (error) {
      this.#close()
      throw error
    }
  }

  #sweep(cutoffMs: number): boolean {
    const more = sweepOld(open(this.#db), cutoffMs)
    this.#writer?.forget()
    return more
  }

  #close(): void {
    // Left to itself SQLite waits for the last statement to be collected before it empties its log.
    attempt(() => this.#db?.exec('PRAGMA wal_checkpoint(TRUNCATE)'))
    for (const db of [this.#db, this.#lock]) attempt(() => db?.close())
    this.#db = this.#lock = this.#writer = this.#source = undefined
  }
}

export function describeFailure(error: unknown): EngineError {
  const { code, message } = error as NodeJS.ErrnoException
  const reason = REASONS[resultCode(error) ?? -1] ?? SYSTEM_REASONS[code ?? ''] ?? 'failed'
  return { reason, message: String(message ?? error) }
}

function open<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('the trace store is not open')
  return part
}

function lastIds(db: Database): [string, number][] {
  const rows = db
    .prepare(`SELECT trace_id, max_id FROM traces ORDER BY trace DESC LIMIT ${REMEMBERED_TRACES}`)
    .all() as { trace_id: string; max_id: number }[]
  return rows.map(({ trace_id, max_id }) => [trace_id, max_id])
}

/** For the way out: a disk that failed once may fail again, and there is nothing left to save. */
function attempt(act: () => void): void {
  try {
    act()
  } catch {}
}
