/** `stdio-bus [serve]`: reads the configuration and runs the bus until it is told to stop. */
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import type { BusConfig, Listen } from '../../config/bus-config.ts'
import type { Problem } from '../../config/problem.ts'
import { type Read, readConfig } from '../../config/read.ts'
import { formatProblems } from '../../config/report.ts'
import { closeInheritedDescriptors } from '../../process/descriptors.ts'
import { parseTcpAddress } from '../../transports/address.ts'
import type { DaemonOptions } from '../daemon/daemon.ts'
import { letHeapGrow } from '../daemon/heap.ts'
import { LOG_LEVELS, Log, type LogThreshold } from '../daemon/log.ts'
import { resolveRegistryAgent } from '../daemon/registry-agents.ts'
import { type Doors, runBus } from '../daemon/run.ts'
import { UserMistake } from '../user-mistake.ts'

interface ServeOptions {
  readonly config?: string
  readonly stdio?: boolean
  readonly unix?: readonly string[]
  readonly tcp?: readonly string[]
  readonly tls?: readonly string[]
  readonly cert?: string
  readonly key?: string
  readonly clientCa?: string
  readonly control?: string
  readonly allowUnauthenticated?: boolean
  readonly logLevel: LogThreshold
  readonly record?: string
  readonly recordPayloads?: boolean
}

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]

export function addServe(program: Command): void {
  program
    .command('serve', { isDefault: true })
    .description('run the bus (the default command)')
    .option('--config <path>', 'configuration file (default: ./stdio-bus.json)')
    .option('--stdio', 'one client on stdin and stdout (the default)')
    .option('--unix <path>', 'clients on a Unix socket; may be repeated', collect)
    .option('--tcp <host:port>', 'clients on TCP; port 0 picks one; may be repeated', collect)
    .option('--tls <host:port>', 'clients on TLS; needs --cert and --key; may be repeated', collect)
    .option('--cert <file>', 'with --tls: the certificate of the bus, in PEM form')
    .option('--key <file>', 'with --tls: its key, which nobody else may read')
    .option('--client-ca <file>', 'with --tls: who signs the certificates that clients must then have')
    .option('--control <path>', 'control socket for status, reload and trace (default: under ~/.stdio-bus/)')
    .option(
      '--allow-unauthenticated',
      'let TCP and TLS listen where other machines can connect: anybody there may use your agents',
    )
    .addOption(new Option('--log-level <level>', 'what is logged').choices([...LOG_LEVELS]).default('info'))
    .option('--record <file>', 'write down everything the kernel sees and decides, for stdio-bus replay')
    .option('--record-payloads', 'with --record: whole messages instead of routing fields, lengths and hashes')
    .action(async (options: ServeOptions) => {
      closeInheritedDescriptors()
      letHeapGrow()
      process.exit(await serve(options))
    })
}

async function serve(options: ServeOptions): Promise<number> {
  if (options.stdio && (options.unix || options.tcp || options.tls)) {
    throw new UserMistake(
      '--stdio takes exactly one client and excludes --unix, --tcp and --tls: leave one of them out',
    )
  }
  const reading = await readConfig(options.config)
  const mistakes = reading.ok ? await mistakesInAccess(reading) : reading.problems
  if (!reading.ok || mistakes.length > 0)
    throw new UserMistake(formatProblems(mistakes, { color: process.stderr.isTTY === true }).trimEnd())
  if (options.recordPayloads && reading.config.access !== undefined)
    throw new UserMistake(
      '--record-payloads would write down the credentials of whoever comes: this bus has "access", so leave the flag out',
    )
  const log = new Log({ level: options.logLevel, isTerminal: process.stderr.isTTY === true })
  return runBus({
    config: reading.config,
    doors: chooseDoors(options, reading.config),
    control: options.control === undefined ? undefined : resolve(options.control),
    log,
    resolveAgent: resolveRegistryAgent,
    record: await recordTo(options, log),
    recordsPayloads: options.recordPayloads === true,
  })
}

/** What is wrong with the access file, and names in `as` that nobody has (contract 9.9, 9.27). */
async function mistakesInAccess(read: Read): Promise<readonly Problem[]> {
  if (read.config.access === undefined) return []
  const { checkAccess } = await import('../../access/access-check.ts')
  return checkAccess({ ...read, environment: process.env }).filter(({ severity }) => severity === 'error')
}

/** Most buses record nothing: the recorder is loaded for those that do. */
async function recordTo({ record, recordPayloads }: ServeOptions, log: Log): Promise<DaemonOptions['record']> {
  if (record === undefined) {
    if (recordPayloads) throw new UserMistake('--record-payloads goes with --record FILE')
    return undefined
  }
  const { Recorder } = await import('../daemon/recorder.ts')
  const options = { file: resolve(record), hasPayloads: recordPayloads === true }
  return (spec) => new Recorder(spec, { ...options, onTrouble: (message) => log.write('warn', message) })
}

/** Flags replace the file's `listen` (contract 4.1.1). */
function chooseDoors(options: ServeOptions, { listen }: BusConfig): Doors {
  const allowUnauthenticated = options.allowUnauthenticated === true
  const unix = (options.unix ?? []).map((path) => ({ path: resolve(path), pool: undefined }))
  const tcp = (options.tcp ?? []).map((address) => ({ ...parseTcpAddress(address), pool: undefined }))
  const named = { unix, tcp, tls: tlsDoors(options) }
  if (isAnyOpen(named)) return { ...named, stdio: false, allowUnauthenticated }
  if (options.stdio || !isAnyOpen(listen)) return { unix: [], tcp: [], tls: [], stdio: true, allowUnauthenticated }
  return { ...listen, stdio: false, allowUnauthenticated }
}

function isAnyOpen({ unix, tcp, tls }: Listen): boolean {
  return unix.length + tcp.length + tls.length > 0
}

function tlsDoors({ tls = [], cert, key, clientCa }: ServeOptions): Listen['tls'] {
  if (tls.length === 0) {
    const stray = Object.entries({ '--cert': cert, '--key': key, '--client-ca': clientCa }).find(([, path]) => path)
    if (stray !== undefined) throw new UserMistake(`${stray[0]} goes with --tls HOST:PORT`)
    return []
  }
  if (cert === undefined || key === undefined) {
    throw new UserMistake('--tls needs --cert FILE and --key FILE: the certificate of the bus and its key')
  }
  const files = { cert: resolve(cert), key: resolve(key), isClientCertOptional: false }
  const authority = clientCa === undefined ? {} : { clientCa: resolve(clientCa) }
  return tls.map((address) => ({ ...parseTcpAddress(address), pool: undefined, ...files, ...authority }))
}
