import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { isGroupAlive, killGroup } from './group.ts'

/** No process has this number: it is above what the system gives out. */
const NOBODY = 2 ** 22 + 1

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

  it('does not wait for a zombie that nobody reaps', async () => {
    // The parent stops without waiting for its child, which leads a group that has only itself: a zombie.
    const script = 'setsid sh -c "exit 0" & sleep 0.3; echo $!; kill -STOP $$'
    const parent = spawn('bash', ['-c', `set -m; ${script}`], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
    const [chunk] = await once(parent.stdout, 'data')
    expect(await isGroupAlive(Number(String(chunk)))).toBe(false)
    killGroup(parent.pid!, 'SIGKILL')
  })

  it('knows a group that was never there', async () => {
    expect(await isGroupAlive(NOBODY)).toBe(false)
  })
})
