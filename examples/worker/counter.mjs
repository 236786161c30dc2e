/** A worker of one's own: it counts per session, says how far it is, and can be cancelled. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startWorker, WorkerError } from 'stdio-bus/worker'

const counts = new Map()

startWorker({
  add({ by }, { sessionId }) {
    if (!Number.isInteger(by)) throw new WorkerError(-32602, 'by is a whole number', { found: by ?? null })
    const count = (counts.get(sessionId) ?? 0) + by
    counts.set(sessionId, count)
    return { count }
  },

  async countdown({ from }, call) {
    for (let left = from; left > 0; left--) {
      call.notify('left', { left })
      await sleep(10, undefined, { signal: call.signal })
    }
    return 'lift-off'
  },
})
