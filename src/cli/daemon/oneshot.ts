/**
 * Starts the processes of one-shot agents: one for each call, ended with its whole group when it is over.
 *
 * It counts and matches nothing; how many run at a time is decided by whoever asks for them.
 */
import type { OneshotEnd, OneshotProcess, SpawnOneshot } from '../../aio/port.ts'
import type { PoolId } from '../../kernel/vocabulary.ts'
import type { WorkerProcess } from '../../process/worker-process.ts'
import type { Log } from './log.ts'

const STDERR_TAIL_CHARACTERS = 4_096

export class Oneshots {
  readonly #start: (pool: PoolId, client: number | undefined) => WorkerProcess
  readonly #log: Log
  readonly #running = new Map<WorkerProcess, PoolId>()

  constructor(start: (pool: PoolId, client: number | undefined) => WorkerProcess, log: Log) {
    this.#start = start
    this.#log = log
  }

  readonly spawn: SpawnOneshot = (pool, signal, client) => {
    const process = this.#start(pool, client)
    this.#running.set(process, pool)
    const end = (): void => void process.kill('its call is over')
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    const ended = this.#follow(pool, process).finally(() => {
      signal.removeEventListener('abort', end)
      this.#running.delete(process)
    })
    return new Oneshot(process, ended)
  }

  /** How many processes of the pool run now. */
  count(pool: PoolId): number {
    let count = 0
    for (const of of this.#running.values()) if (of === pool) count += 1
    return count
  }

  async killAll(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((process) => process.kill('the bus ends')))
  }

  #follow(pool: PoolId, process: WorkerProcess): Promise<OneshotEnd> {
    let stderrTail = ''
    process.on('diagnostic', (line) => {
      stderrTail = `${stderrTail}${line}\n`.slice(-STDERR_TAIL_CHARACTERS)
      this.#log.write('info', line, { pool, pid: process.pid, stream: 'stderr' })
    })
    return new Promise((resolve) => {
      process.once('failed', ({ reason }) => resolve({ code: null, signal: null, startError: reason, stderrTail }))
      process.once('exited', ({ how: { exitCode: code, signal } }) => {
        // What it started goes with it; its last words on stderr are read until then.
        void process.kill('it has answered').then(() => setImmediate(() => resolve({ code, signal, stderrTail })))
      })
    })
  }
}

class Oneshot implements OneshotProcess {
  readonly worker: string
  readonly stdout: AsyncIterable<Uint8Array>
  readonly ended: Promise<OneshotEnd>
  readonly #process: WorkerProcess

  constructor(process: WorkerProcess, ended: Promise<OneshotEnd>) {
    this.worker = `pid.${process.pid ?? 0}`
    this.stdout = process.stdout
    this.ended = ended
    this.#process = process
  }

  send(input: string): void {
    this.#process.stdin.end(input)
  }
}
