/**
 * What the system knows of a process from outside: CPU time, memory, command line. Linux only (/proc).
 *
 * The measured process is never asked itself: that would cost it time.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

const TICKS_PER_SECOND = 100
const MIB_OF_KIB = 1 / 1024

/** The time all threads of a process have run, in seconds: to the nanosecond where the kernel keeps it, else in ticks. */
export function cpuSeconds(pid) {
  return threadSeconds(pid) || tickSeconds(pid)
}

function threadSeconds(pid) {
  let nanoseconds = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ', 1)[0])
  }
  return nanoseconds / 1e9
}

function tickSeconds(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

const memoryField = (pid, name) =>
  Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'))[1]) * MIB_OF_KIB

export const rssMib = (pid) => memoryField(pid, 'VmRSS')
export const peakRssMib = (pid) => memoryField(pid, 'VmHWM')
/** Lets the peak begin anew from what the process holds now. */
export const forgetPeakRss = (pid) => writeFileSync(`/proc/${pid}/clear_refs`, '5')

/** The processes that run `program`, or Node with it, and have `word` among their arguments. */
export function pidsRunning(program, word) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => commandLine(pid).slice(0, 2).includes(program) && commandLine(pid).includes(word))
    .map(Number)
}

function commandLine(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    return [] // it ended while we looked
  }
}
