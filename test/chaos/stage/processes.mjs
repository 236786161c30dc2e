/**
 * What the system knows of processes, from outside (Linux, /proc). A zombie counts as gone: it runs nothing and holds nothing.
 *
 * A process is named by its number and the time it started, so that a number that is used again is nobody's orphan.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

const MIB_OF_KIB = 1 / 1024
const TICKS_PER_SECOND = 100

function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const command = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'))
    return {
      pid: Number(pid),
      command,
      state: fields[0],
      parent: Number(fields[1]),
      fields,
      name: `${pid}@${fields[19]}`,
    }
  } catch {
    return undefined // it ended while we looked
  }
}

function living() {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(statOf)
    .filter((stat) => stat !== undefined && stat.state !== 'Z')
}

/** Every living process below `pid`, at any depth. */
export function descendantsOf(pid) {
  const all = living()
  const found = []
  for (const queue = [pid]; queue.length > 0; ) {
    const parent = queue.shift()
    for (const stat of all) {
      if (stat.parent !== parent) continue
      found.push(stat)
      queue.push(stat.pid)
    }
  }
  return found
}

/** Every living process that works in `folder`: what a bus has started there, however far it has strayed. */
export function processesWorkingIn(folder) {
  return living().filter(({ pid }) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`).replace(/ \(deleted\)$/, '') === folder
    } catch {
      return false
    }
  })
}

/** Which of `processes` still live. */
export function stillAlive(processes) {
  return processes.filter(({ pid, name }) => {
    const now = statOf(pid)
    return now !== undefined && now.state !== 'Z' && now.name === name
  })
}

/** What the open descriptors of a process lead to: `12 socket:[345]`, `7 pipe:[6]`, a path. */
export function descriptorsOf(pid) {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [`${fd} ${readlinkSync(`/proc/${pid}/fd/${fd}`)}`]
    } catch {
      return [] // closed between the listing and the look
    }
  })
}

function memoryMib(pid, field) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) * MIB_OF_KIB
  } catch {
    return 0
  }
}

export const rssMib = (pid) => memoryMib(pid, 'VmRSS')
/** The most it has ever held: the system keeps this, so no peak falls between two looks. */
export const peakRssMib = (pid) => memoryMib(pid, 'VmHWM')

export function cpuSeconds(pid) {
  const stat = statOf(pid)
  return stat === undefined ? 0 : (Number(stat.fields[11]) + Number(stat.fields[12])) / TICKS_PER_SECOND
}

/** Being gone already is fine. */
export function signal(pid, name) {
  try {
    process.kill(pid, name)
    return true
  } catch {
    return false
  }
}
