import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { ownMemoryBytes, readUsage } from './usage.ts'
import { readUsageByPs } from './usage-by-ps.ts'

test('nobody has that number', async () => {
  expect(await readUsage(2 ** 30)).toBeUndefined()
  expect(await readUsageByPs(2 ** 30)).toBeUndefined()
})

const hasFiles = existsSync('/proc/self/stat')

test.each([
  ['/proc', readUsage, hasFiles],
  ['ps', readUsageByPs, spawnSync('ps').status === 0],
])('%s: a process is counted with its children', async (_how, read, isThere) => {
  if (!isThere) return expect(await read(process.pid)).toBeUndefined()
  const own = await read(process.pid)
  // In whole seconds, if it is ps that tells.
  expect(own!.cpuSec).toBeGreaterThanOrEqual(0)
  expect(own!.memoryBytes).toBeGreaterThan(1024 * 1024)
  const program =
    'const held = Buffer.alloc(64 * 1024 * 1024, 1); console.log(held.length); setInterval(() => {}, 1000)'
  const child = spawn('sh', ['-c', `"${process.execPath}" -e '${program}' & wait`], { detached: true })
  onTestFinished(() => void process.kill(-child.pid!, 'SIGKILL'))
  await once(child.stdout, 'data')
  // A listing is good for a moment.
  await sleep(250)
  expect((await read(child.pid!))!.memoryBytes).toBeGreaterThan(64 * 1024 * 1024)
})

test('what this process has in memory', () => {
  expect(ownMemoryBytes()).toBeGreaterThan(1024 * 1024)
})
