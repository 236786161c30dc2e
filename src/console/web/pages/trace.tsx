/** One trace (contract 15.9): its calls in time and as a graph, one of them in full, and another trace beside it. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ApiFailure } from '../api.ts'
import { followTopic } from '../feed.ts'
import { type Loaded, useLoaded } from '../parts/loaded.tsx'
import { useMedia } from '../parts/media.ts'
import { Empty, Failed, Loading } from '../parts/state.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { go, hrefOf, pathOf, query, setQuery } from '../router.ts'
import { brief, clock, count, duration } from '../text.ts'
import { CallView } from '../trace/call.tsx'
import { ChooseOther } from '../trace/choose-other.tsx'
import { Graph } from '../trace/graph.tsx'
import { countDifferences, matchTraces } from '../trace/matching.ts'
import { extentOf } from '../trace/time-axis.ts'
import { MARKS, plural, type Trace } from '../trace/trace.ts'
import { keyOf, type Opened, Waterfall } from '../trace/waterfall.tsx'

const TABS = [
  ['waterfall', 'Waterfall'],
  ['graph', 'Graph'],
] as const
const FORMATS = [
  ['aio', 'AIO'],
  ['otlp', 'OTLP'],
  ['svg', 'SVG'],
] as const
const REFRESH_MS = 500

interface TraceViewProps {
  readonly id: string
  readonly call: string | undefined
}

export function TraceView({ id, call }: TraceViewProps) {
  const otherId = query.value.get('with') ?? undefined
  const trace = useTrace(id)
  const other = useTrace(otherId)
  if (trace.value === undefined) return <NotThere id={id} loaded={trace} />
  return <Whole trace={trace.value} other={other} otherId={otherId} call={call} />
}

/** A trace that goes on is asked for again whenever something happens. */
function useTrace(id: string | undefined): Loaded<Trace> {
  const loaded = useLoaded<Trace>(id === undefined ? undefined : pathOf('traces', id))
  const { value, error, again } = loaded
  const isOver = value === undefined ? isMissing(error) : value.status !== 'active'
  useEffect(() => {
    if (id === undefined || isOver) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const leave = followTopic('traces', () => {
      timer ??= setTimeout(() => {
        timer = undefined
        again()
      }, REFRESH_MS)
    })
    return () => {
      leave()
      clearTimeout(timer)
    }
  }, [id, isOver, again])
  return loaded
}

function isMissing(error: unknown): boolean {
  return error instanceof ApiFailure && error.status === 404
}

function NotThere({ id, loaded: { error, again } }: { readonly id: string; readonly loaded: Loaded<Trace> }) {
  return (
    <>
      <h1>{brief(id, 80)}</h1>
      {error === undefined && <Loading what="the trace" />}
      {error !== undefined && <WhyNot error={error} again={again} />}
    </>
  )
}

function WhyNot({ error, again }: { readonly error: unknown; readonly again: () => void }) {
  if (!isMissing(error)) return <Failed error={error} retry={again} />
  return (
    <Empty title="There is no such trace">
      <p>It is older than what is kept, somebody else's, or was never here.</p>
      <p>
        <a href={hrefOf('traces')}>All traces</a>
      </p>
    </Empty>
  )
}

interface WholeProps {
  readonly trace: Trace
  readonly other: Loaded<Trace>
  readonly otherId: string | undefined
  readonly call: string | undefined
}

function Whole({ trace, other, otherId, call }: WholeProps) {
  const isWide = useMedia('(min-width: 1100px)')
  const view = query.value.get('view') === 'graph' ? 'graph' : 'waterfall'
  const isOther = call !== undefined && query.value.get('in') === 'other'
  const id = trace.trace_id
  const addressOf = (opened: Opened | undefined): string => {
    const search = new URLSearchParams(query.value)
    search.delete('in')
    if (opened?.isOther) search.set('in', 'other')
    const path = opened === undefined ? pathOf('traces', id) : pathOf('traces', id, String(opened.id))
    return search.size === 0 ? path : `${path}?${search}`
  }
  const close = (): void => go(addressOf(undefined))
  const pairs = useMemo(
    () => (other.value === undefined ? undefined : matchTraces(trace.calls, other.value.calls)),
    [trace, other.value],
  )
  const compared = useMemo(
    () =>
      pairs === undefined
        ? undefined
        : { pairs, others: other.value!.calls, titles: [id, otherId!] as [string, string] },
    [pairs, other.value, id, otherId],
  )
  const chosen = call === undefined ? undefined : keyOf({ id: Number(call), isOther })
  const shows = (which: string): boolean => isWide || view === which
  return (
    <>
      <Head trace={trace} view={view} otherId={otherId} />
      {otherId !== undefined && <Beside trace={trace} otherId={otherId} other={other} pairs={pairs} />}
      <div class={`trace-view view-${view} ${call === undefined ? '' : 'has-call'}`}>
        <div class="trace-panels">
          {shows('waterfall') && (
            <div class="card panel" role="tabpanel" id="waterfall" aria-labelledby="tab-waterfall">
              <Waterfall
                calls={trace.calls}
                compared={compared}
                chosen={chosen}
                open={(opened) => go(addressOf(opened))}
                close={close}
              />
            </div>
          )}
          {shows('graph') && (
            <div class="card panel" role="tabpanel" id="graph" aria-labelledby="tab-graph">
              <Graph
                calls={trace.calls}
                chosen={isOther ? undefined : call}
                pathOf={(number) => addressOf({ id: number, isOther: false })}
                close={close}
              />
            </div>
          )}
        </div>
        {call !== undefined && (
          <section class="card call-pane" aria-label="Call">
            <button type="button" class="small call-close" onClick={close}>
              Close
            </button>
            {calledIn(trace, otherId, call, isOther, pairs).map(([of, number]) => (
              <CallView
                key={`${of}#${number}`}
                trace={of}
                id={number}
                version={statusIn(trace, other.value, of, number)}
              />
            ))}
          </section>
        )}
      </div>
    </>
  )
}

/** The call that is looked at and, of two traces, its counterpart. */
function calledIn(
  { trace_id }: Trace,
  otherId: string | undefined,
  call: string,
  isOther: boolean,
  pairs: ReturnType<typeof matchTraces> | undefined,
): (readonly [trace: string, call: string])[] {
  if (otherId === undefined) return [[trace_id, call]]
  if (isOther) return [[otherId, call]]
  const other = pairs?.find((pair) => String(pair.call?.id) === call)?.other
  return [[trace_id, call], ...(other === undefined ? [] : [[otherId, String(other.id)] as const])]
}

/** What is known of a call in short: when it changes, so has the call. */
function statusIn(trace: Trace, other: Trace | undefined, of: string, number: string): string | undefined {
  const { calls } = of === trace.trace_id || other === undefined ? trace : other
  return calls.find(({ id }) => String(id) === number)?.status
}

interface HeadProps {
  readonly trace: Trace
  readonly view: string
  readonly otherId: string | undefined
}

function Head({ trace, view, otherId }: HeadProps) {
  const [isChoosing, setChoosing] = useState(false)
  const { trace_id, status, n_calls, missing, left_off, started_at, calls } = trace
  const errors = calls.filter((call) => call.status === 'error').length
  const caller = calls[0]?.caller?.principal
  const facts = [
    plural(n_calls, 'call'),
    ...(errors > 0 ? [`${count(errors)} failed`] : []),
    ...(status === 'active' ? ['running'] : [duration(extentOf(calls).totalMs)]),
    ...(caller === undefined ? [] : [brief(caller, 60)]),
    clock(started_at),
  ]
  return (
    <div class="trace-head">
      <p class="crumb">
        <a href={hrefOf('traces')}>← All traces</a>
      </p>
      <h1>{brief(trace_id, 120)}</h1>
      <p class={`trace-status ${status}`}>
        <strong>
          <span aria-hidden="true">{MARKS[status]}</span> {status}
        </strong>{' '}
        <span class="quiet">· {facts.join(' · ')}</span>
      </p>
      <div class="row trace-actions">
        <Tabs
          label="Views"
          tabs={TABS}
          chosen={view}
          choose={(next) => setQuery({ view: next === 'graph' ? next : null })}
        />
        <button type="button" class="small" onClick={() => setChoosing(true)}>
          Compare with …
        </button>
        {otherId !== undefined && (
          <button type="button" class="small" onClick={() => setQuery({ with: null, in: null })}>
            Compare no more
          </button>
        )}
        <span class="downloads">
          Download{' '}
          {FORMATS.map(([format, title]) => (
            <a key={format} download href={`/api/${pathOf('traces', trace_id, 'export')}?format=${format}`}>
              {title}
            </a>
          ))}
        </span>
      </div>
      {(left_off ?? 0) > 0 && (
        <p class="banner" role="status">
          {plural(left_off!, 'later call')} not shown here; a download has them all.
        </p>
      )}
      {missing > 0 && <p class="warn">Something of {plural(missing, 'call')} could not be kept.</p>}
      {isChoosing && <ChooseOther trace={trace_id} method={calls[0]?.method} close={() => setChoosing(false)} />}
    </div>
  )
}

interface BesideProps {
  readonly trace: Trace
  readonly otherId: string
  readonly other: Loaded<Trace>
  readonly pairs: ReturnType<typeof matchTraces> | undefined
}

/** What the other trace has other than this one, in a line. */
function Beside({ trace, otherId, other, pairs }: BesideProps) {
  if (pairs === undefined)
    return other.error === undefined ? (
      <Loading what="the other trace" />
    ) : (
      <WhyNot error={other.error} again={other.again} />
    )
  const { added, missing, slower } = countDifferences(pairs)
  const swapped = `${hrefOf(pathOf('traces', otherId))}?${new URLSearchParams({ with: trace.trace_id })}`
  return (
    <p class="card beside">
      Beside{' '}
      <a href={hrefOf(pathOf('traces', otherId))}>
        <code>{brief(otherId, 60)}</code>
      </a>
      , which has <strong class="difference added">+ {count(added)} added</strong>,{' '}
      <strong class="difference missing">− {count(missing)} missing</strong>,{' '}
      <strong class="difference slower">▲ {count(slower)} slower</strong>. <a href={swapped}>Swap</a>
    </p>
  )
}
