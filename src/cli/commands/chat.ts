/** `stdio-bus chat`: a small ACP client in the terminal, for trying any agent or pool. */
import type { Command } from 'commander'
import { openConnection } from '../chat/connection.ts'
import { Conversation } from '../chat/conversation.ts'
import { askOnTerminal } from '../chat/permission.ts'
import { readQuestions } from '../chat/questions.ts'
import { Screen } from '../chat/screen.ts'
import { type ChatOptions, chooseTarget, type Target } from '../chat/target.ts'
import { addReachOptions } from '../reach.ts'
import { UserMistake } from '../user-mistake.ts'
import { VERSION } from '../version.ts'

/** What a shell reports for a program ended by Ctrl-C. */
const INTERRUPTED = 130

export function addChat(program: Command, argv: readonly string[] = process.argv): void {
  const command = program
    .command('chat')
    .description('ask an agent or a pool from the terminal; without a target it is the built-in demo')
    .argument('[question]', 'what to ask; without it you are prompted, or the lines of stdin are asked')
    .argument('[command...]', 'after --: the command of an agent to start')
    .option('--agent <command line>', 'start this agent, like "opencode acp"')
    .option('--unix <path>', 'ask a bus at this Unix socket')
  addReachOptions(command)
    .option('--pool <name>', 'ask this pool of the bus')
    .option('--demo', 'ask the built-in demo: no key, no network')
    .action(async (question: string | undefined, words: string[], options: ChatOptions) => {
      const started = afterDashes(argv)
      const operands = [...(question === undefined ? [] : [question]), ...words]
      const asked = operands.slice(0, operands.length - started.length)
      if (asked.length > 1) throw new UserMistake('put the question in quotes, and a command after --')
      process.exitCode = await chat(asked[0], chooseTarget(options, started))
    })
}

/** Commander hands over the words on both sides of `--` as one list. */
function afterDashes(argv: readonly string[]): readonly string[] {
  const dashes = argv.indexOf('--')
  return dashes === -1 ? [] : argv.slice(dashes + 1)
}

async function chat(question: string | undefined, target: Target): Promise<number> {
  const connection = await openConnection(target)
  const isTerminal = process.stdout.isTTY === true
  const aside = isTerminal ? process.stdout : process.stderr
  const screen = new Screen({ answer: process.stdout, aside, color: isTerminal && !process.env['NO_COLOR'] })
  const ask = isTerminal && process.stdin.isTTY ? askOnTerminal : undefined
  const conversation = new Conversation({ connection, screen, ask, version: VERSION, cwd: process.cwd() })
  const left = new Promise<number>((resolve) => {
    process.on('SIGINT', () => {
      if (!conversation.interrupt()) resolve(INTERRUPTED)
    })
  })
  try {
    return await Promise.race([converse(conversation, question), left])
  } finally {
    screen.endLine()
    process.stdin.destroy()
    await conversation.close()
  }
}

async function converse(conversation: Conversation, question: string | undefined): Promise<number> {
  await conversation.open()
  for await (const asked of readQuestions(question)) {
    const stopReason = await conversation.ask(asked)
    if (question !== undefined && stopReason === 'cancelled') return INTERRUPTED
  }
  return 0
}
