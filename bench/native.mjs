/**
 * Load generator and worker in C, so that what they cost does not hide what the bus costs. Compiled into a temporary folder on first
 * use; without a compiler there are none, and the ones in JavaScript take their place.
 */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { headBytes, ID_AT, idOf, PATCH_AT, patchOf, SESSION_DIGITS, tailBytes } from './line.mjs'
import { cpuSeconds } from './process-figures.mjs'

let folder

/** The folder of the compiled programs, or undefined where there is no compiler. */
function compiled() {
  if (folder !== undefined) return folder ?? undefined
  const made = mkdtempSync(join(tmpdir(), 'stdio-bus-bench-native-'))
  process.on('exit', () => rmSync(made, { recursive: true, force: true }))
  try {
    for (const name of ['load', 'echo'])
      execFileSync('gcc', ['-O2', '-D_GNU_SOURCE', '-o', join(made, name), sourceOf(name)], { stdio: 'ignore' })
    folder = made
  } catch {
    folder = null
  }
  return folder ?? undefined
}

const sourceOf = (name) => fileURLToPath(new URL(`native/${name}.c`, import.meta.url))

export const hasNative = () => compiled() !== undefined

/** The command line of the worker; `mark` tells those of one target from all others. */
export const nativeWorker = ({ lineBytes, asks }, mark) => [
  join(compiled(), 'echo'),
  mark,
  String(lineBytes),
  String(PATCH_AT),
  patchOf(asks).toString(),
]

/** One round, as `load.mjs` makes it: the same figures, the generator a process of its own on `cores`. */
export async function nativeRound({ address, clients, inFlight, warmMs, roundMs, watch, greeting, ...layout }, place) {
  const template = join(compiled(), 'template')
  const line = Buffer.concat([headBytes(idOf(0, 0, 1)), tailBytes({ ...layout, session: 0 })])
  writeFileSync(template, line)
  const sessionAt = line.lastIndexOf('"') - SESSION_DIGITS
  const where = address.path ?? String(address.port)
  const numbers = [ID_AT, idOf(0, 0, 1), sessionAt, warmMs, roundMs].map(String)
  const more = greeting === undefined ? [] : [join(compiled(), 'greeting')]
  if (greeting !== undefined) writeFileSync(more[0], greeting)
  const child = spawn(join(compiled(), 'load'), [
    where,
    String(clients),
    String(inFlight),
    template,
    ...numbers,
    ...more,
  ])
  place(child.pid)
  let errors = ''
  child.stderr.on('data', (text) => {
    errors += text
  })
  let before
  let figures
  for await (const line of createInterface({ input: child.stdout })) {
    const reading = readCpu({ ...watch, load: [child.pid] })
    if (line === 'begin') before = reading
    else figures = { ...JSON.parse(line), ...spent(before, reading) }
  }
  if (figures === undefined) throw new Error(`the load generator failed: ${errors.trim()}`)
  const busy = Object.entries(figures.busiest).map(([role, seconds]) => [role, seconds / figures.seconds])
  return {
    ...figures,
    busy: Object.fromEntries(busy),
    requestsPerSecond: figures.answered / figures.seconds,
  }
}

const readCpu = (watch) =>
  Object.fromEntries(Object.entries(watch).map(([role, pids]) => [role, pids.map((pid) => cpuSeconds(pid))]))

/** Of several processes of a role the busiest tells whether the role was the bottleneck. */
function spent(before, after) {
  const cpu = {}
  const busiest = {}
  for (const role of Object.keys(after)) {
    const each = after[role].map((seconds, index) => seconds - before[role][index])
    cpu[role] = each.reduce((sum, seconds) => sum + seconds, 0)
    busiest[role] = Math.max(0, ...each)
  }
  return { cpu, busiest }
}
