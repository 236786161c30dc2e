/**
 * What a source of workers gives: somebody who takes lines and gives lines, whatever is behind it. Types only.
 *
 * A process is one, an upstream on another machine is one; the shell joins either to the kernel and knows no difference.
 * Success and failure are told by events, never before whoever asked for it could listen. `stdin` and `stdout` are of use
 * from `spawned` on, and may be one and the same stream. After `failed` or `exited` nothing is told any more.
 */
import type { Duplex, Writable } from 'node:stream'
import type { Again, Facts } from '../../kernel/events.ts'

export interface WorkerFailure {
  /** A sentence for people: what is wrong and what to do. */
  readonly reason: string
  readonly again?: Again
}

export interface WorkerEnding {
  /** It ended as it was meant to. */
  readonly isClean: boolean
  readonly how: Facts
  readonly again?: Again
}

export interface WorkerEnd {
  readonly stdin: Writable
  readonly stdout: Duplex

  on(event: 'spawned', listener: (facts: Facts) => void): unknown
  on(event: 'failed', listener: (failure: WorkerFailure) => void): unknown
  /** What it wrote may still be in `stdout`, and what it started may still live. */
  on(event: 'exited', listener: (ending: WorkerEnding) => void): unknown
  /** A line for people, printable, and where it comes from, if that is not stderr. */
  on(event: 'diagnostic', listener: (line: string, stream?: string) => void): unknown

  /** A client that came through these buses uses it, where it leads on to others (contract 11.6). */
  passOn?(via: readonly string[]): void
  /** Asks it to end, then makes it; resolves when nothing of it is left. */
  stop(reason: string): Promise<void>
  /** The same for one that does not read any more. */
  terminate(reason: string): Promise<void>
  /** Ends it before this returns. */
  kill(reason: string): Promise<void>
}
