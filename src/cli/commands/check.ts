/**
 * `stdio-bus check`: looks a configuration over, on paper and against this machine, and reports everything at once.
 *
 * Exit 0 when the bus would start, 2 when not; with `--strict` also 2 for what would not work once it has. It starts nothing.
 */
import type { Command } from 'commander'
import type { Problem } from '../../config/problem.ts'
import { DEFAULT_FILE, readConfig } from '../../config/read.ts'
import { formatProblems, formatProblemsJson, formatVariables } from '../../config/report.ts'
import { variablesOf } from '../../config/variables.ts'
import { wantsColor } from '../../host/terminal.ts'
import { allProblemsOf } from '../all-problems.ts'
import type { Outcome } from './init.ts'

export interface CheckOptions {
  readonly config?: string | undefined
  readonly json?: boolean | undefined
  /** Warnings count. */
  readonly strict?: boolean | undefined
  readonly allowUnauthenticated?: boolean | undefined
  readonly color?: boolean
  readonly environment?: NodeJS.ProcessEnv
}

export function addCheck(program: Command): void {
  program
    .command('check')
    .description('look the configuration over: keys, programs, directories, permissions, variables, access')
    .option('--config <path>', `the file to check (default: ./${DEFAULT_FILE})`)
    .option('--json', 'print one JSON document')
    .option('--strict', 'exit code 2 also for warnings')
    .option('--allow-unauthenticated', 'judge it as for a bus that is started with that flag')
    .action(async (_options, command: Command) => {
      const { code, text } = await check({ color: wantsColor(process.stdout), ...command.optsWithGlobals() })
      process.stdout.write(text)
      process.exitCode = code
    })
}

export async function check(options: CheckOptions): Promise<Outcome> {
  const { config: path, json, strict, color = false, environment = process.env } = options
  const file = path ?? DEFAULT_FILE
  const reading = await readConfig(path, { environment })
  const allowUnauthenticated = options.allowUnauthenticated === true
  const problems = await allProblemsOf(reading, environment, { allowUnauthenticated })
  const read = reading.ok ? reading : reading.draft
  const variables = read === undefined ? [] : variablesOf({ ...read, environment })
  const isAgainst = ({ severity }: Problem): boolean =>
    severity === 'error' || (strict === true && severity === 'warning')
  const code = problems.some(isAgainst) ? 2 : 0
  if (json) return { code, text: formatProblemsJson(file, problems, variables) }
  const verdict = problems.length === 0 ? `${file}: no problems\n` : formatProblems(problems, { color })
  return { code, text: `${verdict}${reading.ok ? formatVariables(variables, { color }) : ''}` }
}
