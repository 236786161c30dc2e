import { EventEmitter, once } from 'node:events'
import { kill } from 'node:process'
import { afterEach, expect, onTestFinished, test } from 'vitest'
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

async function start(script = SCRIPT): Promise<{ link: WorkerLink; said: () => string; silent: Promise<unknown> }> {
  let said = ''
  const heard = new EventEmitter()
  const ready = once(heard, 'ready')
  const silent = once(heard, 'silent')
  const note = (event: BusEvent): void => {
    if (event.type === 'worker-received') said += event.bytes.toString()
    if (event.type === 'worker-received') heard.emit('ready')
    if (event.type === 'worker-silent' && event.pipe === 'stdout') heard.emit('silent')
  }
  const env = { PATH: '/usr/bin:/bin' }
  process = spawnWorker({ command: '/bin/sh', args: ['-c', script], env, cwd: '/' })
  const link = new WorkerLink({ worker: 1 as WorkerId, generation: 1 }, process, note)
  await ready
  return { link, said: () => said, silent }
}

test.each([
  ['end', 'ready\neof\n'],
  ['kill', 'ready\nterm\n'],
] as const)('7.4 how the end begins: %s', async (how, said) => {
  verifies('7.2-stalled')
  const worker = await start()
  await worker.link.stop(how)
  await worker.silent
  expect(worker.said()).toBe(said)
})

test('7.1 what is buried is read no more, even if somebody who left its group holds the pipe', async () => {
  const worker = await start('setsid sleep 60 & echo $!; sleep 60')
  onTestFinished(() => void kill(Number(worker.said()), 'SIGKILL'))
  await worker.link.stop('clear')
  await worker.silent
  expect(() => kill(Number(worker.said()), 0)).not.toThrow()
})

test('8.3 lines that cost much are told in small portions, so that the others have their turns', async () => {
  const portions: number[] = []
  process = spawnWorker({ command: '/bin/sh', args: ['-c', 'seq 1 20000'], env: { PATH: '/usr/bin:/bin' }, cwd: '/' })
  let said = ''
  await new Promise<void>((resolve) => {
    const hear = (event: BusEvent): void => {
      if (event.type === 'worker-silent' && event.pipe === 'stdout') resolve()
      if (event.type !== 'worker-received') return
      said += event.bytes.toString()
      portions.push(event.bytes.length)
      for (const endMs = performance.now() + 2; performance.now() < endMs; );
    }
    new WorkerLink({ worker: 1 as WorkerId, generation: 1 }, process, hear)
  })
  expect(said.split('\n').length).toBe(20_001)
  // The end of the stream may bring the rest at once.
  expect(Math.max(...portions.slice(0, 20))).toBeLessThan(2_048)
})
