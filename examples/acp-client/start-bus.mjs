/**
 * Starts a bus on a Unix socket for an example, in a folder of its own that is removed at the end. In real life the bus
 * runs already, and a client only needs its address.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export async function startBus(config) {
  const home = await mkdtemp(join(tmpdir(), 'bus-'))
  const unix = join(home, 'bus.sock')
  const file = join(home, 'stdio-bus.json')
  await writeFile(file, JSON.stringify(config))
  let child = await launch(home, file, unix)
  return {
    unix,
    /** Ends it the hard way and starts it again, as an upgrade or a crash would. */
    async restart() {
      await end(child, 'SIGKILL')
      child = await launch(home, file, unix)
    },
    async stop() {
      await end(child, 'SIGTERM')
      await rm(home, { recursive: true, force: true })
    },
  }
}

async function launch(home, file, unix) {
  const child = spawn(process.execPath, [MAIN, 'serve', '--config', file, '--unix', unix], {
    cwd: home,
    env: { ...process.env, HOME: home },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  const ready = new Promise((resolve, reject) => {
    child.stderr.on('data', (chunk) => {
      log += chunk
      if (log.includes('"ready"')) resolve()
    })
    child.once('exit', () => reject(new Error(`the bus did not start:\n${log}`)))
  })
  await ready
  return child
}

async function end(child, signal) {
  child.kill(signal)
  await once(child, 'exit')
}
