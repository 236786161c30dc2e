/**
 * The heap of a running bus after everything that nobody holds was collected, asked for through the runtime's inspector.
 *
 * The bus itself has nothing of this: it is started with `--inspect` and each look is a connection of its own.
 */
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { WebSocket } from 'undici'
import { eventually, sleep } from '../chaos/stage/waiting.mjs'

export const INSPECTED = ['--inspect=127.0.0.1:0']
const MIB = 1024 * 1024
/** What one collection frees lets finalizers run that free more. */
const COLLECTIONS = 4
const PAUSE_MS = 100

/** `{ heapMib, buffersMib, rssMib }` of what is still held. */
export async function readHeap(bus) {
  const inspector = await Inspector.open(bus)
  for (let times = 0; times < COLLECTIONS; times++) {
    await inspector.ask('HeapProfiler.collectGarbage')
    await sleep(PAUSE_MS)
  }
  const { result } = await inspector.ask('Runtime.evaluate', {
    expression: 'process.memoryUsage()',
    returnByValue: true,
  })
  inspector.close()
  const { heapUsed, arrayBuffers, rss } = result.value
  return { heapMib: heapUsed / MIB, buffersMib: arrayBuffers / MIB, rssMib: rss / MIB }
}

/** Everything on the heap, as a file for the developer tools of a browser. */
export async function writeSnapshot(bus, file) {
  const inspector = await Inspector.open(bus)
  const out = createWriteStream(file)
  inspector.onEvent = ({ method, params }) => method === 'HeapProfiler.addHeapSnapshotChunk' && out.write(params.chunk)
  await inspector.ask('HeapProfiler.takeHeapSnapshot')
  inspector.close()
  out.end()
  await finished(out)
}

class Inspector {
  onEvent = () => {}
  #socket
  #asked = 0
  #waiting = new Map()

  static async open(bus) {
    const address = await eventually(() => /Debugger listening on (ws:\S+)/.exec(bus.log())?.[1], 5_000)
    const inspector = new Inspector()
    inspector.#socket = new WebSocket(address)
    inspector.#socket.addEventListener('message', ({ data }) => inspector.#take(JSON.parse(data)))
    await new Promise((resolve, reject) => {
      inspector.#socket.addEventListener('open', resolve, { once: true })
      inspector.#socket.addEventListener('error', reject, { once: true })
    })
    return inspector
  }

  ask(method, params = {}) {
    const id = ++this.#asked
    this.#socket.send(JSON.stringify({ id, method, params }))
    return new Promise((resolve) => this.#waiting.set(id, resolve))
  }

  close() {
    this.#socket.close()
  }

  #take(message) {
    if (message.id === undefined) return this.onEvent(message)
    this.#waiting.get(message.id)(message.result)
    this.#waiting.delete(message.id)
  }
}
