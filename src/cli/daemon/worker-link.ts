/**
 * The shell's end of one worker process: its pipes, joined to the kernel by events and actions.
 */
import type { BusEvent } from '../../kernel/events.ts'
import type { WorkerId } from '../../kernel/vocabulary.ts'
import type { WorkerProcess } from '../../process/worker-process.ts'
import { FairReader } from './fair-reader.ts'
import { type Writer, writerOf } from './handles.ts'
import { UNAVAILABLE } from './launches.ts'

/** Makes lines of a chunk of output. */
export type Framing = (chunk: Buffer) => Buffer

/** One that is told to go, one that is stuck, and one whose group is all that is left of it. */
const ENDS = {
  end: (process: WorkerProcess) => process.stop('end'),
  // Whoever has closed its stdin is leaving by itself, and may have last words (contract 7.1).
  kill: (process: WorkerProcess) => (process.stdin.errored ? process.stop('kill') : process.terminate('kill')),
  clear: (process: WorkerProcess) => process.kill('cleared'),
} as const

export class WorkerLink {
  readonly write: Writer
  readonly generation: number
  readonly #process: WorkerProcess
  readonly #stdout: FairReader

  constructor(
    worker: WorkerId,
    generation: number,
    process: WorkerProcess,
    tell: (event: BusEvent) => void,
    framing?: Framing,
  ) {
    this.generation = generation
    this.#process = process
    const of = { worker, generation }
    this.write = writerOf(process.stdin, () => tell({ type: 'worker-wrote', ...of, pendingBytes: 0 }))
    process.on('spawned', (pid) => tell({ type: 'worker-opened', ...of, facts: { pid } }))
    process.on('failed', ({ code, reason }) =>
      tell({ type: 'worker-failed', ...of, why: reason, isFinal: code === UNAVAILABLE }),
    )
    process.on('exited', ({ code, signal }) =>
      tell({ type: 'worker-ended', ...of, isClean: code === 0, how: { exitCode: code, signal } }),
    )
    // A call of an agent costs far more than its bytes: one that calls in a flood has its turns like a client.
    this.#stdout = new FairReader(process.stdout, (chunk) => {
      const bytes = framing === undefined ? chunk : framing(chunk)
      if (bytes.length > 0) tell({ type: 'worker-received', worker, generation, bytes })
    })
    this.#stdout.stream.on('error', () => {})
    this.#stdout.stream.once('close', () =>
      this.#stdout.finish(() => tell({ type: 'worker-silent', ...of, pipe: 'stdout' })),
    )
    this.#stdout.resume()
    process.stdin.on('error', () => tell({ type: 'worker-silent', ...of, pipe: 'stdin' }))
  }

  pause(): void {
    this.#stdout.pause()
  }

  resume(): void {
    this.#stdout.resume()
  }

  /** Resolves when nobody of its group is left. */
  async stop(how: keyof typeof ENDS): Promise<void> {
    await ENDS[how](this.#process)
    // Somebody who has left the group may hold the pipe for ever.
    if (how === 'clear') this.#stdout.stream.destroy()
  }

  kill(): Promise<void> {
    return this.#process.kill('the bus ends at once')
  }
}
