/** `stdio-bus stop`: ends a running bus in good order, and returns when it has ended. */
import type { Command } from 'commander'
import { type ControlOptions, findBus, findBuses } from '../../console/control-client.ts'
import { stopBus } from '../stop-bus.ts'
import { addBusOptions } from '../which-bus.ts'

interface StopFlags extends ControlOptions {
  readonly now?: boolean
  readonly all?: boolean
}

export function addStop(program: Command): void {
  addBusOptions(
    program.command('stop').description('end a running bus: outstanding requests are answered first, then it is gone'),
  )
    .option('--now', 'do not wait for outstanding requests')
    .option('--all', 'every bus of this user')
    .action(async ({ now, all, ...which }: StopFlags) => {
      const buses = all ? await findBuses(which) : [await findBus(which)]
      const say = (sentence: string): void => void process.stderr.write(`${sentence}\n`)
      for (const bus of buses) {
        const pid = await stopBus(bus, { now: now === true, say })
        process.stdout.write(`stopped: pid ${pid}\n`)
      }
    })
}
