/** `stdio-bus completion SHELL`: a script that teaches a shell the commands and options of this program. */
import { Argument, type Command } from 'commander'
import { bashCompletion } from '../completion/bash.ts'
import { fishCompletion } from '../completion/fish.ts'
import { manualPage } from '../completion/manual.ts'
import { shapeOf } from '../completion/shape.ts'
import { zshCompletion } from '../completion/zsh.ts'
import { VERSION } from '../version.ts'

const SHELLS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const

/** To be given all the other commands. */
export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('print the completion of this program for a shell, for its start-up file')
    .addArgument(new Argument('<shell>', 'which one').choices(Object.keys(SHELLS)))
    .action((shell: keyof typeof SHELLS) => {
      process.stdout.write(SHELLS[shell](shapeOf(program)))
    })
  program
    .command('manual', { hidden: true })
    .description('print the manual page')
    .action(() => {
      process.stdout.write(manualPage(shapeOf(program), VERSION))
    })
}
