/**
 * Ends a worker and everything in its process group: end of stdin, SIGTERM, SIGKILL, with a pause between two steps
 * (contract 7.4), and what a worker leaves behind when it exits by itself (7.1). Who does not listen any more is not
 * talked to: it may begin with a later step.
 *
 * Steps go forwards only, so asking twice changes nothing. A group is signalled only while it is known to be there: its
 * number belongs to us as long as one of its members is there, and not a moment longer.
 */
import type { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { FIXED } from '../kernel/limits.ts'
import { isGroupAlive, killGroup } from './group.ts'

export interface StopTiming {
  /** The pause between two steps. */
  readonly stepMs: number
  /** How long after SIGKILL the group is waited for; a process stuck in the system may never go. */
  readonly lastMs: number
}

export const STOP_TIMING: StopTiming = { stepMs: FIXED.stopStepMs, lastMs: 1_000 }

const LOOK_MS = 25

type Step = 'stdin' | 'term' | 'kill' | 'gone'

const NEXT = { stdin: 'term', term: 'kill', kill: 'gone' } as const
const ORDER: readonly Step[] = ['stdin', 'term', 'kill', 'gone']

/** The way of one worker's group to its end. */
export class GroupEnd {
  /** Resolves when no process of the group is left, or when nothing more can be done about it. */
  readonly gone: Promise<void>
  readonly #pgid: number
  readonly #timing: StopTiming
  readonly #acts: Readonly<Record<Step, () => void>>
  #step: Step | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(pgid: number, stdin: Writable, timing: StopTiming = STOP_TIMING) {
    this.#pgid = pgid
    this.#timing = timing
    let resolveGone = () => {}
    this.gone = new Promise((resolve) => {
      resolveGone = resolve
    })
    this.#acts = {
      stdin: () => stdin.end(),
      term: () => this.#signal('SIGTERM'),
      kill: () => this.#signal('SIGKILL'),
      gone: resolveGone,
    }
  }

  /** Begins with the end of stdin and goes on from there until the group is gone. */
  begin(): void {
    this.#enter('stdin')
  }

  /** Begins with SIGTERM, sent before this returns, and goes on from there. */
  terminate(): void {
    this.#enter('term')
  }

  /** Goes straight to SIGKILL; the signal is sent before this returns. */
  kill(): void {
    this.#enter('kill')
  }

  /** The worker itself has exited; who is left of its group is ended. */
  leaderExited(): void {
    if (this.#step === 'gone') return
    this.#signal(0)
    this.#enter('term')
    void this.#lookUntilEmpty()
  }

  async #lookUntilEmpty(): Promise<void> {
    while (this.#step !== 'gone') {
      await sleep(LOOK_MS)
      if (!(await isGroupAlive(this.#pgid))) this.#enter('gone')
    }
  }

  #enter(step: Step): void {
    if (this.#step !== undefined && ORDER.indexOf(step) <= ORDER.indexOf(this.#step)) return
    this.#step = step
    clearTimeout(this.#timer)
    if (step !== 'gone') this.#timer = setTimeout(() => this.#enter(NEXT[step]), this.#pauseMs(step))
    this.#acts[step]()
  }

  #signal(signal: NodeJS.Signals | 0): void {
    if (!killGroup(this.#pgid, signal)) this.#enter('gone')
  }

  #pauseMs(step: Step): number {
    return step === 'kill' ? this.#timing.lastMs : this.#timing.stepMs
  }
}
