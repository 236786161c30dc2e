/**
 * From a bus that has been put into the background to what its user is told: that it serves, where, and what to type next.
 *
 * A bus serves as soon as its doors are open; its workers are given a moment, so that one that cannot be started is told
 * of here and not later.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { DidNotStart } from '../client/autostart.ts'
import { BusUnavailable } from '../client/errors.ts'
import { readConfig } from '../config/read.ts'
import { formatProblems } from '../config/report.ts'
import { askControl } from '../console/control-client.ts'
import { findRunning, type RunRecord, realPath } from '../console/running.ts'
import type { Status, WorkerStatus } from '../console/status.ts'
import { wantsColor } from '../host/terminal.ts'
import { printable } from '../wire/printable.ts'
import { programName } from './program-name.ts'
import { UserMistake } from './user-mistake.ts'
import { WorldFailure } from './world-failure.ts'

const PATIENCE_MS = 5_000
const LOOK_EVERY_MS = 100
const MISTAKE = 2

/** The bus that runs with this configuration. */
export async function runningWith(config: string): Promise<RunRecord | undefined> {
  const wanted = realPath(config)
  return (await findRunning()).find((bus) => realPath(bus.config) === wanted)
}

/** A configuration with which no bus would start is told of before one is started, or stopped for it. */
export async function refuseMistakes(config: string): Promise<void> {
  const reading = await readConfig(config)
  if (reading.ok) return
  throw new UserMistake(formatProblems(reading.problems, { color: wantsColor(process.stderr) }).trimEnd())
}

/** An error of `startInBackground`, as a mistake of the user or a failure of the world. */
export function explainStart(error: unknown): never {
  if (!(error instanceof BusUnavailable)) throw error
  const isMistake = error instanceof DidNotStart && error.daemonExitCode === MISTAKE
  const Told = isMistake ? UserMistake : WorldFailure
  throw new Told(error.message, { cause: error })
}

export async function describeStarted(bus: RunRecord): Promise<string> {
  const { workers } = await settledStatus(bus)
  const lines = [
    `stdio-bus runs in the background: pid ${bus.pid}, ${bus.addresses.join(', ')}`,
    ...describePools(workers),
    `Next: ${['status', 'logs -f', 'chat', 'stop'].map((words) => `${programName()} ${words}`).join(', ')}`,
  ]
  return `${lines.join('\n')}\n`
}

/** Once nobody is starting any more, or it takes too long. */
async function settledStatus({ control }: RunRecord): Promise<Status> {
  const untilMs = performance.now() + PATIENCE_MS
  for (;;) {
    const status = (await askControl({ control }, 'status')) as Status
    const isSettled = status.workers.every(({ state }) => state !== 'starting')
    if (isSettled || performance.now() > untilMs) return status
    await sleep(LOOK_EVERY_MS)
  }
}

function describePools(workers: readonly WorkerStatus[]): string[] {
  const pools = new Map<string, WorkerStatus[]>()
  for (const worker of workers) pools.set(worker.pool, [...(pools.get(worker.pool) ?? []), worker])
  return [...pools].map(([pool, all]) => `  ${printable(pool)}: ${describeWorkers(all)}`)
}

function describeWorkers(workers: readonly WorkerStatus[]): string {
  const states = [...new Set(workers.map(({ state }) => state))]
  const counts = states.map((state) => `${workers.filter((worker) => worker.state === state).length} ${state}`)
  const trouble = workers
    .filter(({ state }) => state !== 'ready')
    .map((worker) => worker.last_error ?? worker.last_exit?.how)
  const why = trouble.find((each) => each !== undefined)
  return why === undefined ? counts.join(', ') : `${counts.join(', ')}: ${printable(why)}`
}
