/**
 * `stdio-bus trace`: what has been called through the bus, as a list, a tree, a graph, a live stream or a document.
 *
 * Asks the running bus, or reads the file itself: with `--store`, or where no bus runs. Both give the same documents.
 */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { findRunning, runDirectory } from '../../console/running.ts'
import { showTime, wantsColor } from '../../host/terminal.ts'
import { whyUnwritable } from '../../host/why-unwritable.ts'
import type { TraceDocument, TraceSummary } from '../../trace/document.ts'
import type { RenderOptions } from '../../trace/render-tree.ts'
import type { TailItem } from '../../trace/tail.ts'
import { readDuration } from '../duration.ts'
import { addReachOptions, namesDoor, type ReachOptions } from '../reach.ts'
import { UserMistake } from '../user-mistake.ts'
import { VERSION } from '../version.ts'

export interface SourceOptions extends ReachOptions {
  readonly control?: string
  readonly store?: string
}

/** What the commands need of the world; tests bring their own. */
export interface Surroundings {
  readonly columns: number | undefined
  readonly color: boolean
  /** Ends what would follow for ever. */
  readonly signal?: AbortSignal
  nowMs(): number
  write(text: string): void
  /** A word about the answer that is no part of it. */
  note?(text: string): void
}

/** Whoever answers: the bus over its control socket, or a file. */
interface Source {
  ask(method: 'list' | 'get' | 'export', params: object): Promise<unknown>
  follow(onItem: (item: TailItem) => void, signal: AbortSignal | undefined): Promise<void>
  close(): void
}

const LOOK_MS = 250
const SHOWN_MATCHES = 5
const EXPORT_FORMATS = ['otlp-json', 'aio', 'html'] as const
const GRAPH_FORMATS = ['svg', 'mermaid'] as const
const TRACE_NAMES = 'the id of a trace, a beginning that only it has, or "last"'

/** A trace that is not there: nothing is wrong with the command. */
export class UnknownTrace extends Error {
  readonly exitCode = 1

  constructor(traceId: string) {
    super(`there is no trace ${JSON.stringify(traceId)}: \`stdio-bus trace ls\` shows those there are`)
  }
}

export function addTrace(program: Command, surroundings: Surroundings = terminal()): void {
  const trace = program.command('trace').description('what was called through the bus: list, look, follow, export')
  const run =
    <Args extends unknown[]>(act: (source: Source, world: Surroundings, ...args: Args) => Promise<void>) =>
    async (...args: [...Args, unknown]): Promise<void> => {
      const given = args.slice(0, -1) as Args
      const source = await openSource(given.at(-1) as SourceOptions, surroundings)
      try {
        await act(source, surroundings, ...given)
      } finally {
        source.close()
      }
    }

  from(trace.command('ls').description('the newest traces'))
    .option('--agent <name>', 'only those in which this agent was called')
    .option('--caller <name>', 'only those with a call of this principal')
    .addOption(new Option('--status <status>', 'only these').choices(['active', 'error', 'completed']))
    .option('--since <time>', 'an ISO 8601 time, or how long ago: 15m, 2h, 7d')
    .option('--limit <count>', 'how many at most', parseCount)
    .option('--json', 'print one JSON document')
    .action(run(list))
  from(trace.command('show').description('the calls of a trace as a tree with times; TRACE#CALL shows one call'))
    .argument('<trace>', TRACE_NAMES)
    .option('--json', 'print the whole document')
    .action(run(show))
  from(trace.command('graph').description('the execution graph of a trace as a picture'))
    .argument('<trace>', TRACE_NAMES)
    .addOption(new Option('--format <format>', 'what to write').choices(GRAPH_FORMATS).default('svg'))
    .option('-o, --output <file>', 'where to (default: standard output)')
    .action(run(graph))
  from(trace.command('tail').description('every call as it begins and ends, until interrupted'))
    .option('--json', 'print one JSON object a line')
    .action(run(tail))
  from(trace.command('export').description('a trace for other programs, or as a page for people'))
    .argument('<trace>', TRACE_NAMES)
    .addOption(new Option('--format <format>', 'what to write').choices(EXPORT_FORMATS).default('aio'))
    .option('--html', 'the same as --format html: one page with waterfall, graph and payloads')
    .option('-o, --output <file>', 'where to (default: standard output)')
    .action(run(exportTrace))
}

function from(command: Command): Command {
  const found = command
    .option('--control <path>', 'the control socket of the bus (default: the only running bus)')
    .option('--unix <path>', 'or a Unix socket it listens on')
  return addReachOptions(found).option('--store <file>', 'or read this trace store, without a bus')
}

interface ListOptions extends SourceOptions {
  readonly agent?: string
  readonly caller?: string
  readonly status?: string
  readonly since?: string
  readonly limit?: number
  readonly json?: boolean
}

async function list(source: Source, world: Surroundings, options: ListOptions): Promise<void> {
  const { agent, caller, status, limit } = options
  const since = options.since === undefined ? undefined : readSince(options.since, world.nowMs())
  const answer = (await source.ask('list', { agent, caller, status, since, limit })) as { traces: TraceSummary[] }
  if (options.json) return world.write(`${JSON.stringify(answer, null, 2)}\n`)
  if (answer.traces.length === 0) return world.write('no traces\n')
  const { renderList } = await import('../../trace/render-list.ts')
  world.write(renderList(answer.traces, drawing(world)))
}

async function show(source: Source, world: Surroundings, name: string, options: { json?: boolean }): Promise<void> {
  const [given = '', callId] = name.split('#')
  const trace = await getTrace(source, given)
  if (callId === undefined) {
    const { renderTree } = await import('../../trace/render-tree.ts')
    return world.write(options.json ? `${JSON.stringify(trace, null, 2)}\n` : renderTree(trace, drawing(world)))
  }
  const call = trace.calls.find(({ id }) => String(id) === callId)
  if (call === undefined) throw new UnknownTrace(name)
  const { renderCall } = await import('../../trace/render-call.ts')
  world.write(options.json ? `${JSON.stringify(call, null, 2)}\n` : renderCall(trace.trace_id, call, drawing(world)))
}

interface FileOptions extends SourceOptions {
  readonly format: string
  readonly html?: boolean
  readonly output?: string
}

async function graph(source: Source, world: Surroundings, name: string, options: FileOptions): Promise<void> {
  const trace = await getTrace(source, name)
  const draw =
    options.format === 'svg'
      ? (await import('../../trace/render-svg.ts')).renderSvg
      : (await import('../../trace/render-mermaid.ts')).renderMermaid
  deliver(draw(trace), world, options.output)
}

async function exportTrace(source: Source, world: Surroundings, name: string, options: FileOptions): Promise<void> {
  if (options.html || options.format === 'html') {
    const { renderPage } = await import('../../trace/render-html.ts')
    return deliver(renderPage(await getTrace(source, name)), world, options.output)
  }
  const { askWholeExport } = await import('../../trace/queries.ts')
  const traceId = await findTraceId(source, name)
  const document = await known(askWholeExport(source.ask, traceId, options.format), traceId)
  deliver(`${JSON.stringify(document, null, 2)}\n`, world, options.output)
}

async function tail(source: Source, world: Surroundings, options: { json?: boolean }): Promise<void> {
  const { renderTailItem } = await import('../../trace/render-list.ts')
  await source.follow((item) => {
    world.write(options.json ? `${JSON.stringify(item)}\n` : renderTailItem(item, drawing(world)))
  }, world.signal)
}

async function getTrace(source: Source, name: string): Promise<TraceDocument> {
  const { askWholeTrace } = await import('../../trace/queries.ts')
  const traceId = await findTraceId(source, name)
  return known(askWholeTrace(source.ask, traceId), traceId)
}

/** The id that is meant: `last`, the id itself, or the beginning of one. */
async function findTraceId(source: Source, name: string): Promise<string> {
  const isLast = name === 'last'
  const params = isLast ? { limit: 1 } : { prefix: name, limit: 1_000 }
  const ids = await listIds(source, params).catch((error: unknown): string[] => {
    if (isLast) throw error
    return []
  })
  if (ids.length === 1 || ids.includes(name)) return isLast ? ids[0]! : (ids.find((id) => id === name) ?? ids[0]!)
  // Another node may have it.
  if (ids.length === 0 && !isLast) return name
  if (ids.length === 0) throw new UnknownTrace(name)
  const some = ids.slice(0, SHOWN_MATCHES).map((id) => JSON.stringify(id))
  const more = ids.length > some.length ? ' and more' : ''
  throw new UserMistake(`${JSON.stringify(name)} begins several traces: ${some.join(', ')}${more}; type more of one`)
}

async function listIds(source: Source, params: object): Promise<string[]> {
  const { traces } = (await source.ask('list', params)) as { traces: TraceSummary[] }
  return traces.map(({ trace_id }) => trace_id)
}

/** Both sources refuse an unknown trace with the same reason. */
async function known<T>(asked: Promise<T>, traceId: string): Promise<T> {
  try {
    return await asked
  } catch (error) {
    const { reason } = ((error as { data?: unknown }).data ?? {}) as { reason?: unknown }
    throw reason === 'unknown_trace' ? new UnknownTrace(traceId) : error
  }
}

async function openSource(options: SourceOptions, world: Surroundings): Promise<Source> {
  const { control, unix, store, ...reach } = options
  const ways = [control, unix, store, reach.tcp, reach.tls].filter((way) => way !== undefined)
  if (ways.length > 1)
    throw new UserMistake('give one of --control, --unix, --tcp, --tls and --store: each names the traces to look at')
  if (namesDoor(reach)) return doorSource(reach)
  if (store !== undefined) return fileSource(store)
  const left = ways.length === 0 ? await storeLeftBehind() : undefined
  if (left === undefined) return busSource(options)
  world.note?.(`no bus is running; this is what ${left} holds`)
  return fileSource(left)
}

/** Where no bus runs: the store that the configuration here names, if there is one. */
async function storeLeftBehind(): Promise<string | undefined> {
  if ((await findRunning()).length > 0) return undefined
  const { readConfig } = await import('../../config/read.ts')
  const reading = await readConfig(undefined)
  const config = reading.ok ? reading.config : reading.draft?.config
  const path = config?.aio.store.path ?? join(runDirectory(), 'traces.db')
  return existsSync(path) ? path : undefined
}

/** As a client sees them that comes through a door. */
async function doorSource(reach: ReachOptions): Promise<Source> {
  const { openAsker } = await import('../ask-bus.ts')
  const asker = await openAsker(reach)
  return {
    ask: (method, params) => asker.ask(`bus::traces.${method}`, params),
    follow: async () => {
      throw new UserMistake('tail follows a bus over its control socket: leave --tcp and --tls out')
    },
    close: () => void asker.close(),
  }
}

async function busSource({ control, unix }: SourceOptions): Promise<Source> {
  const { askControl, followControl } = await import('../../console/control-client.ts')
  const bus = { control, unix }
  return {
    ask: (method, params) => askControl(bus, `traces.${method}`, params),
    follow: async (onItem) => void (await followControl(bus, 'traces.tail', {}, (item) => onItem(item as TailItem))),
    close: () => {},
  }
}

async function fileSource(path: string): Promise<Source> {
  const { openStoreFile } = await import('../../trace/store-file.ts')
  const { QueryRefusal } = await import('../../trace/queries.ts')
  const { tailItem } = await import('../../trace/tail.ts')
  const file = await openStoreFile(path, { version: VERSION })
  return {
    async ask(method, params) {
      const answer = await file.query(method, params)
      if ('fault' in answer) throw new QueryRefusal(answer.fault)
      return JSON.parse(answer.text)
    },
    async follow(onItem, signal) {
      while (!signal?.aborted) {
        for (const event of file.look()) onItem(tailItem(event))
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
      }
    },
    close: () => file.close(),
  }
}

function readSince(text: string, nowMs: number): number {
  const agoMs = readDuration(text)
  if (agoMs !== undefined) return nowMs - agoMs
  const ms = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms))
    throw new UserMistake(`--since ${text}: give an ISO 8601 time, or how long ago as 30s, 15m, 2h, 7d`)
  return ms
}

function parseCount(text: string): number {
  const count = Number(text)
  if (!Number.isInteger(count) || count < 1 || count > 1_000)
    throw new InvalidArgumentError('an integer from 1 to 1000')
  return count
}

/** A trace may hold what its calls held, so a new file is its owner's only. */
function deliver(text: string, world: Surroundings, file: string | undefined): void {
  if (file === undefined) return world.write(text)
  try {
    writeFileSync(file, text, { mode: 0o600 })
  } catch (cause) {
    const why = whyUnwritable(cause)
    throw new UserMistake(`--output ${file} cannot be written: ${why}; name a file in a folder you may write to`, {
      cause,
    })
  }
}

/** On a terminal times are those of its clock (contract 8.5). */
function drawing({ columns, color }: Surroundings): RenderOptions {
  if (columns === undefined) return { color }
  return { columns, color, showTime: (time) => showTime(Date.parse(time)) }
}

/** A reader like `head` that has seen enough is no failure. */
function terminal(): Surroundings {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  return {
    columns: process.stdout.columns,
    color: wantsColor(process.stdout),
    nowMs: Date.now,
    write: (text) => void process.stdout.write(text),
    note: (text) => void process.stderr.write(`${text}\n`),
  }
}
