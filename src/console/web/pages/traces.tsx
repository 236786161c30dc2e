/** Traces: what was called, newest first and live, and what of it is wanted; one of them is looked at in its own view (contract 15.9). */
import { useEffect, useMemo } from 'preact/hooks'
import { ApiFailure } from '../api.ts'
import { Rows } from '../parts/rows.tsx'
import { Empty, Failed, Loading } from '../parts/state.tsx'
import { go, hrefOf, parts, pathOf, query, setQuery } from '../router.ts'
import { brief, clock, count, duration } from '../text.ts'
import { MARKS, nameOf, plural, type Summary, spanMs } from '../trace/trace.ts'
import { MAX_TRACES, TraceList } from '../trace/trace-list.ts'
import { TraceView } from './trace.tsx'

const ROW_PX = 60
const STATUSES = [
  ['', 'all'],
  ['active', 'active'],
  ['error', 'error'],
  ['completed', 'completed'],
] as const
/** Filters that are seldom wanted, by their name in the address. */
const MORE_FILTERS = [
  ['agent', 'Agent'],
  ['method', 'Method'],
  ['caller', 'Caller'],
  ['min_ms', 'At least (ms)'],
] as const
const FILTERS = ['text', 'status', 'since', ...MORE_FILTERS.map(([name]) => name)]

export function Traces() {
  const [, id, call] = parts.value
  if (id === undefined) return <List />
  return <TraceView key={id} id={id} call={call} />
}

function List() {
  const list = useMemo(() => new TraceList(), [])
  useEffect(() => () => list.close(), [list])
  const filters = filtersOf(query.value)
  useEffect(() => list.filter(filters), [list, filters])
  const items = list.items.value
  const error = list.error.value
  const more = useMemo(() => () => void list.more(), [list])
  return (
    <>
      <h1>Traces</h1>
      <Filters />
      {error !== undefined && <NotLoaded error={error} retry={() => list.retry()} />}
      {items === undefined && error === undefined && <Loading what="the traces" />}
      {items?.length === 0 && error === undefined && <Nothing isFiltered={filters !== ''} />}
      {items !== undefined && items.length > 0 && (
        <>
          <Rows
            label="Traces"
            items={items}
            keyOf={({ trace_id }) => trace_id}
            rowHeight={ROW_PX}
            onOpen={(row) => go(pathOf('traces', row.trace_id))}
            onEnd={list.hasMore.value ? more : undefined}
            render={(row) => <TraceRow row={row} />}
          />
          <p class="quiet list-foot">
            {list.hasMore.value
              ? `The newest ${count(items.length)}; ${items.length < MAX_TRACES ? 'scrolling shows more' : 'a filter finds older ones'}.`
              : plural(items.length, 'trace')}
          </p>
        </>
      )}
    </>
  )
}

function filtersOf(search: URLSearchParams): string {
  const wanted = FILTERS.flatMap((name) => (search.get(name) ? [[name, search.get(name)!]] : []))
  return new URLSearchParams(wanted).toString()
}

function Filters() {
  const filterOf = (name: string): string => query.value.get(name) ?? ''
  const areMoreSet = ['since', ...MORE_FILTERS.map(([name]) => name)].some((name) => filterOf(name) !== '')
  return (
    <div class="trace-filters">
      <div class="row filters">
        <label class="inline grow">
          Filter{' '}
          <input
            data-filter
            type="text"
            placeholder="id, agent, method or target"
            value={filterOf('text')}
            onInput={(event) => setQuery({ text: event.currentTarget.value })}
          />
        </label>
        <label class="inline">
          Status{' '}
          <select value={filterOf('status')} onChange={(event) => setQuery({ status: event.currentTarget.value })}>
            {STATUSES.map(([value, title]) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
        </label>
      </div>
      <details open={areMoreSet}>
        <summary>More filters</summary>
        <div class="row filters">
          {MORE_FILTERS.map(([name, title]) => (
            <label key={name}>
              {title}
              <input
                type="text"
                inputMode={name === 'min_ms' ? 'numeric' : 'text'}
                value={filterOf(name)}
                onChange={(event) => setQuery({ [name]: event.currentTarget.value })}
              />
            </label>
          ))}
          <label>
            Since
            <input
              type="datetime-local"
              value={localTime(filterOf('since'))}
              onChange={(event) => setQuery({ since: utcTime(event.currentTarget.value) })}
            />
          </label>
        </div>
      </details>
    </div>
  )
}

/** As the field of a form has it: in the zone of whoever looks, to the minute. */
function localTime(since: string): string {
  const at = new Date(/^\d+$/.test(since) ? Number(since) : since)
  if (since === '' || Number.isNaN(at.getTime())) return ''
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

function utcTime(local: string): string {
  return local === '' ? '' : new Date(local).toISOString()
}

function NotLoaded({ error, retry }: { readonly error: unknown; readonly retry: () => void }) {
  if (!(error instanceof ApiFailure && error.reason === 'no_traces')) return <Failed error={error} retry={retry} />
  return (
    <Empty title="This bus keeps no traces">
      <p>
        Give a pool <code>"trace": true</code>, or the configuration <code>"aio": {'{}'}</code>, and start the bus
        again: every call is then listed here.
      </p>
    </Empty>
  )
}

function Nothing({ isFiltered }: { readonly isFiltered: boolean }) {
  if (!isFiltered)
    return (
      <Empty title="No traces yet">
        <p>
          They appear here as calls are made: try <code>stdio-bus chat "Hello"</code>, or any client of a traced pool.
        </p>
      </Empty>
    )
  return (
    <Empty title="No trace fits the filter">
      <p>
        <a href={hrefOf('traces')}>Show all traces</a>
      </p>
    </Empty>
  )
}

export function TraceRow({ row, href }: { readonly row: Summary; readonly href?: string }) {
  const { trace_id, status, started_at, n_calls, n_errors, agents, target, prompt } = row
  const took = spanMs(row)
  const others = agents.filter((agent) => agent !== row.agent)
  return (
    <a class={`trace-row ${status}`} href={href ?? hrefOf(pathOf('traces', trace_id))}>
      <span class="mark" aria-hidden="true">
        {MARKS[status]}
      </span>
      <span class="trace-name">
        <code>{nameOf(row)}</code>
        {target !== undefined && <code class="quiet"> {brief(target, 40)}</code>}
        {prompt !== undefined && <span class="quiet"> {brief(prompt, 160)}</span>}
      </span>
      <span class="figure took">{status === 'active' ? 'running' : duration(took)}</span>
      <span class="trace-facts quiet">
        <time dateTime={started_at}>{clock(started_at)}</time> · {status} · {plural(n_calls, 'call')}
        {n_errors > 0 && <strong class="bad"> · {count(n_errors)} failed</strong>} · {brief(trace_id, 64)}
        {others.length > 0 && ` · with ${brief(others.join(', '), 80)}`}
      </span>
    </a>
  )
}
