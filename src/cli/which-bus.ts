/** The flags by which a command is told which of this user's buses is meant; without any it is the only one, or
 * of several the one of this folder. */
import type { Command } from 'commander'

export function addBusOptions(command: Command): Command {
  return command
    .option('--control <path>', 'the control socket of the bus (default: the only running bus)')
    .option('--unix <path>', 'or a Unix socket it listens on')
    .option('--config <path>', 'or the configuration it runs with')
}
