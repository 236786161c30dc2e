/** `stdio-bus reload`: a running bus reads its configuration again and says what changed; a bad file changes nothing. */
import type { Command } from 'commander'
import { type ConfigChanges, describeChange } from '../../config/changes.ts'
import { askControl, type ControlOptions } from '../../console/control-client.ts'
import { printable } from '../../wire/printable.ts'
import { addBusOptions } from '../which-bus.ts'

export function addReload(program: Command): void {
  addBusOptions(
    program
      .command('reload')
      .description('let a running bus read its configuration again, and say what changed; a bad file changes nothing'),
  ).action(async (options: ControlOptions) => {
    const { changes } = (await askControl(options, 'reload')) as { changes: ConfigChanges }
    const lines = [...changes.pools.map(describeChange), ...changes.keys.map((key) => `changed ${key}`)]
    process.stdout.write(
      lines.length === 0 ? 'nothing has changed\n' : lines.map((line) => `${printable(line)}\n`).join(''),
    )
  })
}
