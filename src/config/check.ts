/**
 * Compares a configuration with the machine it is to run on: programs, directories, permissions, and combinations that
 * are allowed but rarely meant. It changes nothing, runs nothing and connects to nothing.
 *
 * Errors are what would keep the bus from starting, and nothing else is: `serve` refuses the same. Warnings are what would
 * keep a pool from working, and risks.
 */
import { dirname } from 'node:path'
import { UnusableFile } from '../host/given-file.ts'
import { readTlsMaterial } from '../host/tls-files.ts'
import { isLoopback } from './address.ts'
import { asksForCredentials } from './admission.ts'
import type { BusConfig, CommandLaunch, Launch, ProcessLaunch, RemoteLaunch } from './bus-config.ts'
import { type Environment, workerEnvironment } from './environment.ts'
import { refuseExecution } from './executable.ts'
import { kindOf, modeOf, said } from './file-facts.ts'
import { byPlace, type Finding, type Path, type Problem, quote, toRun } from './problem.ts'
import type { Source } from './source.ts'
import { variablesArePassed } from './variables.ts'

export interface CheckContext {
  readonly config: BusConfig
  readonly source: Source
  readonly environment: Environment
  /** The bus is to be started with that flag. */
  readonly allowUnauthenticated?: boolean
}

type Check = (context: CheckContext) => Finding[] | Promise<Finding[]>

const CHECKS: readonly Check[] = [
  programsCanBeExecuted,
  fifosCanBeMade,
  directoriesExist,
  upstreamFilesCanBeUsed,
  tokensTravelInSecret,
  nobodyElseWritesTheFile,
  credentialsArePrivate,
  registryFilesExist,
  keysAreNotInTheFile,
  doorsAreSafe,
  socketsCanBeMade,
  variablesArePassed,
  sharingFitsMcp,
  fallbacksSpeakTheSame,
  boundsFitEachOther,
]

/** Every problem of the machine with this configuration, in the order of the file. */
export async function checkMachine(context: CheckContext): Promise<Problem[]> {
  const findings = await Promise.all(CHECKS.map((check) => check(context)))
  return findings.flat().map(context.source.place).sort(byPlace)
}

async function programsCanBeExecuted({ config, environment }: CheckContext): Promise<Finding[]> {
  const commands = launchesOf(config).filter(
    (it): it is Placed<CommandLaunch> => 'command' in it.launch && it.launch.command !== '',
  )
  return collect(commands, async ({ launch, index }) => {
    if ((await kindOf(launch.cwd)) !== 'directory') return []
    const search = workerEnvironment(launch, environment)['PATH']
    const refusal = await refuseExecution({ command: launch.command, cwd: launch.cwd, path: search })
    if (refusal === undefined) return []
    const suggestion = splitHint(launch) ?? 'install it, give its full path, or set PATH in the env of the pool'
    return [
      {
        severity: 'warning',
        path: ['pools', index, 'command'],
        found: `${quote(launch.command)}, ${refusal}`,
        allowed: 'an executable program',
        suggestion,
      },
    ]
  })
}

/** A command line in place of a command: there is no shell to take it apart. */
function splitHint({ command, args }: CommandLaunch): string | undefined {
  const [program, ...words] = command.trim().split(/\s+/)
  if (words.length === 0 || program!.includes('/')) return undefined
  const shown = [...words, ...args].map((word) => JSON.stringify(word)).join(', ')
  return `no shell takes it apart: write "command": ${JSON.stringify(program)}, "args": [${shown}]`
}

/** The runtime cannot make them by itself. */
async function fifosCanBeMade({ config, environment }: CheckContext): Promise<Finding[]> {
  const wanting = processesOf(config).filter(({ launch }) => launch.pipes === 'fifo')
  if (wanting.length === 0) return []
  const refusal = await refuseExecution({ command: 'mkfifo', cwd: '/', path: environment['PATH'] })
  if (refusal === undefined) return []
  return wanting.map(({ index }) => ({
    severity: 'warning',
    path: ['pools', index, 'pipes'],
    found: `"fifo", but mkfifo, which makes them, is ${refusal.replace('worker', 'bus')}`,
    allowed: '"default", or mkfifo in the PATH of the bus',
  }))
}

function directoriesExist({ config }: CheckContext): Promise<Finding[]> {
  return collect(processesOf(config), async ({ launch, index }) => {
    const kind = await kindOf(launch.cwd)
    if (kind === 'directory') return []
    return [
      {
        severity: 'warning',
        path: ['pools', index, 'cwd'],
        found: `${quote(launch.cwd)}, ${said(kind)}`,
        allowed: 'a directory that exists',
      },
    ]
  })
}

/** Certificate, key and authorities are read for every connection; what is wrong with them now would park the pool. */
function upstreamFilesCanBeUsed({ config }: CheckContext): Finding[] {
  return upstreamsOf(config).flatMap(({ launch, index }): Finding[] => {
    try {
      readTlsMaterial(launch.tls)
      return []
    } catch (error) {
      if (!(error instanceof UnusableFile)) throw error
      const { ca, cert, key } = launch.tls
      const name = Object.entries({ ca, cert, key }).find(([, file]) => file === error.file)?.[0] ?? 'url'
      return [{ path: ['pools', index, name], found: `${quote(error.file)}, which ${error.why}`, allowed: 'PEM files' }]
    }
  })
}

/** Contract 9.27: whoever listens on the way would have what proves who we are. */
function tokensTravelInSecret({ config }: CheckContext): Finding[] {
  return upstreamsOf(config).flatMap(({ launch: { url, token, headers }, index }): Finding[] => {
    const hasSecret =
      token !== undefined || Object.keys(headers).some((name) => /^authorization$|key|token/i.test(name))
    const host = /^(?:http|ws|tcp):\/\//i.test(url) ? new URL(url).hostname.replace(/^\[|\]$/g, '') : undefined
    if (!hasSecret || host === undefined || isLoopback({ host, port: 0 })) return []
    return [
      {
        severity: 'warning',
        path: ['pools', index, 'url'],
        found: `a way in plain to ${quote(host)}, with a credential`,
        allowed: 'https://, wss:// or tls:// where credentials travel',
      },
    ]
  })
}

async function nobodyElseWritesTheFile({ config }: CheckContext): Promise<Finding[]> {
  if (((await modeOf(config.file)) & 0o022) === 0) return []
  return [
    {
      severity: 'warning',
      path: [],
      found: 'a file that others may write',
      allowed: 'a file only its owner may write: it says which programs are run',
      suggestion: toRun('chmod go-w', config.file),
    },
  ]
}

async function credentialsArePrivate({ config }: CheckContext): Promise<Finding[]> {
  const file = config.registry.credentialsFile
  if (file === undefined || ((await modeOf(file)) & 0o077) === 0) return []
  const suggestion = toRun('chmod 600', file)
  return [
    {
      severity: usesRegistry(config) ? 'error' : 'warning',
      path: ['registry', 'credentials'],
      found: 'a file that others may read',
      allowed: 'a file only its owner may read',
      suggestion,
    },
  ]
}

/** Some pool is an agent of the registry: then its credentials are read at the start. */
function usesRegistry({ launches }: BusConfig): boolean {
  return [...launches.values()].some((launch) => 'registry' in launch)
}

function registryFilesExist({ config }: CheckContext): Promise<Finding[]> {
  const { index, agentsFile, credentialsFile } = config.registry
  const indexFile = index !== undefined && !index.includes('://') ? index : undefined
  const files = Object.entries({ index: indexFile, agents: agentsFile, credentials: credentialsFile })
  return collect(files, async ([key, file]) => {
    if (file === undefined) return []
    const kind = await kindOf(file)
    if (kind === 'file') return []
    const isFatal = key === 'credentials' && usesRegistry(config)
    const found = `${quote(file)}, ${said(kind)}`
    return [{ severity: isFatal ? 'error' : 'warning', path: ['registry', key], found, allowed: 'a file that exists' }]
  })
}

const SECRET_NAME = /(^|[_-])(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|AUTHORIZATION)$/i

function keysAreNotInTheFile({ config, source }: CheckContext): Finding[] {
  return config.bus.pools.flatMap((_pool, index) => {
    const { env = {}, headers = {}, token } = rawPool(source, index) as Record<'env' | 'headers' | 'token', RawEntry>
    const places = [
      ...secretsIn(env).map((name) => ({ path: ['pools', index, 'env', name], name })),
      ...secretsIn(headers).map((name) => ({ path: ['pools', index, 'headers', name], name: variableFor(name) })),
      ...(isWrittenOut(token) ? [{ path: ['pools', index, 'token'], name: 'UPSTREAM_TOKEN' }] : []),
    ]
    return places.map(({ path, name }) => ({
      severity: 'warning' as const,
      path,
      found: 'what looks like a secret, written out',
      allowed: 'a reference to the environment of the bus',
      suggestion: `write "\${${name}}" and set ${name} where the bus is started`,
    }))
  })
}

function secretsIn(written: RawEntry): string[] {
  return Object.keys(written).filter((name) => SECRET_NAME.test(name) && isWrittenOut(written[name]))
}

function variableFor(header: string): string {
  return header.toUpperCase().replace(/[^A-Z0-9]+/g, '_')
}

function isWrittenOut(text: unknown): boolean {
  return typeof text === 'string' && text !== '' && !text.includes('${')
}

function doorsAreSafe({ config, source, allowUnauthenticated = false }: CheckContext): Finding[] {
  const asks = asksForCredentials(config.access)
  return (['tcp', 'tls', 'http'] as const).flatMap((kind) =>
    config.listen[kind].flatMap((door, index): Finding[] => {
      const isSecure = 'cert' in door && door.cert !== undefined
      const danger = isLoopback(door) ? undefined : dangerOf(isSecure, asks)
      if (danger === undefined) return []
      const found = `${quote(door.host)}, which other machines may reach`
      const severity = asks || allowUnauthenticated ? 'warning' : 'error'
      return [{ severity, path: doorPath(source, kind, index), found, ...danger }]
    }),
  )
}

/** What a socket file needs: a folder, and nothing else in its place. */
function socketsCanBeMade({ config, source }: CheckContext): Promise<Finding[]> {
  const doors = config.listen.unix.map(({ path }, index) => ({ socket: path, path: doorPath(source, 'unix', index) }))
  const control = config.control === undefined ? [] : [{ socket: config.control, path: ['control'] as Path }]
  return collect([...doors, ...control], async ({ socket, path }) => {
    const folder = dirname(socket)
    const [kind, itself] = await Promise.all([kindOf(folder), kindOf(socket)])
    if (kind !== 'directory') {
      const found = `${quote(folder)}, ${said(kind)}`
      return [{ path, found, allowed: 'a directory that exists', suggestion: toRun('mkdir -p', folder) }]
    }
    if (itself === 'missing' || itself === 'other') return []
    const found = `${quote(socket)}, ${said(itself)}`
    return [{ path, found, allowed: 'a path where nothing is, or a socket', suggestion: 'choose another path' }]
  })
}

/** What somebody else on the network could do at such a door. */
function dangerOf(isSecure: boolean, asks: boolean): Pick<Finding, 'allowed' | 'suggestion'> | undefined {
  if (!asks) {
    return {
      allowed: 'an address of this machine alone: nobody is asked who they are',
      suggestion: 'listen on 127.0.0.1, or start with --allow-unauthenticated if you know who can connect',
    }
  }
  if (isSecure) return undefined
  return {
    allowed: 'an address of this machine alone, or TLS: tokens travel in plain here',
    suggestion:
      'give the door a certificate (listen.tls, or cert and key of listen.http), or put it behind a proxy that speaks TLS',
  }
}

/** Contract 6.7: a shared MCP worker of the handshake era is told that nobody offers roots, sampling or elicitation. */
function sharingFitsMcp({ config, source }: CheckContext): Finding[] {
  const isMcpAgent = new Set(
    config.agents.flatMap((agent) => (agent.type === 'mcp' && 'pool' in agent ? [agent.pool] : [])),
  )
  return config.bus.pools.flatMap((pool, index): Finding[] => {
    const isMcp = pool.protocol === 'mcp' || (pool.protocol === 'auto' && isMcpAgent.has(pool.id))
    const isChosen = rawPool(source, index)['sharing'] !== undefined
    if (!isMcp || isChosen || pool.isAggregate || pool.era === 'modern' || pool.sharing !== 'shared') return []
    return [
      {
        severity: 'note',
        path: ['pools', index],
        found: 'an MCP pool that is shared, so its servers are offered no roots, sampling or elicitation',
        allowed: 'this is fine for servers that put no questions to their clients',
        suggestion: 'choose "sharing": "isolated" or "lease" where they do, or write "shared" to say that you mean it',
      },
    ]
  })
}

/** Clients that come for one protocol are not helped by a pool of another. */
function fallbacksSpeakTheSame({ config }: CheckContext): Finding[] {
  const { pools } = config.bus
  return pools.flatMap(({ fallback, protocol }, index): Finding[] => {
    if (fallback === undefined) return []
    const other = pools.find(({ id }) => id === fallback)?.protocol
    if (other === undefined || other === protocol || [other, protocol].includes('auto')) return []
    return [
      {
        severity: 'warning',
        path: ['pools', index, 'fallback'],
        found: `a pool that speaks ${other}, while this one speaks ${protocol}`,
        allowed: 'a pool that speaks the same protocol',
      },
    ]
  })
}

function boundsFitEachOther({ config }: CheckContext): Finding[] {
  const { maxInputBufferBytes: longest, maxTotalBufferBytes: total } = config.bus.limits
  if (total >= longest) return []
  return [
    {
      severity: 'warning',
      path: ['limits', 'max_total_buffer'],
      found: String(total),
      allowed: `at least the longest line, which is ${longest}`,
      suggestion: 'raise max_total_buffer to several times max_input_buffer',
    },
  ]
}

interface Placed<L extends Launch> {
  readonly launch: L
  /** Of its pool, in the file. */
  readonly index: number
}

function launchesOf({ bus, launches }: BusConfig): Placed<Launch>[] {
  const ids = bus.pools.map(({ id }) => id)
  const placed = ids.flatMap((id, index) => {
    const launch = launches.get(id)
    return launch === undefined ? [] : [{ id, launch, index }]
  })
  // Of two pools with one id, which only a draft can have, the last one is in the map.
  return placed.filter(({ id, index }) => ids.lastIndexOf(id) === index)
}

function processesOf(config: BusConfig): Placed<ProcessLaunch>[] {
  return launchesOf(config).filter((it): it is Placed<ProcessLaunch> => !('url' in it.launch))
}

function upstreamsOf(config: BusConfig): Placed<RemoteLaunch>[] {
  return launchesOf(config).filter((it): it is Placed<RemoteLaunch> => 'url' in it.launch)
}

type RawEntry = Readonly<Record<string, unknown>>
interface RawFile {
  readonly pools: readonly RawEntry[]
  readonly listen?: Readonly<Record<string, unknown>>
}

/** The file has passed the schema, so its shape is known. */
function rawFile(source: Source): RawFile {
  return source.value as RawFile
}

function rawPool(source: Source, index: number): RawEntry {
  return rawFile(source).pools[index] ?? {}
}

export function doorPath(source: Source, kind: 'unix' | 'tcp' | 'tls' | 'http', index: number): Path {
  return Array.isArray(rawFile(source).listen?.[kind]) ? ['listen', kind, index] : ['listen', kind]
}

async function collect<T>(items: readonly T[], find: (item: T) => Promise<Finding[]>): Promise<Finding[]> {
  return (await Promise.all(items.map(find))).flat()
}
