/** `stdio-bus reload`: a running bus reads its configuration again; a bad file changes nothing. */
import type { Command } from 'commander'
import { askControl, type ControlOptions } from '../../console/control-client.ts'

export function addReload(program: Command): void {
  program
    .command('reload')
    .description('let a running bus read its configuration again; a bad file changes nothing')
    .option('--control <path>', 'its control socket (default: the only running bus)')
    .option('--unix <path>', 'or a Unix socket it listens on')
    .action(async (options: ControlOptions) => {
      const { pools } = (await askControl(options, 'reload')) as { pools: string[] }
      process.stdout.write(`reloaded: ${pools.join(', ')}\n`)
    })
}
