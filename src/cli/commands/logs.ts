/**
 * `stdio-bus logs [POOL] [-f]`: what a bus and its workers have logged, as people read it.
 *
 * A running bus is asked: it keeps its last lines wherever else it logs. Without one the file of the last bus that was in
 * the background is read. With `-f` a bus that goes is waited for.
 */
import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, InvalidArgumentError } from 'commander'
import { DEFAULT_FILE } from '../../config/read.ts'
import {
  ControlFailure,
  ControlMistake,
  type ControlOptions,
  findBus,
  followControl,
} from '../../console/control-client.ts'
import { wantsColor } from '../../host/terminal.ts'
import { logFileFor } from '../background.ts'
import { readLogLine } from '../daemon/log-fields.ts'
import { lineDrawer } from '../daemon/log-line.ts'
import { addBusOptions } from '../which-bus.ts'

interface LogsFlags extends ControlOptions {
  readonly follow?: boolean
  readonly lines: number
  readonly json?: boolean
}

const DEFAULT_LINES = 100
const MAX_LINES = 5_000
const RETRY_MS = 500

export function addLogs(program: Command): void {
  addBusOptions(
    program
      .command('logs')
      .description('what a bus and its workers have logged')
      .argument('[pool]', 'only what its workers write to stderr and what is said of them'),
  )
    .option('-f, --follow', 'go on with every line as it comes; a bus that goes is waited for')
    .option('-n, --lines <count>', 'how many of the last lines', readCount, DEFAULT_LINES)
    .option('--json', 'print the lines as they were logged')
    .action(async (pool: string | undefined, { follow, lines, json, ...which }: LogsFlags) => {
      // A reader like `head` that has seen enough is no failure.
      process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
      const draw = json ? (line: string) => `${line.trimEnd()}\n` : lineDrawer({ color: wantsColor(process.stdout) })
      const show = (line: unknown): void => void process.stdout.write(draw(String(line)))
      if (follow) return followLog(which, { pool, lines }, show)
      await showOnce(which, { pool, lines }, show)
    })
}

interface Wanted {
  readonly pool: string | undefined
  readonly lines: number
}

type Show = (line: unknown) => void

async function showOnce(which: ControlOptions, wanted: Wanted, show: Show): Promise<void> {
  try {
    await followControl(which, 'logs', wanted, show)
  } catch (error) {
    if (!(error instanceof ControlFailure) || error instanceof ControlMistake) throw error
    showFile(which, wanted, show, error)
  }
}

/** The last words of one that has gone. */
function showFile(
  { config = DEFAULT_FILE, control, unix }: ControlOptions,
  wanted: Wanted,
  show: Show,
  none: Error,
): void {
  const file = logFileFor(config)
  if ((control ?? unix) !== undefined || !existsSync(file)) throw none
  process.stderr.write(`no bus runs with ${config}; the last one has logged to ${file}:\n`)
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
  const own = lines.filter((line) => wanted.pool === undefined || readLogLine(line)?.['pool'] === wanted.pool)
  for (const line of own.slice(own.length - Math.min(wanted.lines, own.length))) show(line)
}

/** Until interrupted. */
async function followLog(which: ControlOptions, wanted: Wanted, show: Show): Promise<never> {
  await findBus(which)
  for (let lines = wanted.lines; ; lines = MAX_LINES) {
    await followControl(which, 'logs', { ...wanted, lines, follow: true }, show).catch(onlyGone)
    process.stderr.write('the bus has gone; waiting for it to come back\n')
    while (!(await isThere(which))) await sleep(RETRY_MS)
  }
}

async function isThere(which: ControlOptions): Promise<boolean> {
  return findBus(which).then(
    ({ pid }) => pid !== 0,
    (error: unknown) => onlyGone(error) ?? false,
  )
}

function onlyGone(error: unknown): undefined {
  if (!(error instanceof ControlFailure) || error instanceof ControlMistake) throw error
}

function readCount(text: string): number {
  const count = Number(text)
  if (/^\d+$/.test(text) && count <= MAX_LINES) return count
  throw new InvalidArgumentError(`Give a whole number from 0 to ${MAX_LINES}.`)
}
