/**
 * Puts processes on cores. Left to the scheduler, a bus that happens to share a core with its peers gets larger chunks and cheaper
 * wake-ups than one that does not: figures of the same program differ threefold from round to round, and ratios mean nothing.
 *
 * Needs Linux and `taskset`; without, or on one core, everything is left where it is, and the report says so.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const PLACEMENTS = {
  /** What is measured has the first core to itself, everybody else shares the others. */
  apart: ([first, ...others]) => ({ subject: [first], others }),
  /** All on one core: the chunks are largest, the limit is lowest. */
  together: ([first]) => ({ subject: [first], others: [first] }),
}

export const PLACEMENT_NAMES = [...Object.keys(PLACEMENTS), 'free']

/** The placement by name, or `free` where it cannot be had. */
export function choosePlacement(name) {
  const cores = allowedCores()
  if (name === 'free' || cores.length < 2 || !hasTaskset()) return { name: 'free', placeSubject() {}, placeOthers() {} }
  const { subject, others } = PLACEMENTS[name](cores)
  return { name, placeSubject: (...pids) => place(pids, subject), placeOthers: (...pids) => place(pids, others) }
}

function place(pids, cores) {
  for (const pid of pids) execFileSync('taskset', ['-acp', cores.join(','), String(pid)], { stdio: 'ignore' })
}

function hasTaskset() {
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Spelled like `0-3,8`. */
function allowedCores() {
  const [, list] = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'latin1'))
  return list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}
