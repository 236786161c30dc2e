/**
 * A process group as a whole: to signal it, and to see whether anybody in it still lives.
 *
 * A zombie counts as gone: it does nothing any more, and only its parent can remove it (an orphan's is process 1, which
 * in a container may never do so).
 */
import { readdir, readFile } from 'node:fs/promises'

/** Signals a whole group; false if nobody is left in it, not even a zombie. */
export function killGroup(pgid: number, signal: NodeJS.Signals | 0): boolean {
  // -1 would be every process of the user, 0 our own group.
  if (!Number.isInteger(pgid) || pgid <= 1) throw new RangeError(`${pgid} is not a process group of a worker`)
  try {
    process.kill(-pgid, signal)
    return true
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ESRCH') return false
    // Somebody is there who has changed its user: not ours to end.
    if (code === 'EPERM') return true
    throw error
  }
}

/**
 * Whether the group has a member that is not a zombie. Where the system has no files about processes (macOS), any member
 * counts: zombies of others are removed there at once, and whoever waits for a group waits for so long only.
 */
export async function isGroupAlive(pgid: number): Promise<boolean> {
  if (!killGroup(pgid, 0)) return false
  const processes = await readdir('/proc').catch(() => [])
  const pids = processes.filter((name) => /^\d+$/.test(name))
  for (const pid of pids) {
    if (await isLivingMember(pid, pgid)) return true
  }
  return pids.length === 0
}

async function isLivingMember(pid: string, pgid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The second field is the name of the program and may contain anything, parentheses and spaces included.
  const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return Number(group) === pgid && state !== 'Z' && state !== 'X'
}
