/**
 * Starts the process of a worker: without a shell, in a session and process group of its own, with three pipes and no
 * other descriptor of the bus (contract 3.3, 5.4). Nothing is added to the environment it is given but the mark of whoever
 * watches its group: no program runs before it can be found.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Launch } from './launch.ts'
import { type Prepared, preparePipes } from './pipes.ts'
import { explainSpawnFailure } from './spawn-failure.ts'
import { type WorkerOptions, WorkerProcess } from './worker-process.ts'

/** Starts a worker. Success and failure are told by its events, never before this returns. */
export function spawnWorker(launch: Launch, options: WorkerOptions = {}): WorkerProcess {
  let child: ChildProcess
  let pipes: Prepared | undefined
  try {
    pipes = preparePipes(launch.pipes)
    child = execute(launch, pipes, options.watch?.expect())
  } catch (error) {
    pipes?.abandon()
    const worker = new WorkerProcess(undefined)
    process.nextTick(() => worker.emit('failed', explainSpawnFailure(error, launch)))
    return worker
  }
  if (child.pid !== undefined) return new WorkerProcess({ child, pid: child.pid, ...pipes.join(child) }, options)
  pipes.abandon()
  const worker = new WorkerProcess(undefined)
  child.once('error', (error) => worker.emit('failed', explainSpawnFailure(error, launch)))
  return worker
}

function execute({ command, args, env, cwd }: Launch, { stdio }: Prepared, mark: Launch['env'] = {}): ChildProcess {
  return spawn(command, args, { env: { ...env, ...mark }, cwd, shell: false, detached: true, stdio })
}
