/**
 * The shell's end of a worker whose program is still being brought to this machine: there is no process yet.
 *
 * Nothing can be written to it or read from it. It can be given up, which the kernel is told like any other failure to
 * start; what is being brought goes on being brought, for the next one who wants it.
 */
import type { BusEvent } from '../../kernel/events.ts'
import type { WorkerId } from '../../kernel/vocabulary.ts'

export class PendingWorker {
  readonly #fail: (why: string) => void
  #isOver = false

  constructor(worker: WorkerId, generation: number, tell: (event: BusEvent) => void) {
    this.#fail = (why) => tell({ type: 'worker-failed', worker, generation, why })
  }

  /** True when the program, now that it is there, is still wanted. */
  finish(): boolean {
    const isWanted = !this.#isOver
    this.#isOver = true
    return isWanted
  }

  fail(why: string): void {
    if (this.finish()) this.#fail(why)
  }

  write(): number {
    return 0
  }

  /** What it is to be told it is told at its start. */
  passOn(): void {}

  pause(): void {}

  resume(): void {}

  async stop(): Promise<void> {
    // The kernel is in the middle of an event.
    setImmediate(() => this.fail('it was ended before it could be started'))
  }

  async kill(): Promise<void> {
    this.finish()
  }
}
