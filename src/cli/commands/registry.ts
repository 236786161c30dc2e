/**
 * `stdio-bus registry ls|show|install|update|prune|rm|run`: agents by their id in an index.
 *
 * Results go to stdout, everything else to stderr; with `run` stdout is the agent's alone. A configuration file is read
 * only when it is named: the folder one happens to be in must not decide what is downloaded and run.
 */
import { type Command, Option } from 'commander'
import { createColors } from 'picocolors'
import { readConfig } from '../../config/read.ts'
import { formatProblems } from '../../config/report.ts'
import { wantsColor } from '../../host/terminal.ts'
import { Warden } from '../../process/warden.ts'
import { describeDistributions, KINDS, type Kind } from '../../registry/distribution.ts'
import { RegistryError } from '../../registry/errors.ts'
import { withoutSecrets } from '../../registry/fetch.ts'
import { drawList, listAgents, rowOf } from '../../registry/listing.ts'
import { currentPlatform } from '../../registry/platform.ts'
import { printable } from '../../registry/printable.ts'
import { ProgressLine } from '../../registry/progress-line.ts'
import { openRegistry, type Registry, type RegistryOptions } from '../../registry/resolve.ts'
import { runAgent } from '../../registry/run-agent.ts'
import { chooseSources, type RegistrySources, type SourceSettings } from '../../registry/sources.ts'
import {
  findInstallations,
  findOutdated,
  type Installation,
  removeInstallations,
  requireInstallations,
  type Update,
  updateAgent,
} from '../../registry/upkeep.ts'

const onStdout = createColors(wantsColor(process.stdout))
const onStderr = createColors(wantsColor(process.stderr))

interface Flags {
  readonly index?: string
  readonly agents?: string
  readonly credentials?: string
  readonly cache?: string
  readonly config?: string
  readonly refresh?: boolean
  readonly distribution?: Kind
  readonly json?: boolean
}

export function addRegistry(program: Command): void {
  const registry = program
    .command('registry')
    .description('agents by their id in the ACP registry or an index of your own')
  withSources(registry.command('ls').description('list the agents that can be named')).action(act(list))
  withSources(registry.command('show <id>').description('show one agent')).action(act(show))
  withSources(registry.command('install <id>').description('install an agent now, for a start without network'))
    .addOption(distributionOption())
    .action(act(install))
  withSources(
    registry.command('update [ids...]').description('install what the index has now of the agents that are installed'),
  ).action(act(update))
  withSources(registry.command('prune').description('remove installed versions that the index names no longer')).action(
    act(prune),
  )
  withSources(registry.command('rm <ids...>').description('remove agents that are installed')).action(act(remove))
  withSources(
    registry
      .command('run <id> [args...]')
      .description('run an agent: stdin and stdout are its own; its arguments after --'),
    false,
  )
    .addOption(distributionOption())
    .action(act(run))
}

function withSources(command: Command, json = true): Command {
  if (json) command.option('--json', 'print JSON')
  return command
    .option('--index <url|file>', 'the index (STDIO_BUS_REGISTRY)')
    .option('--agents <file>', 'agents of your own, in the form of the index (STDIO_BUS_AGENTS)')
    .option('--credentials <file>', 'secrets of agents; mode 600 (STDIO_BUS_CREDENTIALS)')
    .option('--cache <folder>', 'where the index and the agents are kept (~/.stdio-bus/registry)')
    .option('--config <file>', 'take the registry settings of this configuration')
    .option('--refresh', 'fetch the index even if the copy on disk is young')
}

function distributionOption(): Option {
  return new Option('--distribution <kind>', 'instead of the preferred one').choices([...KINDS])
}

/** What every subcommand gets: the sources, a registry to open, and a place for progress. */
interface Context {
  readonly flags: Flags
  readonly sources: RegistrySources
  readonly open: (refresh?: boolean) => Promise<Registry>
}

type Subcommand = (context: Context, ...args: never[]) => Promise<void>

/** Wraps a subcommand: commander's arguments in, errors of the table to stderr with their exit code. */
function act(subcommand: Subcommand) {
  return async (...given: unknown[]): Promise<void> => {
    const flags = given.at(-2) as Flags
    const line = new ProgressLine(process.stderr)
    const interrupt = watchInterrupts()
    try {
      const sources = await readSources(flags)
      if (sources === undefined) return
      const open = (refresh = flags.refresh) => openRegistry({ ...optionsOf(sources, line, interrupt.signal), refresh })
      const context: Context = { flags, sources, open }
      await subcommand(context, ...(given.slice(0, -2) as never[]))
    } catch (error) {
      line.finish()
      process.exitCode = explain(error, interrupt.exitCode())
    } finally {
      line.finish()
      interrupt.stop()
    }
  }
}

function explain(error: unknown, interruptCode: number | undefined): number {
  if (interruptCode !== undefined) {
    process.stderr.write('interrupted; nothing was installed\n')
    return interruptCode
  }
  if (!(error instanceof RegistryError)) throw error
  process.stderr.write(`${onStderr.red('error')}: ${error.message}\n`)
  return error.exitCode
}

function optionsOf(sources: RegistrySources, line: ProgressLine, signal: AbortSignal): RegistryOptions {
  const onWarning = (text: string): void => {
    line.finish()
    process.stderr.write(`${onStderr.yellow('warning')}: ${printable(text)}\n`)
  }
  return { sources, signal, onProgress: line.update, onWarning }
}

async function readSources(flags: Flags): Promise<RegistrySources | undefined> {
  const given: SourceSettings = {
    index: flags.index,
    agentsFile: flags.agents,
    credentialsFile: flags.credentials,
    cacheDir: flags.cache,
  }
  if (flags.config === undefined) return chooseSources(given, process.env, {})
  const reading = await readConfig(flags.config)
  if (reading.ok) return chooseSources(given, process.env, reading.config.registry)
  process.stderr.write(`${formatProblems(reading.problems)}\n`)
  process.exitCode = 2
  return undefined
}

/** Until an agent runs, a signal means: stop installing, leave nothing behind. */
function watchInterrupts() {
  const controller = new AbortController()
  let code: number | undefined
  const onInt = () => interrupt(130)
  const onTerm = () => interrupt(143)
  const interrupt = (exitCode: number): void => {
    code ??= exitCode
    controller.abort()
  }
  process.on('SIGINT', onInt)
  process.on('SIGTERM', onTerm)
  return {
    signal: controller.signal,
    exitCode: () => code,
    stop: () => {
      process.off('SIGINT', onInt)
      process.off('SIGTERM', onTerm)
    },
  }
}

async function list({ flags, sources, open }: Context): Promise<void> {
  const registry = await open()
  const rows = await listAgents(registry)
  const { problems, indexState } = registry.catalogue
  if (flags.json) {
    const index = { source: withoutSecrets(sources.index), state: indexState }
    return printJson({ index, platform: currentPlatform() ?? null, agents: rows, problems })
  }
  print(drawList(rows, process.stdout.columns ?? 100, onStdout))
  for (const { origin, position, id, problem } of problems) {
    const name = id === undefined ? `number ${position + 1}` : `"${id}"`
    process.stderr.write(`${onStderr.yellow('warning')}: ${origin}: entry ${name} is left out: ${problem}\n`)
  }
}

async function show({ flags, open }: Context, id: string): Promise<void> {
  const registry = await open()
  const agent = registry.find(id)
  const row = await rowOf(registry, agent)
  if (flags.json) return printJson({ ...row, distribution: withoutValues(agent.entry.distribution) })
  const { entry } = agent
  const { binary = {}, npx, uvx } = entry.distribution
  const state = row.supported ? (row.installed ? 'ready to start' : 'not installed yet') : 'not for this platform'
  const lines: readonly (readonly [string, string | undefined])[] = [
    [entry.id, `${entry.name} ${entry.version}`],
    ['', entry.description],
    ['state', state],
    ['from', `${agent.origin}: ${describeDistributions(entry).join(', ')}`],
    ['npx', npx && [npx.package, ...(npx.args ?? [])].join(' ')],
    ['uvx', uvx && [uvx.package, ...(uvx.args ?? [])].join(' ')],
    ...Object.entries(binary).map(([key, target]) => [key, target.archive ?? target.cmd] as const),
    ['license', entry.license],
    ['website', entry.website ?? entry.repository],
  ]
  for (const [label, text] of lines) if (text) print(`${onStdout.bold(label.padEnd(16))}${printable(text)}`)
}

async function install({ flags, open }: Context, id: string): Promise<void> {
  const registry = await open()
  const wish = { distribution: flags.distribution }
  const present = await registry.isInstalled(id, wish)
  const { env, secretNames, ...agent } = await registry.resolve(id, wish)
  const variables = [...new Set([...Object.keys(env), ...secretNames])]
  if (flags.json) return printJson({ ...agent, variables, wasInstalled: present === true })
  const where = agent.folder === undefined ? 'it is part of this program' : agent.folder
  print(
    `${onStdout.green('●')} ${agent.id} ${agent.version} (${agent.kind}) ${present ? 'was installed already' : 'is installed'}: ${where}`,
  )
}

async function update({ flags, sources, open }: Context, ids: readonly string[]): Promise<void> {
  const { cacheDir } = sources
  const all = ids.length > 0 ? ids : [...new Set((await findInstallations(cacheDir)).map(({ id }) => id))]
  const installed = await Promise.all(all.map((id) => requireInstallations(cacheDir, id)))
  const registry = await open(true)
  const updates: Update[] = []
  for (const installations of installed) updates.push(...(await updateAgent(registry, installations)))
  if (flags.json) return printJson(updates)
  for (const { id, kind, from, to, isNew } of updates) {
    if (to === null) print(`  ${id} ${from} (${kind}) is not in the index any more`)
    else if (isNew) print(`${onStdout.green('●')} ${id} ${from} -> ${to} (${kind})`)
    else print(`  ${id} ${to} (${kind}) is current`)
  }
  if (updates.length === 0) print('nothing is installed')
  if (updates.some(({ isNew }) => isNew)) print('Next: stdio-bus restart POOL, then stdio-bus registry prune')
}

async function prune({ flags, sources, open }: Context): Promise<void> {
  const outdated = await findOutdated(sources.cacheDir, await open())
  await removeInstallations(sources.cacheDir, outdated)
  printRemoved(outdated, flags, 'nothing to remove: all that is installed is current')
}

async function remove({ flags, sources }: Context, ids: readonly string[]): Promise<void> {
  const found = (await Promise.all(ids.map((id) => requireInstallations(sources.cacheDir, id)))).flat()
  await removeInstallations(sources.cacheDir, found)
  printRemoved(found, flags, '')
}

function printRemoved(removed: readonly Installation[], flags: Flags, none: string): void {
  if (flags.json) return printJson(removed.map(({ id, folder, record }) => ({ id, version: record?.version, folder })))
  if (removed.length === 0) return print(none)
  for (const { id, folder, record } of removed) {
    print(`removed ${id} ${record === undefined ? `(broken): ${folder}` : `${record.version} (${record.kind})`}`)
  }
}

async function run({ flags, open }: Context, id: string, args: readonly string[]): Promise<void> {
  const registry = await open()
  const agent = await registry.resolve(id, { distribution: flags.distribution, args })
  process.exitCode = await runAgent(agent, process.env, guardGroup)
}

/** Should this process be killed outright, the agent must not outlive it (contract 5.4). */
function guardGroup(groupId: number): () => void {
  const warden = new Warden()
  warden.add(groupId)
  return () => {
    warden.remove(groupId)
    warden.close()
  }
}

/** The values of variables are nobody's business, even those of an index. */
function withoutValues(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, inner) => (key === 'env' && inner ? Object.keys(inner) : inner)))
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2))
}
