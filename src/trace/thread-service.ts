/** The store's thread: passes requests to the engine and its replies back, and does nothing else. */
import { parentPort } from 'node:worker_threads'
import type { Engine, EngineRequest } from './engine.ts'

export function serveThread(engine: Engine): void {
  const port = parentPort
  if (port === null) throw new Error('a store is served on a worker thread only')
  port.on('message', async (request: EngineRequest) => {
    port.postMessage(await engine.serve(request))
    if (request.op === 'close') port.close()
  })
}
