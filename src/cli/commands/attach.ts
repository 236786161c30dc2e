/** `stdio-bus attach`: take part in a session that runs in the bus, or look on, from a terminal or a pipe. */
import type { Command } from 'commander'
import { addReachOptions, type ReachOptions } from '../reach.ts'
import { attachTerminal } from '../sessions/attach.ts'
import { attachPipe } from '../sessions/attach-pipe.ts'
import { BusLine } from '../sessions/bus-line.ts'
import { findSession } from '../sessions/known-sessions.ts'

interface AttachOptions extends ReachOptions {
  readonly observe?: boolean
  readonly pool?: string
}

export function addAttach(program: Command): void {
  const command = program
    .command('attach')
    .description('take part in a session: a line is a prompt, Ctrl-C cancels the turn, Ctrl-D leaves it running')
    .argument('<session>', 'its id, or the beginning of it')
    .option('--observe', 'only look on')
    .option('--pool <name>', 'the pool of the session, where several have one of this id')
    .option('--unix <path>', 'a Unix socket of the bus (default: the only running bus)')
  addReachOptions(command).action(async (session: string, { observe, pool, ...reach }: AttachOptions) => {
    const line = await BusLine.open(reach)
    try {
      const row = await findSession(line, session, pool)
      const role = observe ? 'observe' : 'drive'
      const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true
      process.exitCode = await (isTerminal ? attachTerminal : attachPipe)(line, row, role)
    } finally {
      process.stdin.destroy()
      await line.close()
    }
  })
}
