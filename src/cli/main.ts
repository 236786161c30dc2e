#!/usr/bin/env node
/**
 * The program: one file per command, loaded only when it is asked for, because `connect` must start at once.
 *
 * Exit codes: 0 a clean stop, 1 a failure of the world, 2 a mistake of the user (contract 8.4).
 */
import { Command, CommanderError } from 'commander'
import { takeTokenVariable } from './token-variable.ts'

type Add = (program: Command) => void

const COMMANDS: Readonly<Record<string, () => Promise<Add>>> = {
  serve: async () => (await import('./commands/serve.ts')).addServe,
  init: async () => (await import('./commands/init.ts')).addInit,
  check: async () => (await import('./commands/check.ts')).addCheck,
  status: async () => (await import('./commands/status.ts')).addStatus,
  token: async () => (await import('./commands/token.ts')).addToken,
  reload: async () => (await import('./commands/reload.ts')).addReload,
  chat: async () => (await import('./commands/chat.ts')).addChat,
  connect: async () => (await import('./commands/connect.ts')).addConnect,
  trace: async () => (await import('./commands/trace.ts')).addTrace,
  replay: async () => (await import('./commands/replay.ts')).addReplay,
  demo: async () => (await import('./commands/demo.ts')).addDemo,
  agent: async () => (await import('./commands/agent.ts')).addAgent,
  registry: async () => (await import('./commands/registry.ts')).addRegistry,
}

async function main(argv: readonly string[]): Promise<void> {
  const { VERSION } = await import('./version.ts')
  const program = new Command('stdio-bus')
    .description(
      'Supervises pools of stdio workers (ACP agents, MCP servers, any JSON-RPC program) and routes every line.',
    )
    .version(VERSION)
    .enablePositionalOptions()
    .exitOverride()
    .configureHelp({ sortSubcommands: false })
  for (const name of namesFor(argv[0])) (await COMMANDS[name]!())(program)
  if (isUnknown(argv[0])) {
    program.error(`error: unknown command '${argv[0]}'${suggestionFor(argv[0])}; see stdio-bus --help`)
  }
  for (const command of program.commands) command.exitOverride()
  await program.parseAsync([...argv], { from: 'user' })
}

/** Which commands are loaded: the one that is asked for, or all to describe them. Flags alone belong to `serve`. */
function namesFor(first: string | undefined): readonly string[] {
  if (first !== undefined && first in COMMANDS) return [first]
  const isServe = first === undefined || (first.startsWith('-') && !['-h', '--help'].includes(first))
  return isServe ? ['serve'] : Object.keys(COMMANDS)
}

function isUnknown(first: string | undefined): first is string {
  return first !== undefined && !first.startsWith('-') && first !== 'help' && !(first in COMMANDS)
}

function suggestionFor(asked: string): string {
  const alike = Object.keys(COMMANDS).find((name) => name.startsWith(asked.slice(0, 3)))
  return alike === undefined ? '' : `, did you mean '${alike}'?`
}

function fail(error: unknown): void {
  if (error instanceof CommanderError) process.exit(error.exitCode === 0 ? 0 : 2)
  if (!(error instanceof Error)) throw error
  const exitCode = 'exitCode' in error && typeof error.exitCode === 'number' ? error.exitCode : undefined
  const isExpected = exitCode !== undefined || error.constructor.name === 'ControlFailure'
  process.stderr.write(isExpected ? `stdio-bus: ${error.message}\n` : `${error.stack}\n`)
  // Something may still be running, a timer or a child: the failure has been told, nothing more is to come.
  process.exit(exitCode ?? 1)
}

takeTokenVariable()
await main(process.argv.slice(2)).catch(fail)
