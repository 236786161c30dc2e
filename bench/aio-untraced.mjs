/** Loaded into the bus by `aio.mjs`: the trace store is told of no call, everything else is as it is. */
import { pathToFileURL } from 'node:url'
import { isMainThread } from 'node:worker_threads'

if (isMainThread) {
  const { TraceStore } = await import(pathToFileURL(`${process.env.STDIO_BUS_DIST}/trace/store.js`).href)
  for (const method of ['begin', 'partial', 'end']) TraceStore.prototype[method] = () => {}
}
