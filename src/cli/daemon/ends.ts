/**
 * The ends of peers in the shell, as the daemon joins them to the kernel: what it may do to a client and to a worker, and where
 * workers come from. What those ends are made of is in the files that make them.
 */
import type { Action, WorkerGeneration } from '../../kernel/events.ts'
import type { Identity } from '../../kernel/rights.ts'
import type { CallCause, Door } from '../../kernel/vocabulary.ts'
import type { Tell } from './client-link.ts'
import type { WorkerEnd } from './worker-end.ts'

/** Starts a worker; `failed` on what it returns tells why it could not. */
export type Start = () => WorkerEnd

/**
 * The source of workers: starts the one that is wanted, or brings its program first; a rejection tells why it cannot be had.
 */
export type Launcher = (wanted: Spawn) => WorkerEnd | Promise<Start> | JoinWorker

/** The shell's end of a worker, as it is joined to the kernel. */
export interface WorkerPeer {
  /** Returns how much was not taken yet; of the rest the kernel is told. */
  write(buffers: readonly Buffer[]): number
  passOn(via: readonly string[]): void
  pause(): void
  resume(): void
  stop(how: 'end' | 'kill' | 'clear'): Promise<void>
  kill(): Promise<void>
}

/** Makes a worker that is no process and no stream of the runtime. */
export type JoinWorker = { readonly join: (of: WorkerGeneration, tell: Tell) => WorkerPeer }

/** The shell's end of a client, as it is joined to the kernel. */
export interface ClientPeer {
  write(buffers: readonly Buffer[]): number
  pause(): void
  resume(): void
  close(how: 'flush' | 'drop'): void
}

export type Spawn = Extract<Action, { do: 'open-worker' }>

/** What is known of a connection that comes: its door, and who it is or that it must prove it. */
export interface Entrance {
  readonly door: Door
  readonly isLocal: boolean
  readonly identity?: Identity
  readonly mustProve?: true
  readonly from?: string
  /** The buses through which it came. */
  readonly via?: readonly string[]
  /** An agent of another node calls. */
  readonly cause?: CallCause
}
