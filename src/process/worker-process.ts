/**
 * One process of a worker: its pipes as they are, what it says on stderr as lines, and its end.
 *
 * It frames nothing and decides nothing: when to stop and whether to start another is the kernel's. Its group is announced
 * to the watch as long as anybody is left in it. The first reason to stop wins and is kept.
 */
import type { ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { DiagnosticLines } from './diagnostics.ts'
import type { Exit, SpawnFailure } from './launch.ts'
import { asSocket, type WorkerPipes } from './pipes.ts'
import { GroupEnd, STOP_TIMING, type StopTiming } from './stop.ts'

/** Hears which groups are to be ended if the bus itself is killed; the warden is one. */
export interface GroupWatch {
  /** A process is about to be started: the variables that let it be found before its group is known. */
  expect(): Readonly<Record<string, string>>
  add(pgid: number): void
  remove(pgid: number): void
}

export interface WorkerOptions {
  readonly watch?: GroupWatch
  readonly timing?: StopTiming
}

export interface WorkerEvents {
  spawned: [facts: { readonly pid: number }]
  failed: [failure: SpawnFailure]
  /** The process has ended; what it wrote may still be in `stdout`, and its group may still live. */
  exited: [exit: Exit]
  /** Nobody of its group is left. */
  gone: []
  /** A line of stderr, printable. */
  diagnostic: [line: string]
}

/** A process that runs, and our ends of its pipes. */
export interface Running extends WorkerPipes {
  readonly child: ChildProcess
  readonly pid: number
}

export class WorkerProcess extends EventEmitter<WorkerEvents> {
  /** Also the number of its process group; undefined if it could not be started. */
  readonly pid: number | undefined
  readonly stdin: Socket
  readonly stdout: Socket
  readonly #end: GroupEnd | undefined
  #stopReason: string | undefined

  constructor(running: Running | undefined, options: WorkerOptions = {}) {
    super()
    this.pid = running?.pid
    this.stdin = running?.stdin ?? asSocket(undefined)
    this.stdout = running?.stdout ?? asSocket(undefined)
    if (running === undefined) return
    const { child, pid, stderr } = running
    this.#end = new GroupEnd(pid, this.stdin, options.timing ?? STOP_TIMING)
    this.#watch(pid, options.watch)
    this.#follow(child, this.#end)
    this.#readDiagnostics(stderr)
    process.nextTick(() => this.emit('spawned', { pid }))
  }

  /** Why it was told to stop, if it was. */
  get stopReason(): string | undefined {
    return this.#stopReason
  }

  /** Ends stdin, then SIGTERM, then SIGKILL; resolves when the whole group is gone. */
  async stop(reason: string): Promise<void> {
    this.#stopReason ??= reason
    this.#end?.begin()
    await this.#end?.gone
  }

  /** SIGTERM to the whole group, sent before this returns, then SIGKILL: for one that does not read any more. */
  async terminate(reason: string): Promise<void> {
    this.#stopReason ??= reason
    this.#end?.terminate()
    await this.#end?.gone
  }

  /** SIGKILL to the whole group, sent before this returns; resolves when it is gone. */
  async kill(reason: string): Promise<void> {
    this.#stopReason ??= reason
    this.#end?.kill()
    await this.#end?.gone
  }

  #watch(pgid: number, watch: GroupWatch | undefined): void {
    watch?.add(pgid)
    this.#end?.gone.then(() => {
      watch?.remove(pgid)
      this.emit('gone')
    })
  }

  #follow(child: ChildProcess, end: GroupEnd): void {
    child.once('exit', (code, signal) => {
      // The runtime does so for the pipes that it has made.
      this.stdin.destroy()
      if (!this.stdout.readableFlowing) keepUnread(this.stdout)
      end.leaderExited()
      this.emit('exited', { isClean: code === 0, how: { exitCode: code, signal } })
    })
  }

  /** Always flowing: a worker never waits for our log. */
  #readDiagnostics(stderr: Readable): void {
    const lines = new DiagnosticLines((line) => this.emit('diagnostic', line))
    stderr.on('data', (chunk: Buffer) => lines.push(chunk))
    stderr.on('error', () => {})
    stderr.once('close', () => lines.end())
    // A process that has left the group may hold the pipe for ever.
    this.#end?.gone.then(() => stderr.destroy())
  }
}

/** The runtime lets the pipes of a child that has exited flow; who paused them, or does not read yet, loses nothing. */
function keepUnread(stdout: Socket): void {
  // Two ticks: the runtime's own comes after the first and takes effect after the second.
  process.nextTick(() => process.nextTick(() => stdout.pause()))
}
