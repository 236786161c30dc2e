/** The state of the bus as Prometheus text; plain numbers in, text out. */
import type { Status } from './status.ts'

/** What of the status is counted. */
type Measured = Omit<Status, 'pid' | 'version' | 'uptime_sec' | 'rss_bytes' | 'addresses' | 'config'>

interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'gauge' | 'counter'
  readonly samples: (bus: Measured) => readonly Sample[]
  /** Without samples it is not told of. */
  readonly isOptional?: true
}

type Sample = readonly [labels: Readonly<Record<string, string | number>>, value: number]

const perWorker =
  (value: (worker: Measured['workers'][number]) => number) =>
  (bus: Measured): Sample[] =>
    bus.workers.map((worker) => [{ pool: worker.pool, worker: worker.id }, value(worker)])

const perReason =
  (counts: (bus: Measured) => Readonly<Record<string, number>>) =>
  (bus: Measured): Sample[] =>
    Object.entries(counts(bus)).map(([reason, count]) => [{ reason }, count])

const METRICS: readonly Metric[] = [
  { name: 'clients', help: 'Connected clients.', type: 'gauge', samples: (bus) => [[{}, bus.clients]] },
  {
    name: 'clients_total',
    help: 'Clients that ever connected.',
    type: 'counter',
    samples: (bus) => [[{}, bus.clients_total]],
  },
  { name: 'sessions', help: 'Live sessions.', type: 'gauge', samples: (bus) => [[{}, bus.sessions]] },
  {
    name: 'outstanding_requests',
    help: 'Requests that wait for an answer.',
    type: 'gauge',
    samples: (bus) => [[{}, bus.outstanding]],
  },
  {
    name: 'queue_bytes',
    help: 'Bytes queued towards all peers.',
    type: 'gauge',
    samples: (bus) => [[{}, bus.queue_bytes]],
  },
  {
    name: 'paused_peers',
    help: 'Peers that are not read from, because a queue they fill is full.',
    type: 'gauge',
    samples: (bus) => [[{}, bus.paused]],
  },
  {
    name: 'lines_total',
    help: 'Lines read, by side.',
    type: 'counter',
    samples: (bus) => [
      [{ from: 'clients' }, bus.lines.from_clients],
      [{ from: 'workers' }, bus.lines.from_workers],
    ],
  },
  {
    name: 'dropped_total',
    help: 'Messages that nobody was owed an answer for and that were dropped.',
    type: 'counter',
    samples: perReason((bus) => bus.dropped),
  },
  {
    name: 'refused_total',
    help: 'Errors the bus itself has answered with.',
    type: 'counter',
    samples: perReason((bus) => bus.refused),
  },
  {
    name: 'worker_ready',
    help: '1 if the worker takes messages.',
    type: 'gauge',
    samples: perWorker((worker) => (worker.state === 'ready' ? 1 : 0)),
  },
  {
    name: 'worker_generation',
    help: 'Processes that have filled the slot.',
    type: 'gauge',
    samples: perWorker((worker) => worker.generation),
  },
  {
    name: 'worker_restarts_total',
    help: 'Restarts of the worker.',
    type: 'counter',
    samples: perWorker((worker) => worker.restarts),
  },
  {
    name: 'worker_requests_total',
    help: 'Requests that were sent to the worker.',
    type: 'counter',
    samples: perWorker((worker) => worker.requests),
  },
  {
    name: 'worker_outstanding_requests',
    help: 'Requests the worker has not answered.',
    type: 'gauge',
    samples: perWorker((worker) => worker.outstanding),
  },
  {
    name: 'worker_queue_bytes',
    help: 'Bytes queued towards the worker.',
    type: 'gauge',
    samples: perWorker((worker) => worker.queue_bytes),
  },
  {
    name: 'worker_sessions',
    help: 'Sessions on the worker.',
    type: 'gauge',
    samples: perWorker((worker) => worker.sessions),
  },
  ...webMetrics(),
  ...clusterMetrics(),
]

/** Of a bus with web doors; elsewhere they have no samples, and are left out. */
function webMetrics(): Metric[] {
  type Figures = NonNullable<Measured['web']>
  const of = (name: string, help: string, value: (web: Figures) => number): Metric => ({
    name: `web_${name}`,
    help,
    type: 'gauge',
    isOptional: true,
    samples: ({ web }) => (web === undefined ? [] : [[{}, value(web)]]),
  })
  return [
    of('connections', 'Connections at the web doors.', (web) => web.connections),
    of('mcp_sessions', 'Sessions of MCP over HTTP.', (web) => web.mcp_sessions),
    of('acp_connections', 'Clients of ACP over HTTP.', (web) => web.acp_connections),
    of('streams', 'Answers that are streams of events.', (web) => web.streams),
  ]
}

/** Of a node of many; elsewhere they have no samples, and are left out. */
function clusterMetrics(): Metric[] {
  type Figures = NonNullable<Measured['cluster']>
  const of = (name: string, type: Metric['type'], help: string, samples: (cluster: Figures) => Sample[]): Metric => ({
    name: `cluster_${name}`,
    help,
    type,
    isOptional: true,
    samples: ({ cluster }) => (cluster === undefined ? [] : samples(cluster)),
  })
  const states = ['ready', 'leaving', 'silent', 'lost', 'incompatible'] as const
  const ways = (counts: { readonly sent: number; readonly received: number }): Sample[] => [
    [{ way: 'sent' }, counts.sent],
    [{ way: 'received' }, counts.received],
  ]
  return [
    of('nodes', 'gauge', 'Other nodes, by state.', ({ nodes }) =>
      states.map((state) => [{ state }, nodes.filter((node) => node.state === state).length]),
    ),
    of('streams', 'gauge', 'Streams with another node.', ({ nodes }) =>
      nodes.map(({ node, streams }) => [{ node }, streams]),
    ),
    of('bytes_total', 'counter', 'Bytes in messages with other nodes.', ({ bytes }) => ways(bytes)),
    of('frames_total', 'counter', 'Frames in messages with other nodes.', ({ frames }) => ways(frames)),
    of('resent_bytes_total', 'counter', 'Bytes that were sent again.', (cluster) => [[{}, cluster.resent_bytes]]),
    of('stalled_total', 'counter', 'Times that a stream had no credit.', ({ stalled }) => [[{}, stalled]]),
    of('lost_total', 'counter', 'Nodes that were lost.', ({ lost }) => [[{}, lost]]),
    of(
      'junk_total',
      'counter',
      'Messages that could not be read, or that nobody was to believe, by sender.',
      ({ junk }) => Object.entries(junk).map(([node, count]) => [{ node }, count]),
    ),
    of('rtt_seconds', 'gauge', 'There and back, as last measured.', ({ nodes }) =>
      nodes.flatMap(({ node, rtt_ms: rtt }): Sample[] => (rtt === null ? [] : [[{ node }, rtt / 1000]])),
    ),
  ]
}

export function formatMetrics(bus: Measured): string {
  const told = METRICS.filter(({ isOptional, samples }) => isOptional === undefined || samples(bus).length > 0)
  return told.map((metric) => formatMetric(metric, bus)).join('')
}

function formatMetric({ name, help, type, samples }: Metric, bus: Measured): string {
  const full = `stdio_bus_${name}`
  const lines = samples(bus).map(([labels, value]) => `${full}${formatLabels(labels)} ${value}\n`)
  return `# HELP ${full} ${help}\n# TYPE ${full} ${type}\n${lines.join('')}`
}

function formatLabels(labels: Sample[0]): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}="${escapeLabel(String(value))}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
