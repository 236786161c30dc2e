/** `stdio-bus replay FILE`: runs this kernel over a recording, proves that it decides the same, and shows a stretch of it. */
import { statSync } from 'node:fs'
import { type Command, InvalidArgumentError } from 'commander'
import { UserMistake } from '../user-mistake.ts'

interface ReplayOptions {
  readonly from?: number
  readonly to?: number
}

/** So many events are shown when only one end is given. */
const STRETCH = 40

export function addReplay(program: Command, write = (text: string): unknown => process.stdout.write(text)): void {
  program
    .command('replay')
    .description('run the kernel over a recording of serve --record and prove that it decides the same')
    .argument('<file>', 'the recording')
    .option('--from <number>', 'show the events from this one on as a sequence diagram', parseNumber)
    .option('--to <number>', 'up to this one', parseNumber)
    .action(async (file: string, options: ReplayOptions) => {
      await run(file, options, write)
    })
}

async function run(file: string, { from, to }: ReplayOptions, write: (text: string) => unknown): Promise<void> {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found?.isFile() !== true) {
    const trouble = found === undefined ? `there is no ${file}` : `${file} is no file`
    throw new UserMistake(`${trouble}: name the file that serve --record has written`)
  }
  const { replay } = await import('../recording/replay.ts')
  const { Sequence } = await import('../recording/sequence.ts')
  const isShown = from !== undefined || to !== undefined
  const first = from ?? Math.max(1, (to ?? 1) - STRETCH + 1)
  const sequence = isShown ? new Sequence(first, to ?? first + STRETCH - 1) : undefined
  try {
    const { events, decisions, linesOut, durationMs } = await replay(file, sequence)
    if (sequence !== undefined) write(sequence.render())
    write(
      `${events} events in ${(durationMs / 1000).toFixed(1)} s, ${decisions} decisions and ${linesOut} lines out: the same\n`,
    )
  } catch (error) {
    // What led to a difference is worth seeing.
    if (sequence !== undefined) write(sequence.render())
    throw error
  }
}

function parseNumber(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number) || number < 1) throw new InvalidArgumentError('events are counted from 1')
  return number
}
