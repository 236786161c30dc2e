#!/usr/bin/env node
/**
 * The launcher as a program: one worker on stdin and stdout that offers all agents of the registry.
 *
 * Exit codes: 0 a clean end, 1 a failure of the world, 2 a mistake in the arguments or the files they name.
 */
import { realpathSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type LauncherOptions, runLauncher } from '../../cli/daemon/launcher.ts'
import { LOG_LEVELS, Log, type LogThreshold } from '../../cli/daemon/log.ts'
import { RegistryError } from '../../registry/errors.ts'
import { chooseSources } from '../../registry/sources.ts'

const usage = `stdio-bus agent registry: all agents of the registry behind one ACP connection on stdin and stdout

Messages name their agent by "agentId", at the top, in params, or in params._meta as "stdio-bus/agentId".

  --index <url|file>      the index (STDIO_BUS_REGISTRY)
  --agents <file>         agents of your own, in the form of the index (STDIO_BUS_AGENTS)
  --credentials <file>    secrets of agents; mode 600 (STDIO_BUS_CREDENTIALS)
  --cache <folder>        where the index and the agents are kept (~/.stdio-bus/registry)
  --idle-timeout <sec>    an agent without sessions and requests for so long is ended; 0: never (600)
  --max-line <bytes>      the longest line an agent may write (67108864)
  --inherit-env           agents get the whole environment, not only a small safe part of it
  --log-level <level>     ${LOG_LEVELS.join(', ')} (info)
  --help                  print this
`

const text = { type: 'string' } as const
const FLAGS = {
  index: text,
  agents: text,
  credentials: text,
  cache: text,
  'idle-timeout': { ...text, default: '600' },
  'max-line': { ...text, default: String(64 * 1024 * 1024) },
  'inherit-env': { type: 'boolean', default: false },
  'log-level': { ...text, default: 'info' },
  help: { type: 'boolean', default: false },
} as const

const MAX_IDLE_SEC = 2_000_000
/** Should anything still hold the process when all is done, it is not waited for. */
const LINGER_MS = 50

class Mistake extends Error {}

/** Runs the launcher until its input ends or a signal comes, and says how to exit. */
export async function runRegistryAgent(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  try {
    const options = readOptions(argv, env)
    if (options === 'help') process.stdout.write(usage)
    const code = options === 'help' ? 0 : await runLauncher(options)
    setTimeout(() => process.exit(code), LINGER_MS).unref()
    return code
  } catch (error) {
    if (!(error instanceof RegistryError || error instanceof Mistake)) throw error
    process.stderr.write(`registry: ${error.message}\n`)
    return error instanceof RegistryError ? error.exitCode : 2
  }
}

function readOptions(argv: readonly string[], env: NodeJS.ProcessEnv): LauncherOptions | 'help' {
  const flags = readFlags(argv)
  if (flags.help) return 'help'
  const level = LOG_LEVELS.find((each) => each === flags['log-level'])
  if (level === undefined) throw new Mistake(`--log-level is one of ${LOG_LEVELS.join(', ')}`)
  const { index, agents: agentsFile, credentials: credentialsFile, cache: cacheDir } = flags
  return {
    sources: chooseSources({ index, agentsFile, credentialsFile, cacheDir }, env, {}),
    idleTimeoutMs: 1000 * readNumber('--idle-timeout', flags['idle-timeout'], 0, MAX_IDLE_SEC),
    maxLineBytes: readNumber('--max-line', flags['max-line'], 1, Number.MAX_SAFE_INTEGER),
    inheritEnv: flags['inherit-env'],
    env,
    log: openLog(level),
  }
}

function readFlags(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: FLAGS, allowPositionals: false }).values
  } catch (error) {
    throw new Mistake(`${(error as Error).message}; see --help`)
  }
}

function readNumber(flag: string, given: string, least: number, most: number): number {
  const value = Number(given)
  if (given.trim() !== '' && value >= least && value <= most) return value
  throw new Mistake(`${flag} takes a number from ${least} to ${most}`)
}

/** Lines for people: a bus above puts them into its own log. */
function openLog(level: LogThreshold): Log {
  return new Log({ level, format: 'text' })
}

function isProgram(): boolean {
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)
}

if (isProgram()) process.exitCode = await runRegistryAgent(process.argv.slice(2), process.env)
