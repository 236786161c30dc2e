#!/usr/bin/env node
/**
 * The program: one file per command, loaded only when it is asked for, because `connect` must start at once.
 *
 * Exit codes: 0 a clean stop, 1 a failure of the world, 2 a mistake of the user (contract 8.4).
 */
import { Command, CommanderError } from 'commander'

type Add = (program: Command) => void

const COMMANDS: Readonly<Record<string, () => Promise<Add>>> = {
  serve: async () => (await import('./commands/serve.ts')).addServe,
  init: async () => (await import('./commands/init.ts')).addInit,
  check: async () => (await import('./commands/check.ts')).addCheck,
  status: async () => (await import('./commands/status.ts')).addStatus,
  reload: async () => (await import('./commands/reload.ts')).addReload,
  chat: async () => (await import('./commands/chat.ts')).addChat,
  connect: async () => (await import('./commands/connect.ts')).addConnect,
  trace: async () => (await import('./commands/trace.ts')).addTrace,
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
  const asked = argv.find((argument) => !argument.startsWith('-'))
  const isHelp = asked === undefined && argv.some((argument) => argument === '--help' || argument === '-h')
  const names =
    isHelp || asked === 'help' || asked === undefined || !(asked in COMMANDS) ? Object.keys(COMMANDS) : [asked]
  for (const name of names) (await COMMANDS[name]!())(program)
  if (asked !== undefined && asked === argv[0] && asked !== 'help' && !(asked in COMMANDS)) {
    program.error(`error: unknown command '${asked}'${suggestionFor(asked)}; see stdio-bus --help`)
  }
  for (const command of program.commands) command.exitOverride()
  await program.parseAsync([...argv], { from: 'user' })
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

await main(process.argv.slice(2)).catch(fail)
