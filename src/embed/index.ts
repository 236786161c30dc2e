/**
 * `stdio-bus`: the bus inside a program.
 *
 * ```js
 * import { startBus } from 'stdio-bus'
 *
 * const bus = await startBus({ config: { pools: [{ id: 'coder', command: 'my-agent' }] } })
 * bus.on('worker', ({ pool, what }) => console.log(pool, what))
 * const connection = await bus.connect({ pool: 'coder' })   // as stdio-bus/client gives it
 * await bus.stop()
 * ```
 *
 * It is the daemon, with the same configuration and the same promise. It installs no signal handler and ends no process
 * but its workers; several can run in one program. A program that is killed leaves no worker behind.
 */
import { Bus } from './bus.ts'
import type { EmbeddedBus, StartOptions } from './types.ts'

export type { BusConnection } from '../client/connection.ts'
export type { ConfigObject } from './config-object.ts'

export { BusConfigError, type ConfigProblem } from './errors.ts'
export type {
  BusEvents,
  BusStatus,
  ClientNews,
  EmbeddedBus,
  LogEntry,
  LogLevel,
  StartOptions,
  WorkerNews,
} from './types.ts'

/** Starts a bus; resolves when it serves. Fails with a BusConfigError, or because a door cannot be opened. */
export async function startBus(options: StartOptions): Promise<EmbeddedBus> {
  return Bus.start(options)
}
