/**
 * The entry of the store's thread: passes requests to the engine and its replies back, and does nothing else.
 */
import { parentPort } from 'node:worker_threads'
import { Engine, type EngineRequest } from './engine.ts'

const port = parentPort
if (port === null) throw new Error('store-thread runs as a worker thread only')

const engine = new Engine()
port.on('message', async (request: EngineRequest) => {
  port.postMessage(await engine.serve(request))
  if (request.op === 'close') port.close()
})
