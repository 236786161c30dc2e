import { once } from 'node:events'
import { afterEach, expect, test } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import type { BusEvent } from '../../kernel/events.ts'
import type { WorkerId } from '../../kernel/vocabulary.ts'
import { spawnWorker } from '../../process/spawn.ts'
import type { WorkerProcess } from '../../process/worker-process.ts'
import { WorkerLink } from './worker-link.ts'

let process: WorkerProcess
afterEach(() => process.kill('end of the test'))

/** Says what it is ended with. */
const SCRIPT = `trap 'echo term; exit' TERM
echo ready
while read -r line; do :; done
echo eof`

async function start(): Promise<{ link: WorkerLink; said: () => string }> {
  const told: Buffer[] = []
  const note = (event: BusEvent) => event.type === 'worker-received' && told.push(event.bytes)
  const env = { PATH: '/usr/bin:/bin' }
  process = spawnWorker({ command: '/bin/sh', args: ['-c', SCRIPT], env, cwd: '/' })
  const link = new WorkerLink(1 as WorkerId, 1, process, note)
  await once(process.stdout, 'data')
  return { link, said: () => Buffer.concat(told).toString() }
}

test.each([
  ['end', 'ready\neof\n'],
  ['kill', 'ready\nterm\n'],
] as const)('7.4 how the end begins: %s', async (how, said) => {
  verifies('7.2-stalled')
  const worker = await start()
  const closed = once(process.stdout, 'close')
  await worker.link.stop(how)
  await closed
  expect(worker.said()).toBe(said)
})
