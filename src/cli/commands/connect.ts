/**
 * `stdio-bus connect`: what an editor or an MCP host is given as the command of an agent or server.
 *
 * It finds its bus from its arguments or from HOME alone, because hosts strip the environment, and loads nothing that it
 * does not need, because hosts wait for it. Exit codes: contract 6.10.
 */
import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { type BusAddress, dial, parseAnnounced, showAddress } from '../../client/address.ts'
import { BusError, BusUnavailable } from '../../client/errors.ts'
import { refuseFirstRequest } from '../../client/first-request.ts'
import { openHostPipes } from '../../client/host-pipes.ts'
import { runShim } from '../../client/stdio-shim.ts'
import { findRunning, runDirectory } from '../../console/running.ts'
import { UnusableFile } from '../../host/given-file.ts'
import { addReachOptions, givenToken, namedAddress, type ReachOptions } from '../reach.ts'
import { UserMistake } from '../user-mistake.ts'

export interface ConnectOptions extends ReachOptions {
  readonly config?: string
  readonly pool?: string
  readonly autostart?: boolean
}

/** A bus that goes is often being restarted by whoever looks after it: leave that a moment before starting one. */
const RESTART_GRACE_MS = 3_000
const PROGRAM = fileURLToPath(new URL('../main.js', import.meta.url))

export function addConnect(program: Command): void {
  const command = program
    .command('connect')
    .description('join stdin and stdout to a running bus: the command to give to an editor or an MCP host')
    .option('--unix <path>', 'the Unix socket of the bus (default: the only bus that runs for this user)')
  addReachOptions(command)
    .option('--config <path>', 'the bus that runs with this configuration')
    .option('--pool <name>', 'the pool to talk to (default: default_pool of the bus)')
    .option('--autostart', 'start a bus with --config when none runs')
    .action(async (options: ConnectOptions) => {
      process.exit(await connect(options))
    })
}

async function connect(options: ConnectOptions): Promise<number> {
  const find = chooseBus(options)
  const token = givenToken(options)
  const pipes = openHostPipes()
  try {
    return await runShim({ dial: find, pool: options.pool, token }, { ...pipes, say })
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

/** The only bus of this user that can be connected to, or the one with this configuration. */
async function findAddress(config: string | undefined): Promise<BusAddress> {
  const wanted = config === undefined ? undefined : realPath(config)
  const addresses = (await findRunning())
    .filter((bus) => wanted === undefined || realPath(bus.config) === wanted)
    .map((bus) => chooseDoor(bus.addresses))
    .filter((address) => address !== undefined)
  if (addresses.length === 1) return addresses[0]!
  if (addresses.length > 1) {
    const list = addresses.map(showAddress).join(', ')
    throw new UserMistake(`several buses run (${list}): name one with --unix, --tcp or --config`)
  }
  const which = config === undefined ? 'for this user' : `with ${config}`
  throw new BusUnavailable(`no bus with a Unix socket or TCP door runs ${which}`)
}

function chooseDoor(announced: readonly string[]): BusAddress | undefined {
  const addresses = announced.map(parseAnnounced).filter((address) => address !== undefined)
  return addresses.find((address) => 'unix' in address) ?? addresses[0]
}

function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

async function startAndReach(config: string, address: BusAddress | undefined): Promise<Socket> {
  const { findOrStart } = await import('../../client/autostart.ts')
  let socket: Socket | undefined
  await findOrStart({
    folder: runDirectory(),
    name: `autostart-${fingerprint(realPath(config))}`,
    command: process.execPath,
    args: async () => [PROGRAM, 'serve', '--config', config, ...(await doorFlags(config, address))],
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

function fingerprint(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

/** The door that was asked for, else what the configuration says, else a socket in the folder of this user's buses. */
async function doorFlags(config: string, address: BusAddress | undefined): Promise<readonly string[]> {
  if (address !== undefined) return 'unix' in address ? ['--unix', address.unix] : ['--tcp', showAddress(address)]
  if (await namesDoor(config)) return []
  return ['--unix', join(runDirectory(), `autostart-${fingerprint(realPath(config))}.sock`)]
}

/** Whether `listen` opens anything. What is wrong with a configuration is for the daemon to say. */
async function namesDoor(config: string): Promise<boolean> {
  const { parse } = await import('jsonc-parser')
  const text = await readFile(config, 'utf8').catch(() => '')
  const { listen } = (parse(text) ?? {}) as { listen?: unknown }
  return typeof listen === 'object' && listen !== null && ('unix' in listen || 'tcp' in listen)
}
