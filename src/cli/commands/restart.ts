/**
 * `stdio-bus restart [POOL]`: the workers of one pool anew, while the bus goes on; without a pool the whole bus, if
 * `stdio-bus start` has put it into the background.
 */
import type { Command } from 'commander'
import { askControl, type ControlOptions, findBus } from '../../console/control-client.ts'
import type { RunRecord } from '../../console/running.ts'
import { startAgain } from '../background.ts'
import { describeStarted, explainStart, refuseMistakes, runningWith } from '../started-bus.ts'
import { stopBus } from '../stop-bus.ts'
import { UserMistake } from '../user-mistake.ts'
import { addBusOptions } from '../which-bus.ts'

interface RestartFlags extends ControlOptions {
  readonly now?: boolean
}

export function addRestart(program: Command): void {
  addBusOptions(
    program
      .command('restart')
      .description('start the workers of a pool anew; without a pool the whole bus, if it is in the background')
      .argument('[pool]', 'old workers take nothing new and end with their last session'),
  )
    .option('--now', 'with a pool: end its old workers at once; else: do not wait for outstanding requests')
    .action(async (pool: string | undefined, { now, ...which }: RestartFlags) => {
      const bus = await findBus(which)
      const text = pool === undefined ? await restartBus(bus, now) : await restartPool(bus, pool, now)
      process.stdout.write(text)
    })
}

async function restartPool({ control }: RunRecord, pool: string, now = false): Promise<string> {
  const asked = await askControl({ control }, 'restart', { pool, now })
  const { workers, retiring } = asked as { workers: number; retiring: number }
  const rest =
    now || retiring === 0 ? '' : `; ${retiring} old ones end with their last session (--now ends them at once)`
  return `restarted ${pool}: ${workers} new ${workers === 1 ? 'worker' : 'workers'}${rest}\n`
}

async function restartBus(bus: RunRecord, now = false): Promise<string> {
  const { started, config } = bus
  if (started === undefined)
    throw new UserMistake(
      'this bus was not put into the background by stdio-bus start: whoever runs it (a terminal, systemctl) must restart it; stdio-bus restart POOL starts the workers of a pool anew',
    )
  await refuseMistakes(config)
  await stopBus(bus, { now, say: (sentence) => void process.stderr.write(`${sentence}\n`) })
  await startAgain(config, started, async () => (await runningWith(config))?.control).catch(explainStart)
  return describeStarted((await runningWith(config))!)
}
