/** `stdio-bus status`: what a running bus is doing, for people, for programs and for Prometheus. */
import type { Command } from 'commander'
import { askControl, type ControlOptions } from '../../console/control-client.ts'
import { formatMetrics } from '../../console/metrics.ts'
import { formatStatus, type Status } from '../../console/status-view.ts'
import { openAsker } from '../ask-bus.ts'
import { addReachOptions, namesDoor, type ReachOptions } from '../reach.ts'
import { UserMistake } from '../user-mistake.ts'

interface StatusOptions extends ControlOptions, Omit<ReachOptions, 'unix'> {
  readonly json?: boolean
  readonly metrics?: boolean
  readonly watch?: boolean
}

const WATCH_MS = 1_000
const CLEAR = '\x1b[H\x1b[2J'

export function addStatus(program: Command): void {
  const command = program
    .command('status')
    .description('what a running bus is doing: workers, sessions, requests, queues')
    .option('--control <path>', 'its control socket (default: the only running bus)')
    .option('--unix <path>', 'or a Unix socket it listens on')
  addReachOptions(command)
    .option('--json', 'print one JSON document')
    .option('--metrics', 'print Prometheus text')
    .option('--watch', 'print again every second')
    .action(async (options: StatusOptions) => {
      if (!options.watch) return void process.stdout.write(await show(options))
      for (;;) {
        const text = await show(options)
        process.stdout.write(process.stdout.isTTY ? `${CLEAR}${text}` : text)
        await new Promise((resolve) => setTimeout(resolve, WATCH_MS))
      }
    })
}

async function show(options: StatusOptions): Promise<string> {
  const status = (await ask(options)) as Status
  if (options.metrics) return formatMetrics(status)
  if (options.json) return `${JSON.stringify(status, null, options.watch ? 0 : 2)}\n`
  return formatStatus(status, { color: process.stdout.isTTY === true })
}

/** Its control socket, or a door of it where one is named. */
async function ask(options: StatusOptions): Promise<unknown> {
  const { control, unix, ...reach } = options
  if (!namesDoor(reach)) return askControl(options, 'status')
  if ((control ?? unix) !== undefined) throw new UserMistake('give one of --control, --unix, --tcp and --tls')
  const asker = await openAsker(reach)
  try {
    return await asker.ask('bus::status')
  } finally {
    await asker.close()
  }
}
