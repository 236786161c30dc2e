/**
 * Compares a configuration with the machine it is to run on: programs, directories, permissions, and combinations that
 * are allowed but rarely meant. It changes nothing, runs nothing and connects to nothing.
 *
 * Errors are what would keep a pool or a door from working; warnings and notes never fail a check.
 */
import { dirname } from 'node:path'
import { isLoopback } from './address.ts'
import { asksForCredentials } from './admission.ts'
import type { BusConfig, CommandLaunch, Launch } from './bus-config.ts'
import { type Environment, workerEnvironment } from './environment.ts'
import { refuseExecution } from './executable.ts'
import { kindOf, modeOf, said } from './file-facts.ts'
import { byPlace, type Finding, type Path, type Problem, quote } from './problem.ts'
import type { Source } from './source.ts'

export interface CheckContext {
  readonly config: BusConfig
  readonly source: Source
  readonly environment: Environment
}

type Check = (context: CheckContext) => Finding[] | Promise<Finding[]>

const CHECKS: readonly Check[] = [
  programsCanBeExecuted,
  fifosCanBeMade,
  directoriesExist,
  nobodyElseWritesTheFile,
  credentialsArePrivate,
  registryFilesExist,
  keysAreNotInTheFile,
  doorsAreSafe,
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
    const suggestion = 'install it, give its full path, or set PATH in the env of the pool'
    return [
      {
        path: ['pools', index, 'command'],
        found: `${quote(launch.command)}, ${refusal}`,
        allowed: 'an executable program',
        suggestion,
      },
    ]
  })
}

/** The runtime cannot make them by itself. */
async function fifosCanBeMade({ config, environment }: CheckContext): Promise<Finding[]> {
  const wanting = launchesOf(config).filter(({ launch }) => launch.pipes === 'fifo')
  if (wanting.length === 0) return []
  const refusal = await refuseExecution({ command: 'mkfifo', cwd: '/', path: environment['PATH'] })
  if (refusal === undefined) return []
  return wanting.map(({ index }) => ({
    path: ['pools', index, 'pipes'],
    found: `"fifo", but mkfifo, which makes them, is ${refusal.replace('worker', 'bus')}`,
    allowed: '"default", or mkfifo in the PATH of the bus',
  }))
}

function directoriesExist({ config }: CheckContext): Promise<Finding[]> {
  return collect(launchesOf(config), async ({ launch, index }) => {
    const kind = await kindOf(launch.cwd)
    if (kind === 'directory') return []
    return [
      {
        path: ['pools', index, 'cwd'],
        found: `${quote(launch.cwd)}, ${said(kind)}`,
        allowed: 'a directory that exists',
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
      suggestion: `chmod go-w ${config.file}`,
    },
  ]
}

async function credentialsArePrivate({ config }: CheckContext): Promise<Finding[]> {
  const file = config.registry.credentialsFile
  if (file === undefined || ((await modeOf(file)) & 0o077) === 0) return []
  const suggestion = `chmod 600 ${file}`
  return [
    {
      path: ['registry', 'credentials'],
      found: 'a file that others may read',
      allowed: 'a file only its owner may read',
      suggestion,
    },
  ]
}

function registryFilesExist({ config }: CheckContext): Promise<Finding[]> {
  const { index, agentsFile, credentialsFile } = config.registry
  const indexFile = index !== undefined && !index.includes('://') ? index : undefined
  const files = Object.entries({ index: indexFile, agents: agentsFile, credentials: credentialsFile })
  return collect(files, async ([key, file]) => {
    if (file === undefined) return []
    const kind = await kindOf(file)
    return kind === 'file'
      ? []
      : [{ path: ['registry', key], found: `${quote(file)}, ${said(kind)}`, allowed: 'a file that exists' }]
  })
}

const SECRET_NAME = /(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD)$/i

function keysAreNotInTheFile({ config, source }: CheckContext): Finding[] {
  return launchesOf(config).flatMap(({ launch, index }) => {
    const written = (rawPool(source, index)['env'] ?? {}) as RawEntry
    const names = Object.keys(launch.env).filter((name) => SECRET_NAME.test(name) && isWrittenOut(written[name]))
    return names.map((name) => ({
      severity: 'warning' as const,
      path: ['pools', index, 'env', name],
      found: 'what looks like a secret, written out',
      allowed: 'a reference to the environment of the bus',
      suggestion: `write "\${${name}}" and set ${name} where the bus is started`,
    }))
  })
}

function isWrittenOut(text: unknown): boolean {
  return typeof text === 'string' && text !== '' && !text.includes('${')
}

async function doorsAreSafe({ config, source }: CheckContext): Promise<Finding[]> {
  const { unix } = config.listen
  const exposed = (['tcp', 'tls'] as const).flatMap((kind) =>
    config.listen[kind].flatMap((door, index): Finding[] => {
      const danger = isLoopback(door) ? undefined : dangerOf(kind, asksForCredentials(config.access))
      if (danger === undefined) return []
      const found = `${quote(door.host)}, which other machines may reach`
      return [{ severity: 'warning', path: doorPath(source, kind, index), found, ...danger }]
    }),
  )
  const homeless = await collect(
    unix.map((door, index) => ({ door, index })),
    async ({ door, index }) => {
      const folder = dirname(door.path)
      const kind = await kindOf(folder)
      if (kind === 'directory') return []
      return [
        {
          path: doorPath(source, 'unix', index),
          found: `${quote(folder)}, ${said(kind)}`,
          allowed: 'a directory that exists',
          suggestion: `mkdir -p ${folder}`,
        },
      ]
    },
  )
  return [...exposed, ...homeless]
}

/** What somebody else on the network could do at such a door. */
function dangerOf(kind: 'tcp' | 'tls', asks: boolean): Pick<Finding, 'allowed' | 'suggestion'> | undefined {
  if (!asks) {
    return {
      allowed: 'an address of this machine alone: nobody is asked who they are',
      suggestion: 'listen on 127.0.0.1, or start with --allow-unauthenticated if you know who can connect',
    }
  }
  if (kind === 'tls') return undefined
  return {
    allowed: 'an address of this machine alone, or TLS: tokens travel in plain here',
    suggestion: 'put the door into listen.tls with a certificate, or behind a proxy that speaks TLS',
  }
}

/** Contract 6.7: a shared MCP worker of the handshake era is told that nobody offers roots, sampling or elicitation. */
function sharingFitsMcp({ config, source }: CheckContext): Finding[] {
  const isMcpAgent = new Set(config.agents.flatMap((agent) => (agent.type === 'mcp' ? [agent.pool] : [])))
  return config.bus.pools.flatMap((pool, index): Finding[] => {
    const isMcp = pool.protocol === 'mcp' || (pool.protocol === 'auto' && isMcpAgent.has(pool.id))
    const isChosen = rawPool(source, index)['sharing'] !== undefined
    if (!isMcp || isChosen || pool.era === 'modern' || pool.sharing !== 'shared') return []
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
  const placed = ids.map((id, index) => ({ id, launch: launches.get(id)!, index }))
  // Of two pools with one id, which only a draft can have, the last one is in the map.
  return placed.filter(({ id, index }) => ids.lastIndexOf(id) === index)
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

export function doorPath(source: Source, kind: 'unix' | 'tcp' | 'tls', index: number): Path {
  return Array.isArray(rawFile(source).listen?.[kind]) ? ['listen', kind, index] : ['listen', kind]
}

async function collect<T>(items: readonly T[], find: (item: T) => Promise<Finding[]>): Promise<Finding[]> {
  return (await Promise.all(items.map(find))).flat()
}
