/**
 * What the shell adds to a status: the last telling line each worker wrote to stderr, what its process uses of the machine, and
 * how fast it is asked; and who is there, one by one.
 *
 * Rates are between two looks. Whoever looks first, or after a long time, gets the mean of the life of the process, or, if
 * it wants to wait, the mean of a moment. Nobody looking: nothing is read.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Status, WorkerStatus } from '../../console/status.ts'
import type { Roll } from '../../kernel/roll.ts'
import { readUsage, type Usage } from '../../process/usage.ts'
import { isTelling } from './telling-line.ts'

/** Two looks are compared if they are this far apart. */
const MIN_APART_MS = 200
const MAX_APART_MS = 15_000
const MOMENT_MS = 250
const MAX_LINE_CHARS = 1_000

interface Look {
  readonly atMs: number
  readonly generation: number
  readonly requests: number
  readonly cpuSec: number | undefined
}

interface Looked {
  readonly atMs: number
  readonly workers: ReadonlyMap<number, Look>
}

export interface StatusSource {
  status(): Status
  roll(): Roll
}

export class StatusDetails {
  readonly #source: StatusSource
  readonly #lastLines = new Map<number, string>()
  /** The latest, and the one before it that is far enough away. */
  #latest: Looked | undefined
  #before: Looked | undefined

  constructor(source: StatusSource) {
    this.#source = source
  }

  /** A worker has written a line to stderr. */
  heard(worker: number, line: string): void {
    if (!isTelling(line) && this.#lastLines.has(worker)) return
    this.#lastLines.set(worker, line.slice(0, MAX_LINE_CHARS))
  }

  /** At once, and so without what the system would have to be asked for. */
  withLastLines(status: Status): Status {
    const workers = status.workers.map((worker) => {
      const line = this.#lastLines.get(worker.id)
      return line === undefined ? worker : { ...worker, last_stderr: line }
    })
    return { ...status, workers }
  }

  async take({ mayWait = false } = {}): Promise<Status> {
    if (mayWait && !this.#hasLookedLately()) {
      await this.#look(this.#source.status())
      await sleep(MOMENT_MS)
    }
    const status = this.#source.status()
    const usages = await this.#look(status)
    const { pools, client_list, session_list } = this.#source.roll()
    const workers = status.workers.map((worker) => this.#detail(worker, usages.get(worker.id)))
    return { ...status, workers, pools, client_list, session_list }
  }

  #hasLookedLately(): boolean {
    const apartMs = performance.now() - (this.#latest?.atMs ?? Number.NEGATIVE_INFINITY)
    return apartMs >= MIN_APART_MS && apartMs <= MAX_APART_MS
  }

  async #look({ workers }: Status): Promise<ReadonlyMap<number, Usage>> {
    const usages = new Map<number, Usage>()
    for (const { id, pid } of workers) {
      const usage = pid === null ? undefined : await readUsage(pid)
      if (usage !== undefined) usages.set(id, usage)
    }
    const atMs = performance.now()
    if (this.#latest !== undefined && atMs - this.#latest.atMs >= MIN_APART_MS) this.#before = this.#latest
    const looks = workers.map(({ id, generation, requests }): [number, Look] => [
      id,
      { atMs, generation, requests, cpuSec: usages.get(id)?.cpuSec },
    ])
    this.#latest = { atMs, workers: new Map(looks) }
    return usages
  }

  #detail(worker: WorkerStatus, usage: Usage | undefined): WorkerStatus {
    const line = this.#lastLines.get(worker.id)
    const from = this.#earlier(worker)
    const elapsedSec = Math.max(from.elapsedSec, 0.001)
    const perSec = (worker.requests - from.requests) / elapsedSec
    return {
      ...worker,
      ...(worker.uptime_sec === undefined ? {} : { requests_per_sec: round(perSec) }),
      ...(usage === undefined
        ? {}
        : {
            cpu_percent: round(((usage.cpuSec - from.cpuSec) / elapsedSec) * 100),
            memory_bytes: usage.memoryBytes,
          }),
      ...(line === undefined ? {} : { last_stderr: line }),
    }
  }

  /** The look to compare with; without one the beginning of the process, as far as its requests are its own. */
  #earlier({ id, generation, uptime_sec = 0, requests }: WorkerStatus) {
    const look = this.#before?.workers.get(id)
    const apartMs = (this.#latest?.atMs ?? 0) - (look?.atMs ?? 0)
    if (look?.generation === generation && apartMs <= MAX_APART_MS)
      return { elapsedSec: apartMs / 1000, requests: look.requests, cpuSec: look.cpuSec ?? 0 }
    return { elapsedSec: uptime_sec, requests: generation > 1 ? requests : 0, cpuSec: 0 }
  }
}

function round(value: number): number {
  return Math.max(0, Math.round(value * 10) / 10)
}
