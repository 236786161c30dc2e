/**
 * Calls as a tree on a time axis; of two traces, both on one axis (contract 15.9). It draws the rows that are seen.
 *
 * One element has the focus and says which row is active, as trees do: arrows move, fold and unfold, Enter opens.
 */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { useMedia } from '../parts/media.ts'
import { reveal, stepOf, useWindow } from '../parts/window.ts'
import { brief, duration } from '../text.ts'
import { growTree, unfolded } from './call-tree.ts'
import type { Difference, Pair } from './matching.ts'
import { type Extent, extentOf, placeOf } from './time-axis.ts'
import { type Call, errorLine, MARKS, nameOf, tookOf } from './trace.ts'

export interface WaterfallProps {
  readonly calls: readonly Call[]
  /** Instead of the calls: these, each with its counterpart, on the axes of both traces. */
  readonly compared?: Compared | undefined
  readonly chosen: string | undefined
  readonly open: (row: Opened) => void
  readonly close: () => void
}

export interface Compared {
  readonly pairs: readonly Pair[]
  readonly others: readonly Call[]
  /** What the two are called. */
  readonly titles: readonly [string, string]
}

export interface Opened {
  readonly id: number
  readonly isOther: boolean
}

interface Row {
  readonly key: string
  readonly opened: Opened
  readonly name: Call
  readonly lanes: readonly (Call | undefined)[]
  readonly depth: number
  readonly difference: Difference
  readonly childCount: number
  readonly parent: number | undefined
  readonly position: number
  readonly siblings: number
}

const MAX_INDENT = 12
const TICKS = [0, 0.25, 0.5, 0.75, 1]
const DIFFERENCES: Readonly<Record<Difference, readonly [mark: string, word: string]>> = {
  added: ['+', 'added'],
  missing: ['−', 'missing'],
  slower: ['▲', 'slower'],
  same: ['', ''],
}

export function Waterfall({ calls, compared, chosen, open, close }: WaterfallProps) {
  const box = useRef<HTMLDivElement>(null)
  const isNarrow = useMedia('(max-width: 760px)')
  const [folded, setFolded] = useState<ReadonlySet<number>>(new Set())
  const [active, setActive] = useState<string>()
  const rows = useMemo(
    () => (compared === undefined ? rowsOf(calls, folded) : pairRows(compared.pairs)),
    [calls, compared, folded],
  )
  const extents = useMemo(() => extentsOf(calls, compared?.others), [calls, compared])
  const laneCount = compared === undefined ? 1 : 2
  const rowHeight = isNarrow ? 26 + laneCount * 18 : 26
  const { first, last } = useWindow(box, rows.length, rowHeight)
  // What an address names is in view; what was clicked is already.
  useEffect(() => {
    const at = rows.findIndex(({ key }) => key === chosen)
    if (at < 0) return
    setActive(chosen)
    reveal(box.current!, at, rowHeight)
  }, [chosen])

  const fold = (id: number, isFolded: boolean): void => {
    const next = new Set(folded)
    if (isFolded) next.add(id)
    else next.delete(id)
    setFolded(next)
  }
  const moveTo = (at: number): void => {
    const next = Math.min(rows.length - 1, Math.max(0, at))
    setActive(rows[next]?.key)
    reveal(box.current!, next, rowHeight)
  }
  const press = (event: KeyboardEvent): void => {
    const at = rows.findIndex(({ key }) => key === active)
    const row = rows[at]
    const step = stepOf(event.key, rows.length)
    const acts: Record<string, () => void> = {
      Enter: () => row && open(row.opened),
      ' ': () => row && open(row.opened),
      Escape: close,
      ArrowRight: () => row && turnRight(row, at),
      ArrowLeft: () => row && turnLeft(row),
    }
    const act = step === undefined ? acts[event.key] : () => moveTo(at + step)
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    act()
  }
  const turnRight = (row: Row, at: number): void => {
    if (folded.has(row.opened.id)) fold(row.opened.id, false)
    else if (row.childCount > 0) moveTo(at + 1)
  }
  const turnLeft = (row: Row): void => {
    if (row.childCount > 0 && !folded.has(row.opened.id)) fold(row.opened.id, true)
    else if (row.parent !== undefined) moveTo(rows.findIndex(({ opened }) => opened.id === row.parent))
  }

  return (
    <div class={`waterfall lanes-${laneCount}`}>
      <div class="axes quiet" aria-hidden="true">
        {extents.map(({ totalMs }, index) => (
          <Axis key={index} title={compared?.titles[index]} totalMs={totalMs} />
        ))}
      </div>
      <div
        class="waterfall-box"
        ref={box}
        role="tree"
        aria-label="Calls"
        tabIndex={0}
        aria-activedescendant={active === undefined ? undefined : `call-${active}`}
        onKeyDown={press}
      >
        <div role="none" class="rows-space" style={{ height: `${rows.length * rowHeight}px` }}>
          {rows.slice(first, last).map((row, index) => (
            <RowView
              key={row.key}
              row={row}
              top={(first + index) * rowHeight}
              height={rowHeight}
              extents={extents}
              isActive={row.key === active}
              isChosen={row.key === chosen}
              isFolded={folded.has(row.opened.id)}
              open={() => {
                setActive(row.key)
                open(row.opened)
              }}
              fold={compared === undefined ? (isFolded) => fold(row.opened.id, isFolded) : undefined}
            />
          ))}
        </div>
      </div>
    </div>
  )
}

function Axis({ title, totalMs }: { readonly title: string | undefined; readonly totalMs: number }) {
  return (
    <div class="axis">
      {title !== undefined && <span class="axis-title">{brief(title, 60)}</span>}
      <span class="ticks figure">
        {TICKS.map((tick) => (
          <span key={tick} class="tick" style={{ left: `${tick * 100}%` }}>
            {tick === 0 ? '0' : duration(totalMs * tick)}
          </span>
        ))}
      </span>
    </div>
  )
}

interface RowViewProps {
  readonly row: Row
  readonly top: number
  readonly height: number
  readonly extents: readonly Extent[]
  readonly isActive: boolean
  readonly isChosen: boolean
  readonly isFolded: boolean
  readonly open: () => void
  readonly fold: ((isFolded: boolean) => void) | undefined
}

function RowView({ row, top, height, extents, isActive, isChosen, isFolded, open, fold }: RowViewProps) {
  const { name: call, lanes, depth, difference, childCount } = row
  const [mark, word] = DIFFERENCES[difference]
  const classes = ['call-row', call.status, difference, isActive && 'active', isChosen && 'chosen']
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the keys
    // biome-ignore lint/a11y/useFocusableInteractive: the tree has the focus, as aria-activedescendant says
    <div
      id={`call-${row.key}`}
      class={classes.filter(Boolean).join(' ')}
      role="treeitem"
      aria-level={depth + 1}
      aria-posinset={row.position}
      aria-setsize={row.siblings}
      aria-expanded={childCount > 0 && fold ? !isFolded : undefined}
      aria-selected={isChosen}
      style={{ top: `${top}px`, height: `${height}px` }}
      onClick={open}
      title={call.status === 'error' ? errorLine(call) : undefined}
    >
      <span class="call-name" style={{ paddingLeft: `${Math.min(depth, MAX_INDENT) * 14}px` }}>
        {childCount > 0 && fold ? (
          <span
            class="twist"
            aria-hidden="true"
            onClick={(event) => {
              event.stopPropagation()
              fold(!isFolded)
            }}
          >
            {isFolded ? '▸' : '▾'}
          </span>
        ) : (
          <span class="twist" aria-hidden="true" />
        )}
        {word !== '' && (
          <span class={`difference ${difference}`}>
            {mark} {word}
          </span>
        )}
        <span class="mark" aria-hidden="true">
          {MARKS[call.status]}
        </span>
        {call.status !== 'ok' && <span class="sr-only">{call.status}</span>} <code>{nameOf(call)}</code>
        {call.target !== undefined && <code class="quiet"> {brief(call.target, 60)}</code>}
      </span>
      <span class="lanes">
        {lanes.map((lane, index) => (
          <Lane key={index} call={lane} extent={extents[index]!} />
        ))}
      </span>
    </div>
  )
}

function Lane({ call, extent }: { readonly call: Call | undefined; readonly extent: Extent }) {
  if (call === undefined)
    return (
      <span class="lane absent">
        <span class="track" />
        <span class="figure took">–</span>
      </span>
    )
  const { left, width } = placeOf(call, extent)
  return (
    <span class="lane">
      <span class="track">
        <span class={`call-bar ${call.status}`} style={{ left: `${left}%`, width: `${width}%` }} />
      </span>
      <span class="figure took">{tookOf(call)}</span>
    </span>
  )
}

function rowsOf(calls: readonly Call[], folded: ReadonlySet<number>): Row[] {
  return unfolded(growTree(calls), folded).map(({ call, ...row }) => ({
    ...row,
    key: String(call.id),
    opened: { id: call.id, isOther: false },
    name: call,
    lanes: [call],
    difference: 'same',
  }))
}

function pairRows(pairs: readonly Pair[]): Row[] {
  return pairs.map(({ call, other, depth, difference }, index) => {
    const name = (call ?? other)!
    const opened = { id: name.id, isOther: call === undefined }
    const place = { childCount: 0, parent: undefined, position: index + 1, siblings: pairs.length }
    return { ...place, key: keyOf(opened), opened, name, lanes: [call, other], depth, difference }
  })
}

export function keyOf({ id, isOther }: Opened): string {
  return isOther ? `other-${id}` : String(id)
}

/** Two traces begin together, and the longer one has the axis. */
function extentsOf(calls: readonly Call[], others: readonly Call[] | undefined): readonly Extent[] {
  const own = extentOf(calls)
  if (others === undefined) return [own]
  const other = extentOf(others)
  const totalMs = Math.max(own.totalMs, other.totalMs)
  return [
    { ...own, totalMs },
    { ...other, totalMs },
  ]
}
