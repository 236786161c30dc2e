/** `stdio-bus remove NAME`: takes a pool out of the configuration file, whose other comments stay. */
import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { poolNames, removePool } from '../../config/pool-edit.ts'
import { DEFAULT_FILE } from '../../config/read.ts'
import { changeConfig, nextStep } from '../change-config.ts'
import { UserMistake } from '../user-mistake.ts'

export function addRemove(program: Command): void {
  program
    .command('remove')
    .description('take a pool out of the configuration; its other comments stay')
    .argument('<name>', 'the pool')
    .option('--config <path>', 'the file to change', DEFAULT_FILE)
    .action(async (name: string, { config: file }: { config: string }) => {
      if (!existsSync(file)) throw new UserMistake(`there is no ${file}: name the configuration with --config`)
      const notes = await changeConfig(file, (text) => {
        refuse(name, poolNames(text), file)
        return removePool(text, name)
      })
      process.stdout.write(`removed ${name} from ${file}\n${notes.map((note) => `${note}\n`).join('')}`)
      process.stdout.write(await nextStep(file))
    })
}

function refuse(name: string, names: readonly string[], file: string): void {
  if (!names.includes(name))
    throw new UserMistake(`${file} has no pool ${JSON.stringify(name)}: it has ${names.join(', ')}`)
  if (names.length === 1)
    throw new UserMistake(
      `${name} is the only pool of ${file}, and a bus needs one: add another first, or remove the file`,
    )
}
