/** Sessions that the bus keeps, what is said in one as it is said, and taking part (contract 15.8). */
import { useEffect, useState } from 'preact/hooks'
import { ask } from '../api.ts'
import { keyOf, liveSessions, type NotKept, type Session, type SessionList, withLive } from '../live-sessions.ts'
import { useLoaded } from '../parts/loaded.tsx'
import { Rows } from '../parts/rows.tsx'
import { Empty, Failed, Loading } from '../parts/state.tsx'
import { go, hrefOf, parts, pathOf, query, setQuery } from '../router.ts'
import { brief, clock } from '../text.ts'
import { SessionView } from './session.tsx'

const ROW_PX = 66

export function Sessions() {
  const id = parts.value[1]
  const pool = query.value.get('pool') ?? undefined
  return (
    <>
      <h1>Sessions</h1>
      <div class={id === undefined ? 'sessions' : 'sessions has-one'}>
        <List chosen={id} />
        {id === undefined ? (
          <div class="session-pane">
            <Empty title="No session is chosen">
              <p>Choose one to see what is said in it.</p>
            </Empty>
          </div>
        ) : (
          <SessionView key={`${pool}/${id}`} id={id} pool={pool} />
        )}
      </div>
    </>
  )
}

function List({ chosen }: { readonly chosen: string | undefined }) {
  const { value, error, again } = useLoaded<SessionList>('sessions?limit=500')
  const [more, setMore] = useState<readonly Session[]>([])
  const [cursor, setCursor] = useState<string>()
  useEffect(() => setCursor(value?.next_cursor), [value])
  const text = (query.value.get('text') ?? '').toLowerCase()
  if (value === undefined)
    return (
      <div class="session-list">
        {error === undefined ? <Loading what="the sessions" /> : <Failed error={error} retry={again} />}
      </div>
    )
  const loadMore = async (): Promise<void> => {
    const page = await ask<SessionList>(`sessions?limit=500&cursor=${encodeURIComponent(cursor!)}`)
    setMore((before) => [...before, ...page.items])
    setCursor(page.next_cursor)
  }
  const rows = withLive({ ...value, items: [...value.items, ...more] }, liveSessions.value)
  const wanted = rows.filter((row) => textOf(row).includes(text))
  return (
    <div class="session-list">
      <label class="inline grow row">
        Filter{' '}
        <input
          data-filter
          type="search"
          value={query.value.get('text') ?? ''}
          onInput={(event) => setQuery({ text: event.currentTarget.value })}
        />
      </label>
      {rows.length === 0 && (
        <Empty title="No sessions yet">
          <p>
            A pool with <code>"sessions": {'{ "keep_sec": 3600 }'}</code> keeps the sessions of its clients; they are
            listed here.
          </p>
        </Empty>
      )}
      {rows.length > 0 && wanted.length === 0 && <Empty title="No session fits the filter" />}
      {wanted.length > 0 && (
        <Rows
          label="Sessions"
          items={wanted}
          keyOf={keyOf}
          rowHeight={ROW_PX}
          onOpen={(row) => row.state !== 'not_kept' && go(addressOf(row))}
          render={(row) => <Row row={row} isChosen={row.session === chosen} />}
        />
      )}
      {cursor !== undefined && (
        <button type="button" onClick={loadMore}>
          Show more
        </button>
      )}
    </div>
  )
}

const MARKS = { waiting: '?', running: '●', idle: '○' } as const

function Row({ row, isChosen }: { readonly row: Session | NotKept; readonly isChosen: boolean }) {
  if (row.state === 'not_kept')
    return (
      <div class="session-row">
        <p>
          <span class="mark" aria-hidden="true">
            –
          </span>{' '}
          <code>{brief(row.pool, 20)}</code> <code>{brief(row.session, 40)}</code>
        </p>
        <p class="quiet">
          not kept: <code>{row.key}</code>
        </p>
      </div>
    )
  const isOver = row.state === 'stored' || row.state === 'lost'
  return (
    <a
      class={`session-row ${row.turn} ${row.state}`}
      href={hrefOf(addressOf(row))}
      aria-current={isChosen ? 'true' : undefined}
    >
      <p>
        <span class="mark" aria-hidden="true">
          {isOver ? '–' : MARKS[row.turn]}
        </span>{' '}
        <code>{brief(row.pool, 20)}</code> <strong>{brief(row.title || row.session, 80)}</strong>
      </p>
      <p class="quiet">{describe(row)}</p>
    </a>
  )
}

/** What it is doing, and for whom. */
function describe({ turn, state, waiting, clients, updated_at, principal }: Session): string {
  const [asked] = waiting
  if (asked !== undefined) return `asks: ${brief(asked.title, 60)} (since ${clock(asked.since)})`
  if (state === 'stored') return `ended, last used ${clock(updated_at)}`
  if (state === 'lost') return `lost by its agent, last used ${clock(updated_at)}`
  const who = clients.find(({ driver }) => driver)?.name ?? (state === 'detached' ? 'nobody attached' : principal)
  const others = clients.length > 1 ? `, ${clients.length} clients` : ''
  return `${turn === 'running' ? 'turn runs' : turn}, ${brief(who, 40)}${others}`
}

function addressOf({ session, pool }: Session): string {
  const text = query.value.get('text')
  const search = new URLSearchParams({ pool, ...(text === null ? {} : { text }) })
  return `${pathOf('sessions', session)}?${search}`
}

function textOf(row: Session | NotKept): string {
  const title = row.state === 'not_kept' ? '' : row.title
  return [row.session, row.pool, row.principal, title].join('\n').toLowerCase()
}
