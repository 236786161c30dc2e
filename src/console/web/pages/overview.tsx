/** What is wrong, what is up, and how much is going on (contract 15.7). */
import { useEffect, useState } from 'preact/hooks'
import { ApiFailure, ask, may } from '../api.ts'
import { followTopic } from '../feed.ts'
import { Chart } from '../parts/chart.tsx'
import { Confirm } from '../parts/confirm.tsx'
import { useLoaded } from '../parts/loaded.tsx'
import { Failed, Loading } from '../parts/state.tsx'
import { hrefOf, query, setQuery } from '../router.ts'
import { brief, bytes, clock, count, counted, duration, shown } from '../text.ts'

interface Problem {
  readonly id: string
  readonly severity: 'error' | 'warning'
  readonly what: string
  readonly why: string | null
  readonly todo: string
  readonly link: string
  readonly since: string
}

interface Worker {
  readonly id: number
  readonly pool: string
  readonly state: string
  readonly pid: number | null
  readonly address?: string
  readonly restarts: number
  readonly sessions: number
  readonly outstanding: number
  readonly queue_bytes: number
}

interface Picture {
  readonly problems: readonly Problem[]
  readonly pools: readonly { readonly id: string; readonly workers: number; readonly ready: number }[]
  readonly workers: readonly Worker[]
  readonly totals: Readonly<Record<string, number>>
}

interface Span {
  readonly at: string
  readonly requests: number
  readonly errors: number
  readonly p50_ms: number | null
  readonly p95_ms: number | null
  readonly p99_ms: number | null
}

interface History {
  readonly span_ms: number
  readonly pools: Readonly<Record<string, readonly Span[]>>
}

export function Overview() {
  const { value: loaded, error, again } = useLoaded<Picture>('overview')
  const [live, setLive] = useState<Picture>()
  useEffect(() => followTopic('overview', (data) => setLive(data as Picture)), [])
  const picture = live ?? loaded
  if (picture === undefined)
    return (
      <>
        <h1>Overview</h1>
        {error === undefined ? <Loading what="the overview" /> : <Failed error={error} retry={again} />}
      </>
    )
  return (
    <>
      <h1>Overview</h1>
      <Problems problems={picture.problems} workers={picture.workers} />
      <Charts pools={picture.pools.map(({ id }) => id)} />
      <Workers workers={picture.workers} />
      <p class="quiet totals">
        {counted(picture.totals['clients'] ?? 0, 'client')} · {counted(picture.totals['sessions'] ?? 0, 'session')} ·{' '}
        {count(picture.totals['outstanding'] ?? 0)} pending · {bytes(picture.totals['queue_bytes'] ?? 0)} queued ·{' '}
        {bytes(picture.totals['rss_bytes'] ?? 0)} of memory · up {duration((picture.totals['uptime_sec'] ?? 0) * 1_000)}
      </p>
    </>
  )
}

/** What is behind the link of a problem, by the first part of its path. */
const LINKS: Readonly<Record<string, string>> = {
  sessions: 'Open',
  logs: 'Log',
  config: 'Configuration',
  access: 'Access',
}

interface ProblemsProps {
  readonly problems: readonly Problem[]
  readonly workers: readonly Worker[]
}

function Problems({ problems, workers }: ProblemsProps) {
  const workerOf = (id: string) => workers.find((worker) => `worker/${worker.pool}/${worker.id}` === id)
  return (
    <section
      class={`card problems ${problems.length === 0 ? 'well' : problems[0]!.severity}`}
      aria-labelledby="problems-title"
    >
      <h2 id="problems-title">Problems {problems.length > 0 && <span class="badge loud">{problems.length}</span>}</h2>
      {problems.length === 0 && <p>Nothing is wrong.</p>}
      <ul aria-live="polite">
        {problems.map(({ id, severity, what, why, todo, link, since }) => (
          <li key={id} class={severity}>
            <span class="mark" aria-hidden="true">
              {severity === 'error' ? '✗' : '!'}
            </span>
            <div class="grow">
              <p>
                <span class="sr-only">{severity === 'error' ? 'Error: ' : 'Warning: '}</span>
                <strong>{shown(what)}</strong> <span class="quiet">since {clock(since)}</span>
                {why !== null && <span class="why">: {brief(why, 300)}</span>}
              </p>
              <p class="quiet">{shown(todo)}</p>
            </div>
            <div class="acts">
              {may('admin') && workerOf(id) !== undefined && <Restart worker={workerOf(id)!} isOfProblem />}
              <a class="button small" href={hrefOf(link)} aria-label={`${linkName(link)}: ${shown(what)}`}>
                {linkName(link)}
              </a>
            </div>
          </li>
        ))}
      </ul>
    </section>
  )
}

function linkName(link: string): string {
  return LINKS[/^\w*/.exec(link)![0]] ?? 'Look'
}

const HISTORY_MS = 5_000

function Charts({ pools }: { readonly pools: readonly string[] }) {
  const asked = query.value.get('pool') ?? ''
  const pool = pools.includes(asked) ? asked : ''
  const { value, again } = useLoaded<History>(pool === '' ? 'history' : `history?pool=${encodeURIComponent(pool)}`)
  useEffect(() => {
    const timer = setInterval(again, HISTORY_MS)
    return () => clearInterval(timer)
  }, [again])
  const spans = value === undefined ? [] : sumOf(Object.values(value.pools))
  const perSecond = (field: 'requests' | 'errors') =>
    spans.map((span) => span[field] / ((value?.span_ms ?? 5_000) / 1_000))
  const last = spans.at(-2)
  const writeRate = (value: number): string => count(round(value))
  const since = spans.length === 0 ? '' : clock(spans[0]!.at)
  return (
    <section aria-label="Traffic">
      <div class="row">
        <label class="inline">
          Pool{' '}
          <select value={pool} onChange={(event) => setQuery({ pool: event.currentTarget.value })}>
            <option value="">all</option>
            {pools.map((id) => (
              <option key={id} value={id}>
                {shown(id)}
              </option>
            ))}
          </select>
        </label>
        <span class="quiet">the last 15 minutes</span>
      </div>
      <div class="charts">
        <Chart
          title="requests/s"
          figure={last === undefined ? '–' : count(round(perSecond('requests').at(-2)!))}
          lines={[perSecond('requests')]}
          write={writeRate}
          since={since}
        />
        <Chart
          title="errors/s"
          figure={last === undefined ? '–' : count(round(perSecond('errors').at(-2)!))}
          lines={[perSecond('errors')]}
          write={writeRate}
          since={since}
          isBad={spans.some(({ errors }) => errors > 0)}
        />
        <Chart
          title="p50 p95 p99"
          figure={last === undefined ? '–' : [last.p50_ms, last.p95_ms, last.p99_ms].map(inOnePiece).join(' · ')}
          lines={(['p50_ms', 'p95_ms', 'p99_ms'] as const).map((field) => spans.map((span) => span[field]))}
          write={duration}
          since={since}
        />
      </div>
    </section>
  )
}

/** A figure stays with its unit. */
function inOnePiece(time: number | null): string {
  return duration(time).replace(' ', '\u00a0')
}

/** Of several pools: counts add up, times are those of the slowest. */
function sumOf(pools: readonly (readonly Span[])[]): Span[] {
  const [first, ...rest] = pools
  const worst = (one: number | null, other: number | null): number | null =>
    one === null ? other : other === null ? one : Math.max(one, other)
  return (first ?? []).map((span, index) =>
    rest.reduce(
      (sum, pool) => ({
        at: sum.at,
        requests: sum.requests + pool[index]!.requests,
        errors: sum.errors + pool[index]!.errors,
        p50_ms: worst(sum.p50_ms, pool[index]!.p50_ms),
        p95_ms: worst(sum.p95_ms, pool[index]!.p95_ms),
        p99_ms: worst(sum.p99_ms, pool[index]!.p99_ms),
      }),
      span,
    ),
  )
}

function round(value: number): number {
  return value < 10 ? Math.round(value * 10) / 10 : Math.round(value)
}

const MARKS: Readonly<Record<string, string>> = {
  ready: '●',
  parked: '✗',
  backing_off: '◐',
  starting: '◔',
  retiring: '◌',
}

function Workers({ workers }: { readonly workers: readonly Worker[] }) {
  const isAdmin = may('admin')
  return (
    <section class="card" aria-labelledby="workers-title">
      <h2 id="workers-title">Workers</h2>
      <table class="cards" aria-labelledby="workers-title">
        <thead>
          <tr>
            {['Pool', 'Worker', 'State', 'Process', 'Restarts', 'Sessions', 'Pending', 'Queue'].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
            {isAdmin && (
              <th scope="col">
                <span class="sr-only">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {workers.map((worker) => (
            <Row key={`${worker.pool}/${worker.id}`} worker={worker} isAdmin={isAdmin} />
          ))}
        </tbody>
      </table>
      {workers.length === 0 && <p class="quiet">No worker runs: they start when somebody needs them.</p>}
    </section>
  )
}

function Row({ worker, isAdmin }: { readonly worker: Worker; readonly isAdmin: boolean }) {
  const { id, pool, state, pid, address, restarts, sessions, outstanding, queue_bytes } = worker
  return (
    <tr class={`worker ${state}`}>
      <td data-title="Pool">{shown(pool)}</td>
      <td data-title="Worker">{id}</td>
      <td data-title="State">
        <span class={`mark ${state}`} aria-hidden="true">
          {MARKS[state] ?? '○'}
        </span>{' '}
        {state.replace('_', ' ')}
      </td>
      <td data-title="Process" class="figure">
        {pid ?? (address === undefined ? '–' : shown(address))}
      </td>
      <td data-title="Restarts" class="figure">
        {restarts}
      </td>
      <td data-title="Sessions" class="figure">
        {sessions}
      </td>
      <td data-title="Pending" class="figure">
        {outstanding}
      </td>
      <td data-title="Queue" class="figure">
        {bytes(queue_bytes)}
      </td>
      {isAdmin && (
        <td>
          <Restart worker={worker} />
        </td>
      )}
    </tr>
  )
}

/** Asks first where something would be lost. */
function Restart({ worker, isOfProblem = false }: { readonly worker: Worker; readonly isOfProblem?: boolean }) {
  const { pool, id, sessions, outstanding } = worker
  const [state, setState] = useState('Restart')
  const [isAsking, setAsking] = useState(false)
  const restart = async (): Promise<void> => {
    setState('Restarting …')
    const told = await ask(`workers/${encodeURIComponent(pool)}/${id}/restart`, { body: {} }).then(
      () => 'Restart',
      (error) => (error instanceof ApiFailure ? error.reason : 'failed'),
    )
    setState(told)
  }
  return (
    <>
      <button
        type="button"
        class="small"
        disabled={state === 'Restarting …'}
        onClick={() => (sessions + outstanding > 0 ? setAsking(true) : restart())}
        aria-label={isOfProblem ? `Restart ${shown(pool)}.${id} for this problem` : `Restart ${shown(pool)}.${id}`}
      >
        {state}
      </button>
      {isAsking && (
        <Confirm title={`Restart ${shown(pool)}.${id}?`} verb="Restart" act={restart} close={() => setAsking(false)}>
          <p>
            Sessions there: {count(sessions)}; answers that it owes: {count(outstanding)}. What it owes is answered with
            an error, and sessions that it cannot bring back are lost.
          </p>
        </Confirm>
      )}
    </>
  )
}
