import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FIXED } from '../kernel/limits.ts'
import { isGroupAlive } from './group.ts'
import type { PipeKind } from './launch.ts'
import { spawnWorker } from './spawn.ts'
import { STOP_TIMING } from './stop.ts'
import type { GroupWatch, WorkerProcess } from './worker-process.ts'

const STEP_MS = 800
const TIMING = { stepMs: STEP_MS, lastMs: 1_000 }
const workers: WorkerProcess[] = []
let pipes: PipeKind

afterEach(() => Promise.all(workers.splice(0).map((worker) => worker.kill('end of the test'))))

function start(args: readonly string[], watch?: GroupWatch): WorkerProcess {
  const launch = { command: '/bin/sh', args, env: { PATH: '/usr/bin:/bin' }, cwd: '/', pipes }
  const worker = spawnWorker(launch, { timing: TIMING, ...(watch && { watch }) })
  workers.push(worker)
  return worker
}

const shell = (script: string) => start(['-c', script])
const fixture = (name: string, ...args: string[]) =>
  start([fileURLToPath(new URL(`../../test/fixtures/process/${name}`, import.meta.url)), ...args])

/** The first words of a worker, which say that it is ready. */
async function hear({ stdout }: WorkerProcess): Promise<string> {
  const [chunk] = await once(stdout, 'data')
  return String(chunk).trim()
}

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

async function measure(act: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await act()
  return performance.now() - startMs
}

describe.each(['default', 'fifo'] as const)('over %s pipes', (kind) => {
  beforeEach(() => {
    pipes = kind
  })

  describe('7.4 stopping a worker', () => {
    it('waits between two steps as long as the contract says', () => {
      expect(STOP_TIMING.stepMs).toBe(FIXED.stopStepMs)
      expect(STOP_TIMING.stepMs).toBe(2_500)
    })

    it('a good one ends with its stdin, after it has read what was written', async () => {
      const worker = fixture('ends-with-stdin.sh')
      await hear(worker)
      const exited = once(worker, 'exited')
      worker.stdin.write('last line\n')
      expect(await measure(() => worker.stop('shutdown'))).toBeLessThan(STEP_MS)
      expect((await exited)[0]).toEqual({ isClean: true, how: { exitCode: 0, signal: null } })
    })

    it('one that does not read gets SIGTERM after a step', async () => {
      const worker = fixture('obeys-sigterm.sh')
      await hear(worker)
      const exited = once(worker, 'exited')
      const took = await measure(() => worker.stop('shutdown'))
      expect(took).toBeGreaterThanOrEqual(STEP_MS - 5)
      expect(took).toBeLessThan(2 * STEP_MS)
      expect((await exited)[0]).toEqual({ isClean: false, how: { exitCode: 5, signal: null } })
    })

    it('one that ignores EOF and SIGTERM and has a grandchild is killed with it after two', async () => {
      const worker = fixture('stubborn.sh')
      const pids = (await hear(worker)).split(' ').map(Number)
      expect(pids.map(isRunning)).toEqual([true, true])
      const exited = once(worker, 'exited')
      const took = await measure(() => worker.stop('shutdown'))
      expect(took).toBeGreaterThanOrEqual(2 * STEP_MS - 5)
      expect((await exited)[0]).toEqual({ isClean: false, how: { exitCode: null, signal: 'SIGKILL' } })
      expect(pids.map(isRunning)).toEqual([false, false])
      expect(await isGroupAlive(worker.pid!)).toBe(false)
    })

    it('a second signal kills the group before it returns', async () => {
      const worker = fixture('stubborn.sh')
      const pids = (await hear(worker)).split(' ').map(Number)
      void worker.stop('shutdown')
      expect(await measure(() => worker.kill('second signal'))).toBeLessThan(STEP_MS)
      expect(pids.map(isRunning)).toEqual([false, false])
    })

    it('the first reason wins', async () => {
      const worker = fixture('ends-with-stdin.sh')
      await hear(worker)
      expect(worker.stopReason).toBeUndefined()
      await Promise.all([worker.stop('hang'), worker.stop('shutdown'), worker.kill('second signal')])
      expect(worker.stopReason).toBe('hang')
    })

    it('a worker that has already gone can be stopped again', async () => {
      const worker = shell('exit 0')
      await once(worker, 'gone')
      await expect(worker.stop('late')).resolves.toBeUndefined()
      await expect(worker.kill('later')).resolves.toBeUndefined()
    })
  })

  describe('7.1 a worker that exits by itself', () => {
    it('is told of at once, before its group is gone', async () => {
      const worker = fixture('leaves-a-child.sh', 'stubborn')
      const order: string[] = []
      worker.once('exited', () => order.push('exited'))
      worker.once('gone', () => order.push('gone'))
      await once(worker, 'gone')
      expect(order).toEqual(['exited', 'gone'])
    })

    it.each([['meek'], ['stubborn']])('its %s child is ended', async (kind) => {
      const worker = fixture('leaves-a-child.sh', kind)
      const child = Number(await hear(worker))
      const [exit] = await once(worker, 'exited')
      expect(exit).toEqual({ isClean: false, how: { exitCode: 3, signal: null } })
      const took = await measure(() => once(worker, 'gone'))
      expect(isRunning(child)).toBe(false)
      expect(took >= STEP_MS - 5).toBe(kind === 'stubborn')
    })

    it('its last words stay readable', async () => {
      const worker = shell('printf "last words"')
      await once(worker, 'gone')
      worker.stdout.resume()
      expect(await hear(worker)).toBe('last words')
    })

    it('8.3 a pause of its stdout still holds after its exit', async () => {
      const worker = shell('head -c 1000 /dev/zero; read -r paused; head -c 60000 /dev/zero')
      let received = 0
      worker.stdout.on('data', (chunk: Buffer) => {
        received += chunk.length
        worker.stdout.pause()
      })
      await once(worker.stdout, 'pause')
      worker.stdin.write('\n')
      await once(worker, 'exited')
      await sleep(50)
      expect(received).toBe(1_000)
      worker.stdout.on('data', () => worker.stdout.resume()).resume()
      await once(worker.stdout, 'end')
      expect(received).toBe(61_000)
    })
  })

  describe('the watch', () => {
    it('knows a group from its start until nobody is left in it', async () => {
      const heard: string[] = []
      const watch = {
        expect: () => ({ MARK: String(heard.push('?')) }),
        add: (pgid: number) => heard.push(`+${pgid}`),
        remove: (pgid: number) => heard.push(`-${pgid}`),
      }
      const worker = start(['-c', 'echo $MARK'], watch)
      const gone = once(worker, 'gone')
      expect(heard).toEqual(['?', `+${worker.pid}`])
      expect(await text(worker.stdout)).toBe('1\n')
      await gone
      expect(heard).toEqual(['?', `+${worker.pid}`, `-${worker.pid}`])
    })
  })

  describe('5.3 stderr', () => {
    it('is told line by line, printable', async () => {
      const worker = shell('printf "one\\n\\033[31mtwo" >&2')
      const heard: string[] = []
      worker.on('diagnostic', (line) => heard.push(line))
      await once(worker, 'gone')
      await sleep(20)
      expect(heard).toEqual(['one', '\\u001b[31mtwo'])
    })

    it('never makes the worker wait, however much it writes', async () => {
      const worker = shell('head -c 20000000 /dev/zero >&2; yes | head -n 300000 >&2; exit 9')
      let heard = 0
      worker.on('diagnostic', () => {
        heard += 1
      })
      const [exit] = await once(worker, 'exited')
      expect(exit).toEqual({ isClean: false, how: { exitCode: 9, signal: null } })
      expect(heard).toBeLessThan(5_000)
    })
  })
})
