/**
 * From a change of the configuration file to what its user is told: the mistakes that it would make, what this machine has
 * to say of the new pools, and what to type next.
 */
import { resolve } from 'node:path'
import { checkMachine } from '../config/check.ts'
import { ConfigEditFailure, editConfig } from '../config/edit-config.ts'
import type { PoolEdit } from '../config/pool-edit.ts'
import { byPlace, type Problem } from '../config/problem.ts'
import { DEFAULT_FILE, readConfig } from '../config/read.ts'
import { formatProblems } from '../config/report.ts'
import { EditFailure } from '../host/replace-file.ts'
import { wantsColor } from '../host/terminal.ts'
import { programName } from './program-name.ts'
import { runningWith } from './started-bus.ts'
import { UserMistake } from './user-mistake.ts'
import { WorldFailure } from './world-failure.ts'

/** The notes of the change. A file that is not there is made. */
export async function changeConfig(file: string, change: (text: string) => PoolEdit): Promise<readonly string[]> {
  let notes: readonly string[] = []
  try {
    await editConfig(resolve(file), (text) => {
      const edit = change(text)
      notes = edit.notes
      return edit.text
    })
  } catch (error) {
    throw told(error)
  }
  return notes
}

function told(error: unknown): unknown {
  if (error instanceof EditFailure) return new WorldFailure(error.message, { cause: error })
  if (!(error instanceof ConfigEditFailure)) return error
  const problems = error.problems.length === 0 ? '' : `\n${format(error.problems).trimEnd()}`
  return new UserMistake(`${error.message}${problems}`, { cause: error })
}

export interface Troubles {
  /** For people; empty where there are none. */
  readonly text: string
  /** No bus would start so. */
  readonly areErrors: boolean
}

const NONE: Troubles = { text: '', areErrors: false }

/** What keeps these pools from working here, now: a program that is not there, a variable that is not set. */
export async function troublesOf(file: string, pools: readonly string[]): Promise<Troubles> {
  const reading = await readConfig(file)
  const read = reading.ok ? reading : reading.draft
  if (read === undefined) return NONE
  const known = reading.ok ? [] : reading.problems
  const all = [...known, ...(await checkMachine({ ...read, environment: process.env }))]
  const places = read.config.bus.pools.flatMap(({ id }, index) => (pools.includes(id) ? [`pools[${index}]`] : []))
  const own = all
    .filter(({ severity }) => severity !== 'note')
    .filter(({ path }) => places.some((place) => path === place || path.startsWith(`${place}.`)))
  if (own.length === 0) return NONE
  return { text: format(own), areErrors: own.some(({ severity }) => severity === 'error') }
}

function format(problems: readonly Problem[]): string {
  return formatProblems([...problems].sort(byPlace), { color: wantsColor(process.stderr) })
}

/** What makes the change count. */
export async function nextStep(file: string, { areErrors }: Troubles = NONE): Promise<string> {
  const flag = file === DEFAULT_FILE ? '' : ` --config ${file}`
  const command = (await runningWith(file)) === undefined ? 'start' : 'reload'
  return `Next: ${areErrors ? 'mend the errors above, then ' : ''}${programName()} ${command}${flag}\n`
}
