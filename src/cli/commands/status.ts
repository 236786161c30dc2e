/** `stdio-bus status`: what a running bus is doing, for people, for programs and for Prometheus. */
import type { Command } from 'commander'
import { askControl, type ControlOptions } from '../../console/control-client.ts'
import { formatMetrics } from '../../console/metrics.ts'
import { formatStatus, type Status } from '../../console/status-view.ts'

interface StatusOptions extends ControlOptions {
  readonly json?: boolean
  readonly metrics?: boolean
  readonly watch?: boolean
}

const WATCH_MS = 1_000
const CLEAR = '\x1b[H\x1b[2J'

export function addStatus(program: Command): void {
  program
    .command('status')
    .description('what a running bus is doing: workers, sessions, requests, queues')
    .option('--control <path>', 'its control socket (default: the only running bus)')
    .option('--unix <path>', 'or a Unix socket it listens on')
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
  const status = (await askControl(options, 'status')) as Status
  if (options.metrics) return formatMetrics(status)
  if (options.json) return `${JSON.stringify(status, null, options.watch ? 0 : 2)}\n`
  return formatStatus(status, { color: process.stdout.isTTY === true })
}
