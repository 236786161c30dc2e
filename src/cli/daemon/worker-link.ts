/**
 * The shell's end of one worker, a process or another: its streams, joined to the kernel by events and actions.
 */
import type { Again, WorkerGeneration } from '../../kernel/events.ts'
import type { WorkerId } from '../../kernel/vocabulary.ts'
import type { Tell } from './client-link.ts'
import { FairReader } from './fair-reader.ts'
import { type Writer, writerOf } from './handles.ts'
import type { WorkerEnd } from './worker-end.ts'

/** Makes lines of a chunk of output. */
export type Framing = (chunk: Buffer) => Buffer

/** One that is told to go, one that is stuck, and one whose group is all that is left of it. */
const ENDS = {
  end: (end: WorkerEnd) => end.stop('end'),
  // Whoever has closed its stdin is leaving by itself, and may have last words (contract 7.1).
  kill: (end: WorkerEnd) => (end.stdin.errored ? end.stop('kill') : end.terminate('kill')),
  clear: (end: WorkerEnd) => end.kill('cleared'),
} as const

export class WorkerLink {
  readonly generation: number
  readonly #of: { readonly worker: WorkerId; readonly generation: number }
  readonly #end: WorkerEnd
  readonly #tell: Tell
  #write: Writer = () => 0
  #stdout: FairReader | undefined
  #isPaused = false

  constructor(of: WorkerGeneration, end: WorkerEnd, tell: Tell, framing?: Framing) {
    this.generation = of.generation
    this.#of = of
    this.#end = end
    this.#tell = tell
    end.on('spawned', (facts) => {
      this.#join(framing)
      tell({ type: 'worker-opened', ...of, facts })
    })
    end.on('failed', ({ reason, again }) => tell({ type: 'worker-failed', ...of, why: reason, ...when(again) }))
    end.on('exited', ({ isClean, how, again }) => tell({ type: 'worker-ended', ...of, isClean, how, ...when(again) }))
  }

  /** Nothing was written before it could be spoken to. */
  write(buffers: readonly Buffer[]): number {
    return this.#write(buffers)
  }

  #join(framing: Framing | undefined): void {
    const of = this.#of
    const { stdin, stdout } = this.#end
    const tell = this.#tell
    this.#write = writerOf(stdin, () => tell({ type: 'worker-wrote', ...of, pendingBytes: 0 }))
    // A call of an agent costs far more than its bytes: one that calls in a flood has its turns like a client.
    const reader = new FairReader(stdout, (chunk, hasMore) => {
      const bytes = framing === undefined ? chunk : framing(chunk)
      if (bytes.length > 0) tell({ type: 'worker-received', ...of, bytes }, hasMore)
    })
    this.#stdout = reader
    reader.stream.on('error', () => {})
    reader.stream.once('close', () => reader.finish(() => tell({ type: 'worker-silent', ...of, pipe: 'stdout' })))
    if (!this.#isPaused) reader.resume()
    stdin.on('error', () => tell({ type: 'worker-silent', ...of, pipe: 'stdin' }))
  }

  passOn(via: readonly string[]): void {
    this.#end.passOn?.(via)
  }

  pause(): void {
    this.#isPaused = true
    this.#stdout?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#stdout?.resume()
  }

  /** Resolves when nobody of its group is left. */
  async stop(how: keyof typeof ENDS): Promise<void> {
    await ENDS[how](this.#end)
    // Somebody who has left the group may hold the pipe for ever.
    if (how === 'clear') this.#stdout?.stream.destroy()
  }

  kill(): Promise<void> {
    return this.#end.kill('the bus ends at once')
  }
}

function when(again: Again | undefined): { readonly again?: Again } {
  return again === undefined ? {} : { again }
}
