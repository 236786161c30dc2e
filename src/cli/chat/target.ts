/**
 * Whom to talk to: from the options of the command, the environment and the buses that run to one address.
 *
 * What is named wins; then an endpoint in OPENAI_BASE_URL, a bus that runs, OpenAI itself for whoever has a key or names a
 * model, and the demo. It starts and connects nothing. Invariant: exactly one target, or a mistake that says what to leave
 * out.
 */
import { fileURLToPath } from 'node:url'
import { type Environment, readConfig } from '../../agents/openai/config.ts'
import { type BusAddress, showAddress } from '../../client/address.ts'
import { BusUnavailable } from '../../client/errors.ts'
import { findAddress, lookForAddress } from '../find-bus.ts'
import { givenToken, namedAddress, type ReachOptions } from '../reach.ts'
import { UserMistake } from '../user-mistake.ts'
import { splitCommandLine } from './command-line.ts'
import { ChatFailure } from './failure.ts'

export interface ChatOptions extends ReachOptions {
  readonly agent?: string
  readonly pool?: string
  readonly config?: string
  readonly demo?: boolean
}

interface Named {
  /** As people know it: the model, the demo, the program, the pool. */
  readonly name: string
}

export type Target =
  | ({ readonly kind: 'child'; readonly command: string; readonly args: readonly string[] } & Named)
  | ({
      readonly kind: 'bus'
      readonly address: BusAddress
      readonly pool: string | undefined
      readonly token: (() => string) | undefined
    } & Named)

const openAiAgent = new URL('../../agents/openai/main.js', import.meta.url)

/** `command` is what followed `--`. */
export async function chooseTarget(
  options: ChatOptions,
  command: readonly string[],
  environment: Environment = process.env,
): Promise<Target> {
  refuseSeveral(options, command)
  const address = namedAddress(options)
  if (address !== undefined) return toBus(address, options)
  if (options.pool !== undefined && isProgramNamed(options, command))
    throw new UserMistake('--pool names a pool of a bus, and no bus is asked here')
  if (options.pool !== undefined || options.config !== undefined)
    return toBus(await findAddress(options.config).catch(explainNone), options)
  if (options.agent !== undefined) return toChild(splitCommandLine(options.agent))
  if (command.length > 0) return toChild(command)
  return options.demo ? toOpenAiAgent('the demo', '--demo') : chooseUnnamed(options, environment)
}

async function chooseUnnamed(options: ChatOptions, environment: Environment): Promise<Target> {
  const endpoint = environment['OPENAI_BASE_URL']
  if (endpoint) return toEndpoint(environment['OPENAI_MODEL'] || endpoint, environment)
  const running = await lookForAddress()
  if (running !== undefined) return toBus(running, options)
  const model = environment['OPENAI_MODEL'] || (environment['OPENAI_API_KEY'] ? 'OpenAI' : '')
  return model === '' ? toOpenAiAgent('the demo', '--demo') : toEndpoint(model, environment)
}

/** What is wrong with the variables is said here, before a program ends over it. */
function toEndpoint(name: string, environment: Environment): Target {
  const read = readConfig(environment)
  if ('problems' in read) throw new UserMistake(read.problems.join('\n'))
  return toOpenAiAgent(name)
}

function refuseSeveral(options: ChatOptions, command: readonly string[]): void {
  const named = [
    options.agent !== undefined && '--agent',
    options.unix !== undefined && '--unix',
    options.tcp !== undefined && '--tcp',
    options.tls !== undefined && '--tls',
    options.config !== undefined && '--config',
    options.demo && '--demo',
    command.length > 0 && 'the command after --',
  ].filter((name) => typeof name === 'string')
  if (named.length > 1) throw new UserMistake(`${named.join(' and ')} name different agents; leave all but one out`)
}

function isProgramNamed(options: ChatOptions, command: readonly string[]): boolean {
  return options.agent !== undefined || options.demo === true || command.length > 0
}

function explainNone(error: unknown): never {
  if (!(error instanceof BusUnavailable)) throw error
  throw new ChatFailure(`${error.message}; start one with "stdio-bus start", or say where it is with --unix or --tcp`, {
    cause: error,
  })
}

function toBus(address: BusAddress, options: ChatOptions): Target {
  const { pool } = options
  return { kind: 'bus', address, pool, token: givenToken(options), name: pool ?? showAddress(address) }
}

function toOpenAiAgent(name: string, ...args: readonly string[]): Target {
  return { kind: 'child', command: process.execPath, args: [fileURLToPath(openAiAgent), ...args], name }
}

function toChild(words: readonly string[]): Target {
  const [command, ...args] = words
  if (!command) throw new UserMistake('--agent needs a command line, like --agent "opencode acp"')
  return { kind: 'child', command, args, name: command }
}
