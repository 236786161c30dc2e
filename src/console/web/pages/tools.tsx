/** What the pools that speak MCP offer, and a place to try it (contract 15.10). */
import { useEffect, useRef } from 'preact/hooks'
import { may } from '../api.ts'
import { useLoaded } from '../parts/loaded.tsx'
import { Rows } from '../parts/rows.tsx'
import { Empty, Failed, Loading } from '../parts/state.tsx'
import { go, hrefOf, parts, pathOf, query, setQuery } from '../router.ts'
import { brief, count, shown } from '../text.ts'
import { type Connection, useConnection } from '../tools/connection.ts'
import { ItemView } from '../tools/item-view.tsx'
import { ITEM_KINDS, type Item, type ItemKind } from '../tools/items.ts'
import { ServerQuestion } from '../tools/server-question.tsx'
import { wellFormed } from '../tools/uri-template.ts'
import { Markdown } from '../transcript/markdown.tsx'

interface PoolRow {
  readonly id: string
  readonly protocol: string | null
  readonly ready: number
}

const ROW_PX = 56
/** What a pool speaks is known once one of its workers has answered. */
const LEARN_MS = 2_000

export function Tools() {
  const [, pool, name] = parts.value
  const pools = useLoaded<{ items: PoolRow[] }>('pools')
  const speaking = (pools.value?.items ?? []).filter(({ protocol }) => protocol === 'mcp' || protocol === null)
  const isLearning = pool === undefined && speaking.some(({ protocol }) => protocol === null)
  useEffect(() => {
    const timer = isLearning ? setInterval(pools.again, LEARN_MS) : undefined
    return () => clearInterval(timer)
  }, [isLearning, pools.again])
  return (
    <>
      <h1>Tools</h1>
      {pools.error !== undefined && <Failed error={pools.error} retry={pools.again} />}
      {pools.value === undefined && pools.error === undefined && <Loading what="the pools" />}
      {pools.value !== undefined && pool === undefined && <PoolCards pools={speaking} />}
      {pools.value !== undefined &&
        pool !== undefined &&
        (may('user', 'admin') ? (
          <PoolTools key={pool} pool={pool} name={name} pools={speaking} />
        ) : (
          <LooksOn pool={pool} />
        ))}
    </>
  )
}

function PoolCards({ pools }: { readonly pools: readonly PoolRow[] }) {
  if (pools.length === 0)
    return (
      <Empty title="No pool speaks MCP">
        <p>
          Add a server to the configuration, for instance with <code>stdio-bus add</code>; it shows up here at once.
        </p>
      </Empty>
    )
  return (
    <>
      <p class="quiet">Choose a server to see what it offers and to try it.</p>
      <ul class="pool-cards plain">
        {pools.map(({ id, protocol, ready }) => (
          <li key={id}>
            <a class="card pool-card" href={hrefOf(pathOf('tools', id))}>
              <strong>{brief(id)}</strong>
              <span class="quiet">
                {protocol === null ? 'not known yet: look' : ready > 0 ? `MCP · ${count(ready)} ready` : 'MCP'}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </>
  )
}

function LooksOn({ pool }: { readonly pool: string }) {
  return (
    <Empty title={`${brief(pool)} is not asked for you`}>
      <p>
        An observer sends no message to a server, so what this one offers is not listed here and nothing can be called.
        Somebody with the role user or admin can.
      </p>
      <p>
        <a href={hrefOf('tools')}>All pools</a>
      </p>
    </Empty>
  )
}

interface PoolToolsProps {
  readonly pool: string
  readonly name: string | undefined
  readonly pools: readonly PoolRow[]
}

function PoolTools({ pool, name, pools }: PoolToolsProps) {
  const connection = useConnection(pool)
  const { items, isCut, error, isLost, again } = connection
  return (
    <>
      <div class="row tools-bar">
        <label class="inline">
          Pool{' '}
          <select value={pool} onChange={({ currentTarget }) => go(pathOf('tools', currentTarget.value))}>
            {!pools.some(({ id }) => id === pool) && <option value={pool}>{brief(pool)}</option>}
            {pools.map(({ id }) => (
              <option key={id} value={id}>
                {brief(id)}
              </option>
            ))}
          </select>
        </label>
        <ServerName connection={connection} />
      </div>
      {isLost && (
        <p class="banner lost" role="alert">
          The connection to {brief(pool)} was lost. What you see is from before; it is tried again by itself.
        </p>
      )}
      {error !== undefined && <Failed error={error} retry={again} />}
      {error === undefined && items === undefined && <Loading what={`what ${brief(pool)} offers`} />}
      {items !== undefined && items.length === 0 && (
        <Empty title="This server offers nothing">
          <p>It has no tools, no resources and no prompts for you. Another pool may have some.</p>
        </Empty>
      )}
      {items !== undefined && items.length > 0 && (
        <div class={name === undefined ? 'tools' : 'tools chosen'}>
          <List items={items} pool={pool} name={name} isCut={isCut} />
          <div class="tools-pane">
            <Pane items={items} pool={pool} name={name} connection={connection} />
          </div>
        </div>
      )}
    </>
  )
}

function ServerName({ connection: { server } }: { readonly connection: Connection }) {
  if (server === undefined) return null
  const { name, version, revision, era } = server
  return (
    <span class="quiet">
      {brief(name, 80)} {brief(version, 40)} · MCP {brief(revision, 20)}
      {era === 'stateless' ? ', stateless' : ''}
    </span>
  )
}

function kindAsked(): ItemKind {
  const kind = query.value.get('kind') ?? 'tool'
  return Object.hasOwn(ITEM_KINDS, kind) ? (kind as ItemKind) : 'tool'
}

/** The address of an item; the filter stays. */
function addressOf(pool: string, { kind, name }: Pick<Item, 'kind' | 'name'>): string {
  const next = new URLSearchParams()
  if (kind !== 'tool') next.set('kind', kind)
  const text = query.value.get('text')
  if (text) next.set('text', text)
  const path = pathOf('tools', pool, wellFormed(name))
  return next.size === 0 ? path : `${path}?${next}`
}

type Row = Item | { readonly heading: string; readonly size: number }

interface ListProps {
  readonly items: readonly Item[]
  readonly pool: string
  readonly name: string | undefined
}

function List({ items, pool, name, isCut }: ListProps & { readonly isCut: boolean }) {
  const text = query.value.get('text') ?? ''
  const rows = rowsOf(items, text.trim().toLowerCase())
  const chosen = kindAsked()
  const isChosen = (row: Row): boolean => !('heading' in row) && row.kind === chosen && wellFormed(row.name) === name
  const box = useRef<HTMLDivElement>(null)
  // Who comes by an address sees where in the list that is.
  useEffect(() => {
    const list = box.current?.querySelector('.rows')
    const top = rows.findIndex(isChosen) * ROW_PX
    if (list && (top < list.scrollTop || top + ROW_PX > list.scrollTop + list.clientHeight))
      list.scrollTop = Math.max(0, top - list.clientHeight / 2)
  }, [name, chosen])
  return (
    <div class="tools-list" ref={box}>
      <label class="inline grow">
        Filter{' '}
        <input
          data-filter
          type="text"
          value={text}
          onInput={({ currentTarget }) => setQuery({ text: currentTarget.value })}
        />
      </label>
      {isCut && <p class="warn">! The server lists more than is kept here; the rest is left off.</p>}
      {rows.length === 0 ? (
        <Empty title="Nothing fits the filter" />
      ) : (
        <Rows
          label="What it offers"
          items={rows}
          keyOf={(row) => ('heading' in row ? row.heading : `${row.kind} ${row.name}`)}
          rowHeight={ROW_PX}
          onOpen={(row) => 'heading' in row || go(addressOf(pool, row))}
          render={(row) =>
            'heading' in row ? (
              <p class="tools-heading">
                {row.heading} <span class="figure quiet">{count(row.size)}</span>
              </p>
            ) : (
              <a
                class="tools-row"
                href={hrefOf(addressOf(pool, row))}
                aria-current={isChosen(row) ? 'true' : undefined}
              >
                <RowWords item={row} />
              </a>
            )
          }
        />
      )}
    </div>
  )
}

/** A URI says less in a narrow list than the name it has for people. */
function RowWords({ item: { kind, name, title, description } }: { readonly item: Item }) {
  const isAddress = kind === 'resource' || kind === 'template'
  return (
    <>
      <p class={isAddress && title !== undefined ? '' : 'tools-name'}>{brief(isAddress ? (title ?? name) : name)}</p>
      <p class="quiet">{(isAddress ? brief(name, 300) : brief(title ?? description)) || '–'}</p>
    </>
  )
}

function rowsOf(items: readonly Item[], text: string): Row[] {
  const wanted = items.filter(({ name, title, description }) =>
    `${name} ${title ?? ''} ${description}`.toLowerCase().includes(text),
  )
  return Object.entries(ITEM_KINDS).flatMap(([kind, { heading }]): Row[] => {
    const own = wanted.filter((item) => item.kind === kind)
    return own.length === 0 ? [] : [{ heading, size: own.length }, ...own]
  })
}

interface PaneProps extends ListProps {
  readonly connection: Connection
}

function Pane({ items, pool, name, connection }: PaneProps) {
  const kind = kindAsked()
  if (name === undefined) return <Welcome connection={connection} />
  const item = items.find((each) => each.kind === kind && wellFormed(each.name) === name) ?? unlisted(kind, name)
  return (
    <>
      <a class="back" href={hrefOf(pathOf('tools', pool))}>
        ← All of {brief(pool)}
      </a>
      {item === undefined ? (
        <Empty title={`There is no ${kind} of this name`}>
          <p>
            {shown(brief(name))} is not, or no longer, among what this server offers you. Choose another one from the
            list.
          </p>
        </Empty>
      ) : (
        <ItemView key={`${kind} ${name}`} item={item} pool={pool} connection={connection} />
      )}
    </>
  )
}

/** A resource can be read that is in no list: results link to such. */
function unlisted(kind: ItemKind, name: string): Item | undefined {
  if (kind !== 'resource' || !/^[A-Za-z][\w+.-]*:/.test(name)) return undefined
  return { kind, name, title: undefined, description: '', told: { uri: name } }
}

function Welcome({ connection: { server, questions } }: { readonly connection: Connection }) {
  const instructions = server?.instructions ?? ''
  return (
    <>
      {questions.map((question) => (
        <ServerQuestion key={question.key} question={question} />
      ))}
      {instructions === '' ? (
        <Empty title="Choose something from the list">
          <p>Its form and what comes of calling it stand here.</p>
        </Empty>
      ) : (
        <section class="card" aria-label="Instructions">
          <h2>What the server says of itself</h2>
          <Markdown text={instructions} />
        </section>
      )}
    </>
  )
}
