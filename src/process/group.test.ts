import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { isGroupAlive, killGroup } from './group.ts'

/** No process has this number: it is above what the system gives out. */
const NOBODY = 2 ** 22 + 1

const isZombie = (pid: number) => /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))

describe('killGroup', () => {
  it.each([0, 1, -1, 1.5, Number.NaN])('refuses %d, which is no group of a worker', (pgid) => {
    expect(() => killGroup(pgid, 0)).toThrow(RangeError)
  })

  it('takes a group that is not there for done', () => {
    expect(killGroup(NOBODY, 'SIGKILL')).toBe(false)
  })
})

describe('isGroupAlive', () => {
  it('sees a group until its last member has gone', async () => {
    const leader = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' })
    expect(await isGroupAlive(leader.pid!)).toBe(true)
    killGroup(leader.pid!, 'SIGKILL')
    await once(leader, 'exit')
    expect(await isGroupAlive(leader.pid!)).toBe(false)
  })

  it.runIf(process.platform === 'linux')('does not wait for a zombie that nobody reaps', async () => {
    // The parent is stopped when its child, the only member of a group, exits.
    const script = 'setsid sleep 0.1 & echo $!; kill -STOP $$'
    const parent = spawn('/bin/sh', ['-c', script], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
    const [chunk] = await once(parent.stdout, 'data')
    const child = Number(String(chunk))
    while (!isZombie(child)) await sleep(10)
    expect(killGroup(child, 0)).toBe(true)
    expect(await isGroupAlive(child)).toBe(false)
    killGroup(parent.pid!, 'SIGKILL')
  })

  it('knows a group that was never there', async () => {
    expect(await isGroupAlive(NOBODY)).toBe(false)
  })
})
