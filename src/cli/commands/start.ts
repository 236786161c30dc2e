/**
 * `stdio-bus start`: the bus in the background, with a log file; it returns when the bus is ready.
 *
 * The flags are those of `serve`. A bus that runs with this configuration already is left as it is, and said.
 */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { DEFAULT_FILE } from '../../config/read.ts'
import { startInBackground } from '../background.ts'
import { describeStarted, explainStart, refuseMistakes, runningWith } from '../started-bus.ts'
import { UserMistake } from '../user-mistake.ts'
import { addServeOptions } from './serve.ts'

export function addStart(program: Command, argv: readonly string[] = process.argv): void {
  addServeOptions(
    program.command('start').description('run the bus in the background, with a log file; returns when it is ready'),
  ).action(async (options: { config?: string; stdio?: boolean }) => {
    if (options.stdio) throw new UserMistake('--stdio needs a terminal or a host: use stdio-bus serve --stdio for that')
    await start(resolve(options.config ?? DEFAULT_FILE), withoutConfig(argv.slice(argv.indexOf('start') + 1)))
  })
}

async function start(config: string, flags: readonly string[]): Promise<void> {
  await refuseMistakes(config)
  const known = await runningWith(config)
  if (known !== undefined) {
    const where = known.addresses.join(', ')
    return void process.stdout.write(`a bus runs with ${config} already: pid ${known.pid}, ${where}\n`)
  }
  const find = async () => (await runningWith(config))?.control
  await startInBackground({ config, flags, cwd: process.cwd(), find }).catch(explainStart)
  process.stdout.write(await describeStarted((await runningWith(config))!))
}

/** It is handed on as a full path. */
function withoutConfig(flags: readonly string[]): readonly string[] {
  const at = flags.indexOf('--config')
  const others = at === -1 ? flags : flags.toSpliced(at, 2)
  return others.filter((flag) => !flag.startsWith('--config='))
}
