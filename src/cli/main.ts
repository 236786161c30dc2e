#!/usr/bin/env node
/**
 * The program: one file per command, loaded only when it is asked for, because `connect` must start at once. For the same
 * reason nothing is imported here that telling the version does not need.
 *
 * Exit codes: 0 a clean stop, 1 a failure of the world, 2 a mistake of the user (contract 8.4).
 */
import type { Command } from 'commander'
import { VERSION } from './version.ts'

const STDOUT = 1

type Add = (program: Command) => void

const COMMANDS: Readonly<Record<string, () => Promise<Add>>> = {
  serve: async () => (await import('./commands/serve.ts')).addServe,
  start: async () => (await import('./commands/start.ts')).addStart,
  stop: async () => (await import('./commands/stop.ts')).addStop,
  restart: async () => (await import('./commands/restart.ts')).addRestart,
  ls: async () => (await import('./commands/ls.ts')).addLs,
  console: async () => (await import('./commands/console.ts')).addConsole,
  status: async () => (await import('./commands/status.ts')).addStatus,
  logs: async () => (await import('./commands/logs.ts')).addLogs,
  init: async () => (await import('./commands/init.ts')).addInit,
  check: async () => (await import('./commands/check.ts')).addCheck,
  add: async () => (await import('./commands/add.ts')).addAdd,
  remove: async () => (await import('./commands/remove.ts')).addRemove,
  import: async () => (await import('./commands/import.ts')).addImport,
  token: async () => (await import('./commands/token.ts')).addToken,
  reload: async () => (await import('./commands/reload.ts')).addReload,
  cluster: async () => (await import('./commands/cluster.ts')).addCluster,
  chat: async () => (await import('./commands/chat.ts')).addChat,
  connect: async () => (await import('./commands/connect.ts')).addConnect,
  sessions: async () => (await import('./commands/sessions.ts')).addSessions,
  attach: async () => (await import('./commands/attach.ts')).addAttach,
  trace: async () => (await import('./commands/trace.ts')).addTrace,
  replay: async () => (await import('./commands/replay.ts')).addReplay,
  demo: async () => (await import('./commands/demo.ts')).addDemo,
  agent: async () => (await import('./commands/agent.ts')).addAgent,
  registry: async () => (await import('./commands/registry.ts')).addRegistry,
  completion: async () => (await import('./commands/completion.ts')).addCompletion,
}

/** What tells of all commands has them all loaded. */
const ABOUT_ALL: readonly string[] = ['completion', 'manual']

async function main(argv: readonly string[]): Promise<void> {
  const { takeTokenVariable } = await import('./token-variable.ts')
  takeTokenVariable()
  const { Command } = await import('commander')
  const program = new Command('stdio-bus')
    .description(
      'Supervises pools of stdio workers (ACP agents, MCP servers, any JSON-RPC program) and routes every line.',
    )
    .version(VERSION)
    .enablePositionalOptions()
    .exitOverride()
    .configureHelp({ sortSubcommands: false, minWidthToWrap: 24 })
  const names = namesFor(argv[0])
  for (const name of names) (await COMMANDS[name]!())(program)
  if (isUnknown(argv[0])) {
    program.error(`error: unknown command '${argv[0]}'${await suggestionFor(argv[0])}; see stdio-bus --help`)
  }
  if (names.length > 1) (await import('./help.ts')).arrangeHelp(program)
  for (const command of program.commands) tellWhereToLook(command, program.name())
  await program.parseAsync([...argv], { from: 'user' })
}

/** A mistake in the arguments ends with what to type. */
function tellWhereToLook(command: Command, above: string): void {
  const name = `${above} ${command.name()}`
  command.exitOverride().showHelpAfterError(`see ${name} --help`)
  for (const each of command.commands) tellWhereToLook(each, name)
}

function asksVersion([first]: readonly string[]): boolean {
  return first === '-V' || first === '--version'
}

/** Which commands are loaded: the one that is asked for, or all to describe them. Flags alone belong to `serve`. */
function namesFor(first: string | undefined): readonly string[] {
  if (first !== undefined && first in COMMANDS && !ABOUT_ALL.includes(first)) return [first]
  const isServe = first === undefined || (first.startsWith('-') && !['-h', '--help'].includes(first))
  return isServe ? ['serve'] : Object.keys(COMMANDS)
}

function isUnknown(first: string | undefined): first is string {
  return (
    first !== undefined &&
    !first.startsWith('-') &&
    first !== 'help' &&
    !(first in COMMANDS) &&
    !ABOUT_ALL.includes(first)
  )
}

async function suggestionFor(asked: string): Promise<string> {
  const { suggest } = await import('../config/suggest.ts')
  const names = Object.keys(COMMANDS)
  const alike = suggest(asked, names) ?? names.find((name) => name.startsWith(asked.slice(0, 3)))
  return alike === undefined ? '' : `, did you mean '${alike}'?`
}

function fail(error: unknown): void {
  if (!(error instanceof Error)) throw error
  if ('code' in error && String(error.code).startsWith('commander.')) {
    process.exit('exitCode' in error && error.exitCode === 0 ? 0 : 2)
  }
  const exitCode = 'exitCode' in error && typeof error.exitCode === 'number' ? error.exitCode : undefined
  process.stderr.write(
    exitCode !== undefined || isOfTheWorld(error) ? `stdio-bus: ${error.message}\n` : `${error.stack}\n`,
  )
  // Something may still be running, a timer or a child: the failure has been told, nothing more is to come.
  process.exit(exitCode ?? 1)
}

/** A bus that cannot be asked, or what the system says of a file or a socket: nothing of ours to look into. */
function isOfTheWorld(error: Error): boolean {
  return error.constructor.name === 'ControlFailure' || 'syscall' in error
}

const argv = process.argv.slice(2)
if (asksVersion(argv)) process.getBuiltinModule('node:fs').writeSync(STDOUT, `${VERSION}\n`)
else await main(argv).catch(fail)
