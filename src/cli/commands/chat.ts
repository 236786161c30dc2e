/** `stdio-bus chat`: a small ACP client in the terminal, for trying any agent or pool. */
import type { Command } from 'commander'
import { afterDashes } from '../after-dashes.ts'
import { runChat } from '../chat/run.ts'
import { type ChatOptions, chooseTarget } from '../chat/target.ts'
import { addReachOptions } from '../reach.ts'
import { UserMistake } from '../user-mistake.ts'

export function addChat(program: Command, argv: readonly string[] = process.argv): void {
  const command = program
    .command('chat')
    .description('ask an agent or a pool: the bus that runs, the endpoint of OPENAI_BASE_URL, else the built-in demo')
    .argument('[question]', 'what to ask; without it you are prompted, or the lines of stdin are asked')
    .argument('[command...]', 'after --: the command of an agent to start')
    .option('--agent <command line>', 'start this agent, like "opencode acp"')
    .option('--unix <path>', 'ask a bus at this Unix socket')
    .option('--config <path>', 'ask the bus that runs with this configuration')
  addReachOptions(command)
    .option('--pool <name>', 'ask this pool of the bus')
    .option('--demo', 'ask the built-in demo: no key, no network')
    .action(async (question: string | undefined, words: string[], options: ChatOptions) => {
      const started = afterDashes(argv)
      const operands = [...(question === undefined ? [] : [question]), ...words]
      const asked = operands.slice(0, operands.length - started.length)
      if (asked.length > 1) throw new UserMistake('put the question in quotes, and a command after --')
      process.exitCode = await runChat(asked[0], await chooseTarget(options, started))
    })
}
