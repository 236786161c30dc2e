/** `stdio-bus [serve]`: reads the configuration and runs the bus until it is told to stop. */
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import type { BusConfig, Listen, TlsDoor } from '../../config/bus-config.ts'
import { plainHttpDoor } from '../../config/http-door.ts'
import { readConfig } from '../../config/read.ts'
import { formatProblems } from '../../config/report.ts'
import { wantsColor } from '../../host/terminal.ts'
import { whyUnwritable } from '../../host/why-unwritable.ts'
import { closeInheritedDescriptors } from '../../process/descriptors.ts'
import { parseTcpAddress } from '../../transports/address.ts'
import { BACKGROUND } from '../background.ts'
import type { DaemonOptions } from '../daemon/daemon.ts'
import { LOG_FORMATS, LOG_LEVELS, Log, type LogFormat, type LogThreshold } from '../daemon/log.ts'
import { resolveRegistryAgent } from '../daemon/registry-agents.ts'
import { type Doors, runBus } from '../daemon/run.ts'
import { tuneRuntime } from '../daemon/runtime.ts'
import { mistakesInAccess } from '../mistakes-in-access.ts'
import { UserMistake } from '../user-mistake.ts'

interface ServeOptions {
  readonly config?: string
  readonly stdio?: boolean
  readonly unix?: readonly string[]
  readonly tcp?: readonly string[]
  readonly tls?: readonly string[]
  readonly http?: readonly string[]
  readonly cert?: string
  readonly key?: string
  readonly clientCa?: string
  readonly control?: string
  readonly allowUnauthenticated?: boolean
  readonly logLevel: LogThreshold
  readonly logFormat?: LogFormat
  readonly logFile?: string
  readonly record?: string
  readonly recordPayloads?: boolean
  readonly background?: boolean
}

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]

export function addServe(program: Command): void {
  addServeOptions(program.command('serve', { isDefault: true }).description('run the bus (the default command)'))
    .addOption(new Option(BACKGROUND, 'it was put into the background').hideHelp())
    .action(async (options: ServeOptions) => {
      closeInheritedDescriptors()
      tuneRuntime()
      process.exit(await serve(options))
    })
}

/** Also those of `start`, which hands them on. */
export function addServeOptions(command: Command): Command {
  return command
    .option('--config <path>', 'configuration file (default: ./stdio-bus.json)')
    .option('--stdio', 'one client on stdin and stdout (the default)')
    .option('--unix <path>', 'clients on a Unix socket; may be repeated', collect)
    .option('--tcp <host:port>', 'clients on TCP; port 0 picks one; may be repeated', collect)
    .option('--tls <host:port>', 'clients on TLS; needs --cert and --key; may be repeated', collect)
    .option(
      '--http <host:port>',
      'clients on HTTP and WebSocket, with TLS if there is --cert; may be repeated',
      collect,
    )
    .option('--cert <file>', 'with --tls or --http: the certificate of the bus, in PEM form')
    .option('--key <file>', 'with --tls or --http: its key, which nobody else may read')
    .option('--client-ca <file>', 'with --tls or --http: who signs the certificates that clients must then have')
    .option('--control <path>', 'control socket for status, reload and trace (default: under ~/.stdio-bus/)')
    .option(
      '--allow-unauthenticated',
      'let TCP and TLS listen where other machines can connect: anybody there may use your agents',
    )
    .addOption(new Option('--log-level <level>', 'what is logged').choices([...LOG_LEVELS]).default('info'))
    .addOption(
      new Option('--log-format <format>', 'how it is written (default: text on a terminal, else json)').choices([
        ...LOG_FORMATS,
      ]),
    )
    .option('--log-file <file>', 'where it is written instead of stderr; beyond 8 MiB the older part is in FILE.1')
    .option('--record <file>', 'write down everything the kernel sees and decides, for stdio-bus replay')
    .option('--record-payloads', 'with --record: whole messages instead of routing fields, lengths and hashes')
}

async function serve(options: ServeOptions): Promise<number> {
  if (options.stdio && (options.unix || options.tcp || options.tls || options.http)) {
    throw new UserMistake(
      '--stdio takes exactly one client and excludes --unix, --tcp, --tls and --http: leave one of them out',
    )
  }
  const reading = await readConfig(options.config)
  const mistakes = reading.ok ? await mistakesInAccess(reading) : reading.problems
  if (!reading.ok || mistakes.length > 0)
    throw new UserMistake(formatProblems(mistakes, { color: wantsColor(process.stderr) }).trimEnd())
  if (options.recordPayloads && reading.config.access !== undefined)
    throw new UserMistake(
      '--record-payloads would write down the credentials of whoever comes: this bus has "access", so leave the flag out',
    )
  const log = openLog(options)
  return runBus({
    config: reading.config,
    doors: chooseDoors(options, reading.config),
    control: options.control === undefined ? undefined : socketAt('--control', options.control),
    log,
    resolveAgent: resolveRegistryAgent,
    record: await recordTo(options, log),
    recordsPayloads: options.recordPayloads === true,
    background: options.background ? { args: process.argv.slice(2), cwd: process.cwd() } : undefined,
  })
}

function openLog({ logLevel: level, logFormat: format, logFile }: ServeOptions): Log {
  try {
    return new Log({ level, format, file: logFile === undefined ? undefined : resolve(logFile) })
  } catch (cause) {
    throw new UserMistake(`--log-file ${logFile} cannot be written: ${whyUnwritable(cause)}; name another file`, {
      cause,
    })
  }
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
function chooseDoors(options: ServeOptions, { listen, publicUrl }: BusConfig): Doors {
  const allowUnauthenticated = options.allowUnauthenticated === true
  const unix = (options.unix ?? []).map((path) => ({ path: socketAt('--unix', path), pool: undefined }))
  const tcp = (options.tcp ?? []).map((address) => ({ ...parseTcpAddress(address), pool: undefined }))
  const files = certificateFiles(options)
  const http = (options.http ?? []).map((address) => plainHttpDoor(parseTcpAddress(address), { publicUrl, ...files }))
  const named = { unix, tcp, tls: tlsDoors(options, files), http }
  if (isAnyOpen(named)) return { ...named, stdio: false, allowUnauthenticated }
  if (options.stdio || !isAnyOpen(listen)) return { ...NO_DOORS, stdio: true, allowUnauthenticated }
  return { ...listen, stdio: false, allowUnauthenticated }
}

/** An empty path would be the folder that the bus is started in. */
function socketAt(flag: string, path: string): string {
  if (path === '') throw new UserMistake(`${flag} needs the path of a socket, such as ./bus.sock`)
  return resolve(path)
}

const NO_DOORS: Listen = { unix: [], tcp: [], tls: [], http: [] }

function isAnyOpen({ unix, tcp, tls, http }: Listen): boolean {
  return unix.length + tcp.length + tls.length + http.length > 0
}

type CertificateFiles = Pick<TlsDoor, 'cert' | 'key' | 'clientCa' | 'isClientCertOptional'>

/** The certificate that the flags name, for the doors that they name. */
function certificateFiles({ tls, http, cert, key, clientCa }: ServeOptions): CertificateFiles | undefined {
  const given = Object.entries({ '--cert': cert, '--key': key, '--client-ca': clientCa }).find(([, path]) => path)
  if (given === undefined) return undefined
  if (tls === undefined && http === undefined)
    throw new UserMistake(`${given[0]} goes with --tls HOST:PORT or --http HOST:PORT`)
  if (cert === undefined || key === undefined) throw new UserMistake(NEEDS_FILES)
  const authority = clientCa === undefined ? {} : { clientCa: resolve(clientCa) }
  return { cert: resolve(cert), key: resolve(key), isClientCertOptional: false, ...authority }
}

const NEEDS_FILES = '--tls needs --cert FILE and --key FILE: the certificate of the bus and its key'

function tlsDoors({ tls = [] }: ServeOptions, files: CertificateFiles | undefined): Listen['tls'] {
  if (tls.length === 0) return []
  if (files === undefined) throw new UserMistake(NEEDS_FILES)
  return tls.map((address) => ({ ...parseTcpAddress(address), pool: undefined, ...files }))
}
