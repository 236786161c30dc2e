/**
 * `stdio-bus status`: what a running bus is doing, for people, for programs and for Prometheus.
 *
 * Where several run and none is named, it is a list of them. With `--watch` a bus that goes is waited for.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { type ClusterStatus, formatCluster } from '../../console/cluster-view.ts'
import {
  askControl,
  ControlFailure,
  ControlMistake,
  type ControlOptions,
  findBuses,
} from '../../console/control-client.ts'
import { formatMetrics } from '../../console/metrics.ts'
import type { Status } from '../../console/status.ts'
import { formatStatus } from '../../console/status-view.ts'
import { canMoveCursor, showTime, wantsColor } from '../../host/terminal.ts'
import { openAsker } from '../ask-bus.ts'
import { addReachOptions, namesDoor, type ReachOptions } from '../reach.ts'
import { UserMistake } from '../user-mistake.ts'
import { addBusOptions } from '../which-bus.ts'

interface StatusOptions extends ControlOptions, Omit<ReachOptions, 'unix'> {
  readonly json?: boolean
  readonly metrics?: boolean
  readonly watch?: boolean
  readonly cluster?: boolean
}

const WATCH_MS = 1_000
const CLEAR = '\x1b[H\x1b[2J'

export function addStatus(program: Command): void {
  const command = addBusOptions(
    program.command('status').description('what a running bus is doing: workers, clients, sessions, requests, queues'),
  )
  addReachOptions(command)
    .option('--json', 'print one JSON document; a list of them where several buses run')
    .option('--metrics', 'print Prometheus text')
    .option('--cluster', 'the other nodes, as this one sees them')
    .option('--watch', 'print again every second; a bus that goes is waited for')
    .action(async (options: StatusOptions) => {
      const text = await show(options)
      if (!options.watch) return void process.stdout.write(text)
      await watch(options, text)
    })
}

async function watch(options: StatusOptions, first: string): Promise<never> {
  const isPage = canMoveCursor(process.stdout) && !options.json && !options.metrics
  for (let text: string | undefined = first; ; text = await show(options).catch(onlyGone)) {
    if (text !== undefined) process.stdout.write(isPage ? `${CLEAR}${text}\n${showTime(Date.now())}\n` : text)
    else if (isPage) process.stdout.write(`${CLEAR}the bus has gone; waiting for it to come back\n`)
    else process.stderr.write('the bus has gone; waiting for it to come back\n')
    await sleep(WATCH_MS)
  }
}

/** Whatever else is wrong will not pass by itself. */
function onlyGone(error: unknown): undefined {
  if (!(error instanceof ControlFailure) || error instanceof ControlMistake) throw error
}

async function show(options: StatusOptions): Promise<string> {
  if (options.cluster) return showCluster(options)
  const buses = await ask(options)
  const [status] = buses
  if (options.metrics) return formatMetrics(onlyOne(buses))
  if (options.json) return `${JSON.stringify(buses.length === 1 ? status : buses, null, options.watch ? 0 : 2)}\n`
  const color = wantsColor(process.stdout)
  return buses.map((bus) => formatStatus(bus, { color })).join('\n')
}

async function showCluster(options: StatusOptions): Promise<string> {
  const { control, unix, config, json, watch: isWatched, metrics } = options
  if (metrics || namesDoor(withoutControl(options)))
    throw new UserMistake('--cluster is asked at the control socket, and goes with --json and --watch only')
  const status = (await askControl({ control, unix, config }, 'cluster')) as ClusterStatus
  if (json) return `${JSON.stringify(status, null, isWatched ? 0 : 2)}\n`
  return formatCluster(status, { color: wantsColor(process.stdout) })
}

function withoutControl(options: StatusOptions): ReachOptions {
  const { control: _control, unix: _unix, config: _config, ...reach } = options
  return reach
}

function onlyOne(buses: readonly Status[]): Status {
  if (buses.length === 1) return buses[0]!
  const names = buses.map(({ config }) => `--config ${config}`).join(', ')
  throw new UserMistake(`${buses.length} buses are running, and metrics are those of one: add one of ${names}`)
}

/** Its control socket, or a door of it where one is named. */
async function ask(options: StatusOptions): Promise<readonly Status[]> {
  const { control, unix, config, json, metrics, watch: _watch, cluster: _cluster, ...reach } = options
  if (!namesDoor(reach)) {
    const buses = await findBuses({ control, unix, config })
    const wait = json !== true && metrics !== true
    return Promise.all(buses.map((bus) => askControl({ control: bus.control }, 'status', { wait }))) as Promise<
      Status[]
    >
  }
  if ((control ?? unix ?? config) !== undefined)
    throw new UserMistake('give one of --control, --unix, --config, --tcp and --tls')
  const asker = await openAsker(reach)
  try {
    return [(await asker.ask('bus::status')) as Status]
  } finally {
    await asker.close()
  }
}
