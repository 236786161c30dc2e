/**
 * A bus inside a program of somebody else: what the two lend each other.
 *
 * The program keeps its signals, its exit and the folder of its user; the bus tells what becomes of its clients and
 * workers, and can be asked and told what the control socket of a daemon can.
 */
import type { Duplex } from 'node:stream'
import type { ConfigChanges } from '../../config/changes.ts'
import type { Reading } from '../../config/read.ts'
import type { Status } from '../../console/status.ts'
import type { Door, PoolId } from '../../kernel/vocabulary.ts'
import type { ConnectionInfo } from '../../transports/listener.ts'
import type { WorkerEnd } from './worker-end.ts'

/** The program around the bus. */
export interface Embedding {
  readonly read: () => Promise<Reading>
  /** The bus serves. */
  readonly ready: (bus: RunningBus) => void
  readonly tell: (news: BusNews) => void
}

/** What can be asked of a bus that runs, by the program in which it does. */
export interface RunningBus {
  readonly addresses: readonly string[]
  status(): Status
  reload(): Promise<Reloaded>
  /** Gently: what is owed is waited for. Else everything ends at once. */
  stop(how: 'gently' | 'at-once'): void
  /** Takes a client of the program itself, which may do what a client on a Unix socket may. */
  accept(stream: Duplex, pool: PoolId | undefined): void
}

/** What becomes of clients and workers, for whoever wants to follow it. */
export type BusNews =
  | { readonly type: 'worker'; readonly pool: PoolId; readonly what: 'started'; readonly pid: number | undefined }
  | { readonly type: 'worker'; readonly pool: PoolId; readonly what: 'failed'; readonly reason: string }
  | { readonly type: 'worker'; readonly pool: PoolId; readonly what: 'ended'; readonly isClean: boolean }
  | { readonly type: 'client'; readonly what: 'came' | 'went'; readonly door: Door; readonly peer: string }

export interface Reloaded {
  readonly reloaded: true
  readonly pools: readonly PoolId[]
  readonly changes: ConfigChanges
}

export function followWorker(end: WorkerEnd, pool: PoolId, tell: Embedding['tell']): WorkerEnd {
  const type = 'worker'
  end.on('spawned', ({ pid }) => tell({ type, pool, what: 'started', pid: typeof pid === 'number' ? pid : undefined }))
  end.on('failed', ({ reason }) => tell({ type, pool, what: 'failed', reason }))
  end.on('exited', ({ isClean }) => tell({ type, pool, what: 'ended', isClean }))
  return end
}

export function followClient(socket: Duplex, { door, peer }: ConnectionInfo, tell: Embedding['tell']): void {
  tell({ type: 'client', what: 'came', door, peer })
  socket.once('close', () => tell({ type: 'client', what: 'went', door, peer }))
}
