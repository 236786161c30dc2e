/** `stdio-bus ls`: every bus that runs for this user, one row each. */
import type { Command } from 'commander'
import { type BusRow, formatBuses } from '../../console/bus-list.ts'
import { askControl, ControlFailure } from '../../console/control-client.ts'
import { findRunning, type RunRecord } from '../../console/running.ts'
import type { Status } from '../../console/status.ts'
import { wantsColor } from '../../host/terminal.ts'

export function addLs(program: Command): void {
  program
    .command('ls')
    .description('list every bus that runs for this user')
    .option('--json', 'print one JSON document')
    .action(async ({ json }: { json?: boolean }) => {
      const rows = await Promise.all((await findRunning()).map(rowOf))
      if (json) return void process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`)
      if (rows.length === 0)
        return void process.stderr.write('no bus runs for this user: start one with stdio-bus start\n')
      process.stdout.write(formatBuses(rows, { color: wantsColor(process.stdout) }))
    })
}

/** One that is just ending is listed with what its record says. */
async function rowOf({ pid, control, addresses, config, log }: RunRecord): Promise<BusRow> {
  const known = { pid, control, addresses, config, ...(log === undefined ? {} : { log }) }
  try {
    const status = (await askControl({ control }, 'status')) as Status
    const { version, uptime_sec, clients, workers } = status
    const ready = workers.filter(({ state }) => state === 'ready').length
    return { ...known, version, uptime_sec, clients, workers: workers.length, workers_ready: ready }
  } catch (error) {
    if (error instanceof ControlFailure) return known
    throw error
  }
}
