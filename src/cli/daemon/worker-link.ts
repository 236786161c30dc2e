/**
 * The shell's end of one worker process: its pipes, joined to the kernel by events and actions.
 */
import type { BusEvent } from '../../kernel/events.ts'
import type { WorkerId } from '../../kernel/vocabulary.ts'
import type { WorkerProcess } from '../../process/worker-process.ts'
import { Channel } from './channel.ts'
import { UNAVAILABLE } from './launches.ts'

/** Makes lines of a chunk of output. */
export type Framing = (chunk: Buffer) => Buffer

/** One that is told to go, one that is stuck, and one whose group is all that is left of it. */
const ENDS = {
  end: (process: WorkerProcess) => process.stop('end'),
  // Whoever has closed its stdin is leaving by itself, and may have last words (contract 7.1).
  kill: (process: WorkerProcess) => (process.stdin.errored ? process.stop('kill') : process.terminate('kill')),
  bury: async (process: WorkerProcess) => {
    await process.kill('buried')
    // Somebody who has left the group may hold the pipe for ever.
    process.stdout.destroy()
  },
} as const

export class WorkerLink {
  readonly channel: Channel
  readonly generation: number
  readonly #process: WorkerProcess

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
    this.channel = new Channel(process.stdin, () => tell({ type: 'worker-wrote', ...of, pendingBytes: 0 }))
    process.on('spawned', (pid) => tell({ type: 'worker-spawned', ...of, pid }))
    process.on('failed', ({ code, reason }) =>
      tell({ type: 'worker-failed', ...of, why: reason, isFinal: code === UNAVAILABLE }),
    )
    process.on('exited', ({ code, signal }) => tell({ type: 'worker-exited', ...of, code, signal }))
    process.stdout.on('data', (chunk: Buffer) => {
      const bytes = framing === undefined ? chunk : framing(chunk)
      if (bytes.length > 0) tell({ type: 'worker-received', ...of, bytes })
    })
    process.stdout.once('close', () => tell({ type: 'worker-silent', ...of, pipe: 'stdout' }))
    process.stdin.on('error', () => tell({ type: 'worker-silent', ...of, pipe: 'stdin' }))
  }

  pause(): void {
    this.#process.stdout.pause()
  }

  resume(): void {
    this.#process.stdout.resume()
  }

  /** Resolves when nobody of its group is left. */
  stop(how: keyof typeof ENDS): Promise<void> {
    return ENDS[how](this.#process)
  }

  kill(): Promise<void> {
    return this.#process.kill('the bus ends at once')
  }
}
