/**
 * `stdio-bus/worker`: a worker for stdio Bus, or for any host that speaks JSON-RPC line by line, as a table of methods.
 *
 * ```js
 * import { startWorker, WorkerError } from 'stdio-bus/worker'
 *
 * startWorker({
 *   add: ({ a, b }) => a + b,
 *   async think(params, call) {
 *     call.notify('thinking', { step: 1 })         // to whoever asked
 *     return await work(params, call.signal)       // which aborts when the caller gives up
 *   },
 *   refuse() { throw new WorkerError(-32001, 'not today') },
 * })
 * ```
 *
 * It reads stdin, writes stdout and ends the process when stdin ends or SIGTERM comes, within a second. stdout belongs to
 * the protocol: what is for people goes to stderr.
 */

import type { Methods } from './call.ts'
import { Worker, type WorkerOptions } from './worker.ts'

export type { Call, Method, Methods } from './call.ts'
export { type ErrorCode, WorkerError } from './error.ts'
export type { Worker, WorkerOptions } from './worker.ts'

/** Serves these methods on stdin and stdout from now on. A process is one worker: call it once. */
export function startWorker(methods: Methods, options: WorkerOptions = {}): Worker {
  return new Worker(methods, options)
}
