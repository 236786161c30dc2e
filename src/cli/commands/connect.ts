/**
 * `stdio-bus connect`: what an editor or an MCP host is given as the command of an agent or server.
 *
 * It finds its bus from its arguments or from HOME alone, because hosts strip the environment, and loads nothing that it
 * does not need, because hosts wait for it. Exit codes: contract 6.10.
 */
import type { Socket } from 'node:net'
import { dirname, resolve } from 'node:path'
import type { Command } from 'commander'
import { type BusAddress, dial, showAddress } from '../../client/address.ts'
import { BusError, BusUnavailable } from '../../client/errors.ts'
import { refuseFirstRequest } from '../../client/first-request.ts'
import { openHostPipes } from '../../client/host-pipes.ts'
import { runShim } from '../../client/stdio-shim.ts'
import { UnusableFile } from '../../host/given-file.ts'
import { dialUrl, type UrlOptions } from '../connect-url.ts'
import { findAddress } from '../find-bus.ts'
import { addReachOptions, givenToken, namedAddress } from '../reach.ts'
import { UserMistake } from '../user-mistake.ts'

export type ConnectOptions = UrlOptions

/** A bus that goes is often being restarted by whoever looks after it: leave that a moment before starting one. */
const RESTART_GRACE_MS = 3_000

export function addConnect(program: Command): void {
  const command = program
    .command('connect')
    .description('join stdin and stdout to a running bus: the command to give to an editor or an MCP host')
    .option('--unix <path>', 'the Unix socket of the bus (default: the only bus that runs for this user)')
  addReachOptions(command)
    .option('--url <url>', 'a far bus (https://HOST/mcp/POOL), or any MCP server over Streamable HTTP')
    .option('--config <path>', 'the bus that runs with this configuration')
    .option('--pool <name>', 'the pool to talk to (default: default_pool of the bus)')
    .option('--autostart', 'start a bus with --config when none runs')
    .action(async (options: ConnectOptions) => {
      // What is left to wait for at the end may hold no handle of its own: a request on a socket that is kept alive.
      const held = setInterval(() => {}, 60_000)
      process.exit(await connect(options).finally(() => clearInterval(held)))
    })
}

async function connect(options: ConnectOptions): Promise<number> {
  const { url, pool } = options
  const link =
    url === undefined
      ? { dial: chooseBus(options), pool, token: givenToken(options) }
      : { dial: dialUrl(url, options, say) }
  const pipes = openHostPipes()
  try {
    return await runShim(link, { ...pipes, say })
  } catch (error) {
    const isMistake = error instanceof UserMistake || error instanceof UnusableFile
    if (!isMistake && !(error instanceof BusError)) throw error
    if (!isMistake) say(error.message)
    await refuseFirstRequest(error, pipes)
    if (isMistake) throw error
    return 1
  }
}

function say(sentence: string): void {
  process.stderr.write(`stdio-bus connect: ${sentence}\n`)
}

/** How to reach the bus that was asked for, now and after it has gone. */
function chooseBus(options: ConnectOptions): (awayMs: number) => Promise<Socket> {
  if (options.autostart && options.config === undefined) {
    throw new UserMistake('--autostart needs --config FILE: the configuration to start the bus with')
  }
  const address = namedAddress(options)
  if (options.autostart && options.tls !== undefined) {
    throw new UserMistake('--autostart starts a bus at --unix or --tcp: leave --tls out, or start the bus yourself')
  }
  const config = options.config === undefined ? undefined : resolve(options.config)
  const reach = address === undefined ? () => reachRunning(config) : () => dial(address)
  if (!options.autostart) return (awayMs) => reach().catch((error) => explain(error, awayMs))
  return async (awayMs) => {
    if (awayMs > 0 && awayMs < RESTART_GRACE_MS) return reach()
    return reach().catch(() => startAndReach(config!, address))
  }
}

function explain(error: unknown, awayMs: number): never {
  if (!(error instanceof BusUnavailable) || awayMs > 0) throw error
  const how = 'start one with "stdio-bus serve --unix PATH", or add --autostart --config FILE'
  throw new BusUnavailable(`${error.message}; ${how}`, { cause: error })
}

async function reachRunning(config: string | undefined): Promise<Socket> {
  return dial(await findAddress(config))
}

async function startAndReach(config: string, address: BusAddress | undefined): Promise<Socket> {
  const { startInBackground } = await import('../background.ts')
  let socket: Socket | undefined
  await startInBackground({
    config,
    flags: address === undefined ? [] : doorFlag(address),
    cwd: dirname(config),
    find: async () => {
      socket = await (address === undefined ? reachRunning(config) : dial(address)).catch(onlyUnavailable)
      return socket && 'up'
    },
  })
  return socket!
}

function onlyUnavailable(error: unknown): undefined {
  if (!(error instanceof BusUnavailable)) throw error
}

function doorFlag(address: BusAddress): readonly string[] {
  return 'unix' in address ? ['--unix', address.unix] : ['--tcp', showAddress(address)]
}
