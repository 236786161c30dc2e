import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { spawnWorker } from './spawn.ts'
import type { WorkerProcess } from './worker-process.ts'

const PATH = '/usr/bin:/bin'
let folder: string
const workers: WorkerProcess[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'stdio-bus-pipes-test-'))
  vi.stubEnv('TMPDIR', folder)
})
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill('end of the test')))
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true })
})

function start(script: string, command = '/bin/sh'): WorkerProcess {
  const worker = spawnWorker({ command, args: ['-c', script], env: { PATH }, cwd: '/', pipes: 'fifo' })
  workers.push(worker)
  return worker
}

const openDescriptors = () => readdirSync('/proc/self/fd').length

describe('FIFOs', () => {
  it('can be opened by name, all three of them', async () => {
    const worker = start('echo said > /dev/stdout; echo hint > /dev/stderr; cat /dev/stdin')
    const hint = once(worker, 'diagnostic')
    worker.stdin.write('heard\n')
    let said = ''
    worker.stdout.on('data', (chunk) => (said += chunk))
    // A pipe whose other end has gone cannot be opened by name any more.
    await vi.waitFor(() => expect(said).toBe('said\nheard\n'), { timeout: 10_000 })
    worker.stdin.end()
    expect(await hint).toEqual(['hint'])
  })

  it('are ordinary pipes to the worker, which waits for its input', async () => {
    const worker = start('read -r line; echo "$line"; test -p /dev/stdin && test -p /dev/stdout && echo pipes')
    await new Promise((resolve) => setTimeout(resolve, 50))
    worker.stdin.write('late\n')
    expect(await text(worker.stdout)).toBe('late\npipes\n')
  })

  it('have no name any more when the worker runs', async () => {
    const worker = start('echo ready; cat')
    await once(worker.stdout, 'data')
    expect(readdirSync(folder)).toEqual([])
  })

  it('leave no descriptor behind, whether the command can be executed or not', async () => {
    await text(start('exit 0').stdout)
    const before = openDescriptors()
    for (let count = 0; count < 5; count++) {
      const worker = start('exit 0')
      const gone = once(worker, 'gone')
      await Promise.all([text(worker.stdout), gone])
      await once(start('', '/no/such/program'), 'failed')
    }
    await vi.waitFor(() => expect(openDescriptors()).toBeLessThanOrEqual(before))
    expect(readdirSync(folder)).toEqual([])
  })

  it('that cannot be made are told with their reason', async () => {
    vi.stubEnv('PATH', '/nonexistent')
    const [failure] = await once(start('exit 0'), 'failed')
    expect(failure).toEqual({ code: 'NOFIFO', reason: expect.stringContaining('mkfifo') })
    expect(readdirSync(folder)).toEqual([])
  })
})
