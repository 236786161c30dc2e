import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { type Compiled, compile } from '../../test/fixtures/process/compile.ts'
import { killHard, processesWorkingIn } from '../../test/support/processes.ts'
import { isGroupAlive, killGroup } from './group.ts'
import { spawnWorker } from './spawn.ts'
import { Warden } from './warden.ts'
import type { WorkerProcess } from './worker-process.ts'

const fixture = (name: string) => fileURLToPath(new URL(`../../test/fixtures/process/${name}`, import.meta.url))
const SHELLS = ['/bin/sh', '/bin/dash', '/bin/bash'].filter(existsSync)
const wardens: Warden[] = []
const workers: WorkerProcess[] = []

afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill('end of the test')))
  for (const warden of wardens.splice(0)) warden.close()
})

function guard(shell = '/bin/sh'): { warden: Warden; troubles: string[] } {
  const troubles: string[] = []
  const warden = new Warden({ shell, onTrouble: (message) => troubles.push(message) })
  wardens.push(warden)
  return { warden, troubles }
}

async function startStubborn(): Promise<WorkerProcess> {
  const env = { PATH: '/usr/bin:/bin' }
  const launch = { command: '/bin/sh', args: [fixture('stubborn.sh')], env, cwd: '/' }
  const worker = spawnWorker(launch, { timing: { stepMs: 100, lastMs: 1_000 } })
  workers.push(worker)
  await once(worker.stdout, 'data')
  return worker
}

const lives = isGroupAlive

/** Whether all these groups are gone within the bound. */
async function gone(groups: readonly number[], boundMs: number): Promise<boolean> {
  return until(async () => !(await Promise.all(groups.map(lives))).includes(true), boundMs)
}

async function until(condition: () => boolean | Promise<boolean>, boundMs: number): Promise<boolean> {
  const deadlineMs = performance.now() + boundMs
  while (performance.now() < deadlineMs) {
    if (await condition()) return true
    await sleep(10)
  }
  return false
}

/** Whether the shell has come so far as to set its traps. */
function ignoresSigterm(pid: number): boolean {
  const mask = /^SigIgn:\s+([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '0'
  return (BigInt(`0x${mask}`) & (1n << BigInt(constants.signals.SIGTERM - 1))) !== 0n
}

describe.each(SHELLS)('5.4 the bus is killed, the warden runs in %s', (shell) => {
  let compiled: Compiled
  let bus: ChildProcess
  let groups: number[] = []
  beforeAll(async () => {
    compiled = await compile('process/spawn.ts', 'process/warden.ts')
  })
  afterAll(async () => {
    bus.kill('SIGKILL')
    for (const group of groups) killGroup(group, 'SIGKILL')
    await compiled.remove()
  })

  it('all groups are gone within 3 s, those who ignore EOF and SIGTERM and have a grandchild too', async () => {
    bus = spawn(process.execPath, [fixture('bus-to-kill.mjs'), compiled.folder, shell], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const [said] = await once(bus.stdout!, 'data')
    const told = JSON.parse(String(said)) as { groups: number[]; warden: number }
    const { warden } = told
    groups = told.groups
    expect(await Promise.all([...groups, warden].map(lives))).toEqual(Array(5).fill(true))
    expect(await until(() => ignoresSigterm(warden), 2_000)).toBe(true)
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.kill(warden, signal)
    bus.kill('SIGKILL')
    expect(await gone([...groups, warden], 3_000)).toBe(true)
  })
})

describe.runIf(process.platform === 'linux')('5.4 the bus is killed while it starts workers', () => {
  const KILLS = 60
  const AT_A_TIME = 10
  const START_MS = 25
  let compiled: Compiled
  let folder: string
  beforeAll(async () => {
    compiled = await compile('process/spawn.ts', 'process/warden.ts')
    folder = await realpath(await mkdtemp(join(tmpdir(), 'stdio-bus-warden-')))
  })
  afterAll(async () => {
    for (const pid of processesWorkingIn(folder)) killHard(pid)
    await Promise.all([compiled.remove(), rm(folder, { recursive: true })])
  })

  async function killAtStart(): Promise<void> {
    const bus = spawn(process.execPath, [fixture('bus-to-kill-at-start.mjs'), compiled.folder, folder])
    await once(bus.stdout, 'data')
    const momentMs = performance.now() + Math.random() * START_MS
    while (performance.now() < momentMs);
    bus.kill('SIGKILL')
    await once(bus, 'exit')
  }

  it(`no worker is left, however early: ${KILLS} kills`, { timeout: 120_000 }, async () => {
    verifies('5.4-guarded')
    for (let kills = 0; kills < KILLS; kills += AT_A_TIME) {
      for (let count = 0; count < AT_A_TIME; count++) await killAtStart()
      expect(await until(() => processesWorkingIn(folder).length === 0, 15_000)).toBe(true)
    }
  })
})

describe.each(SHELLS)('the warden in %s', (shell) => {
  it('ends exactly the groups that are still listed when the bus closes it', async () => {
    const { warden } = guard(shell)
    const [kept, removed, unknown] = [await startStubborn(), await startStubborn(), await startStubborn()]
    warden.add(removed.pid!)
    warden.add(kept.pid!)
    warden.remove(removed.pid!)
    warden.remove(unknown.pid!)
    warden.close()
    expect(await gone([kept.pid!], 3_000)).toBe(true)
    expect(await lives(removed.pid!)).toBe(true)
    expect(await lives(unknown.pid!)).toBe(true)
  })

  it('goes at once when nothing is listed', async () => {
    const { warden } = guard(shell)
    const worker = await startStubborn()
    const pid = warden.pid!
    warden.add(worker.pid!)
    warden.remove(worker.pid!)
    // A start that failed.
    warden.expect()
    warden.close()
    expect(await gone([pid], 500)).toBe(true)
    expect(await lives(worker.pid!)).toBe(true)
  })
})

describe('the warden', () => {
  it('is small and leads a session of its own', () => {
    const { warden } = guard()
    const [, , , , group, session] = readFileSync(`/proc/${warden.pid}/stat`, 'utf8').split(' ')
    expect([group, session]).toEqual([`${warden.pid}`, `${warden.pid}`])
    const ownKib = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${warden.pid}/status`, 'utf8'))?.[1]
    expect(Number(ownKib)).toBeLessThan(4_096)
  })

  it('that dies is replaced by another, which knows the list', async () => {
    const { warden, troubles } = guard()
    const worker = await startStubborn()
    warden.add(worker.pid!)
    const first = warden.pid!
    process.kill(first, 'SIGKILL')
    expect(await until(() => warden.pid !== undefined && warden.pid !== first, 2_000)).toBe(true)
    expect(troubles).toEqual([expect.stringMatching(/has died \(SIGKILL\).*started again/)])
    expect(await lives(worker.pid!)).toBe(true)
    warden.close()
    expect(await gone([worker.pid!], 3_000)).toBe(true)
  })

  it('that cannot be started is told of and tried again, more and more rarely', async () => {
    const { warden, troubles } = guard('/no/such/shell')
    warden.add(2 ** 22 + 1)
    expect(await until(() => troubles.length === 2, 2_000)).toBe(true)
    expect(troubles[0]).toMatch(/cannot be started.*again in 100 ms/)
    expect(troubles[1]).toMatch(/again in 200 ms/)
  })

  it('passes over anything that is no group number', async () => {
    const { warden } = guard()
    const pid = warden.pid!
    for (const odd of [0, 1, -1, 1.5]) warden.add(odd)
    warden.close()
    expect(await gone([pid], 500)).toBe(true)
  })
})
