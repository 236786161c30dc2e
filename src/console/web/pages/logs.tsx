/** The log of the bus and of its workers, live, and what of it is wanted (contract 15.13). */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ask } from '../api.ts'
import { followTopic } from '../feed.ts'
import { useLoaded } from '../parts/loaded.tsx'
import { Rows } from '../parts/rows.tsx'
import { Empty, Failed, Loading } from '../parts/state.tsx'
import { query, setQuery } from '../router.ts'
import { clock, shown } from '../text.ts'

interface Entry {
  readonly seq: number
  readonly level: string
  readonly time: string
  readonly msg: string
  readonly pool?: string
  readonly worker?: number
  readonly [key: string]: unknown
}

const LEVELS = ['debug', 'info', 'warn', 'error']
/** Beyond this the page forgets what is old, and fetches it again. */
const MAX_ENTRIES = 20_000
const KNOWN = new Set(['seq', 'level', 'time', 'msg', 'pool', 'worker', 'stream'])

/** So much is asked for at a time. */
const PAGE = 500

interface Answer {
  readonly items: readonly Entry[]
  readonly next_cursor?: string
}

export function Logs() {
  const text = query.value.get('text') ?? ''
  const level = query.value.get('level') ?? 'info'
  const pool = query.value.get('pool') ?? ''
  const [isPaused, setPaused] = useState(false)
  const pools = useLoaded<{ items: readonly { readonly id: string }[] }>('pools').value?.items ?? []
  const wish = new URLSearchParams({ limit: String(PAGE), level, text, ...(pool === '' ? {} : { pool }) }).toString()
  const { value, error, again } = useLoaded<Answer>(`logs?${wish}`)
  const [entries, setEntries] = useState<readonly Entry[]>([])
  const { cursor, fetchOlder, startAnew } = useOlder(wish, value, setEntries)
  const held = useRef<Entry[]>([])
  const paused = useRef(false)
  paused.current = isPaused
  const refresh = useRef(again)
  refresh.current = again

  const lastSeq = entries.at(-1)?.seq ?? 0

  useEffect(() => {
    if (value === undefined) return
    // More was missed than was fetched.
    if (Number(value.next_cursor ?? 0) > lastSeq) startAnew()
    setEntries((before) => merge(value.items.slice().reverse(), before))
  }, [value])
  useEffect(() => {
    const take = (data: unknown): void => {
      held.current.push(data as Entry)
      if (held.current.length > 2 * MAX_ENTRIES) held.current.splice(0, MAX_ENTRIES)
    }
    const leave = followTopic('logs', take, () => refresh.current())
    const timer = setInterval(() => {
      if (paused.current || held.current.length === 0) return
      const fresh = held.current.splice(0)
      setEntries((before) => merge(before, fresh))
    }, 250)
    return () => {
      leave()
      clearInterval(timer)
    }
  }, [])

  // What lies before the last answer to this wish may have holes, left by other wishes.
  const firstSeq = Number(cursor ?? 0)
  const wanted = entries.filter(
    (entry) =>
      entry.seq >= firstSeq &&
      LEVELS.indexOf(entry.level) >= LEVELS.indexOf(level) &&
      (pool === '' || entry.pool === pool) &&
      (text === '' || JSON.stringify(entry).toLowerCase().includes(text.toLowerCase())),
  )
  return (
    <>
      <h1>Logs</h1>
      <div class="row filters">
        <label class="inline grow">
          Filter{' '}
          <input
            data-filter
            type="text"
            value={text}
            onInput={(event) => setQuery({ text: event.currentTarget.value })}
          />
        </label>
        <label class="inline">
          Level{' '}
          <select value={level} onChange={(event) => setQuery({ level: event.currentTarget.value })}>
            {LEVELS.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label class="inline">
          Pool{' '}
          <select value={pool} onChange={(event) => setQuery({ pool: event.currentTarget.value })}>
            <option value="">all</option>
            {pool !== '' && pools.every(({ id }) => id !== pool) && <option value={pool}>{shown(pool)}</option>}
            {pools.map(({ id }) => (
              <option key={id} value={id}>
                {shown(id)}
              </option>
            ))}
          </select>
        </label>
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? 'Go on' : 'Pause'}
        </button>
      </div>
      {value === undefined && error === undefined && wanted.length === 0 && <Loading what="the log" />}
      {error !== undefined && <Failed error={error} retry={again} />}
      {value !== undefined && wanted.length === 0 && (
        <Empty title="Nothing here">
          <p>No line fits the filter. A lower level shows more.</p>
        </Empty>
      )}
      {wanted.length > 0 && (
        <Rows
          label="Log lines"
          items={wanted}
          keyOf={({ seq }) => seq}
          rowHeight={26}
          isPinnedToEnd
          onStart={fetchOlder}
          render={(entry) => <Line entry={entry} />}
        />
      )}
    </>
  )
}

/** What lies before the answer to a wish, page by page; `cursor` is where that begins, if there is any. */
function useOlder(
  wish: string,
  newest: Answer | undefined,
  setEntries: (change: (before: readonly Entry[]) => readonly Entry[]) => void,
): { readonly cursor: string | undefined; readonly fetchOlder: () => void; readonly startAnew: () => void } {
  const [reached, setReached] = useState<{ readonly wish: string; readonly cursor: string | undefined }>()
  const isAsking = useRef(false)
  const cursor = reached?.wish === wish ? reached.cursor : newest?.next_cursor
  const fetchOlder = useCallback(() => {
    if (cursor === undefined || isAsking.current) return
    isAsking.current = true
    ask<Answer>(`logs?${wish}&cursor=${cursor}`)
      .then(({ items, next_cursor: next }) => {
        setReached({ wish, cursor: next })
        setEntries((before) => merge(items.slice().reverse(), before))
      })
      // Scrolling asks again.
      .catch(() => {})
      .finally(() => {
        isAsking.current = false
      })
  }, [wish, cursor, setEntries])
  return { cursor, fetchOlder, startAnew: () => setReached(undefined) }
}

function Line({ entry }: { readonly entry: Entry }) {
  const { level, time, msg, pool, worker } = entry
  const more = Object.entries(entry).filter(([name]) => !KNOWN.has(name))
  return (
    <div class={`log-line ${level}`}>
      <time dateTime={time}>{clock(time)}</time>
      <span class="level">{level}</span>
      {pool !== undefined && (
        <span class="source">
          {shown(pool)}
          {worker !== undefined && `.${worker}`}
        </span>
      )}
      <span class="text">{shown(msg)}</span>
      {more.length > 0 && (
        <span class="quiet">
          {more
            .map(([name, value]) => `${name}=${shown(typeof value === 'string' ? value : JSON.stringify(value))}`)
            .join(' ')}
        </span>
      )}
    </div>
  )
}

/** In the order of their numbers, each once, the oldest forgotten. */
function merge(before: readonly Entry[], fresh: readonly Entry[]): readonly Entry[] {
  const last = before.at(-1)?.seq ?? 0
  const isInOrder = fresh.every(({ seq }, index) => seq > (fresh[index - 1]?.seq ?? last))
  if (isInOrder) return [...before, ...fresh].slice(-MAX_ENTRIES)
  const bySeq = new Map([...before, ...fresh].map((entry) => [entry.seq, entry]))
  return [...bySeq.values()].sort((one, other) => one.seq - other.seq).slice(-MAX_ENTRIES)
}
