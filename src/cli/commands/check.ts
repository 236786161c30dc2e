/**
 * `stdio-bus check`: looks a configuration over, on paper and against this machine, and reports everything at once.
 *
 * Exit 0 when the bus would start, 2 when not. It starts nothing.
 */
import type { Command } from 'commander'
import { checkAccess } from '../../access/access-check.ts'
import { checkCertificates } from '../../access/certificate-check.ts'
import { type CheckContext, checkMachine } from '../../config/check.ts'
import { byPlace, type Problem } from '../../config/problem.ts'
import { DEFAULT_FILE, readConfig } from '../../config/read.ts'
import { formatProblems, formatProblemsJson } from '../../config/report.ts'
import type { Outcome } from './init.ts'

export interface CheckOptions {
  readonly config?: string | undefined
  readonly json?: boolean | undefined
  readonly color?: boolean
  readonly environment?: NodeJS.ProcessEnv
}

export function addCheck(program: Command): void {
  program
    .command('check')
    .description('look the configuration over: keys, programs, directories, permissions, variables, access')
    .option('--config <path>', `the file to check (default: ./${DEFAULT_FILE})`)
    .option('--json', 'print one JSON document')
    .action(async (_options, command: Command) => {
      const { code, text } = await check({ color: wantsColor(), ...command.optsWithGlobals() })
      process.stdout.write(text)
      process.exitCode = code
    })
}

export async function check({
  config: path,
  json,
  color = false,
  environment = process.env,
}: CheckOptions): Promise<Outcome> {
  const file = path ?? DEFAULT_FILE
  const problems = await allProblems(path, environment)
  const code = problems.some(({ severity }) => severity === 'error') ? 2 : 0
  if (json) return { code, text: formatProblemsJson(file, problems) }
  if (problems.length === 0) return { code, text: `${file}: no problems\n` }
  return { code, text: formatProblems(problems, { color }) }
}

async function allProblems(path: string | undefined, environment: NodeJS.ProcessEnv): Promise<readonly Problem[]> {
  const reading = await readConfig(path, { environment })
  if (reading.ok) return everythingOf({ ...reading, environment }, [])
  if (reading.draft === undefined) return reading.problems
  return everythingOf({ ...reading.draft, environment }, reading.problems)
}

/** Those of the configuration in its order, then those of the access file in its own. */
async function everythingOf(context: CheckContext, known: readonly Problem[]): Promise<readonly Problem[]> {
  const access = checkAccess(context)
  const isOwn = ({ file }: Problem): boolean => file === context.source.file
  const machine = [...(await checkMachine(context)), ...checkCertificates(context)]
  const own = [...known, ...machine, ...access.filter(isOwn)].sort(byPlace)
  return [...own, ...access.filter((problem) => !isOwn(problem))]
}

function wantsColor(): boolean {
  return process.stdout.isTTY === true && !process.env['NO_COLOR']
}
