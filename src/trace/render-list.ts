/** Traces as a table for the terminal, and calls as lines for whoever follows them live. */

import { createColors } from 'picocolors'
import { clip, displayWidth, pad } from '../wire/columns.ts'
import type { TraceSummary } from './document.ts'
import { printable, showMs } from './printable.ts'
import type { RenderOptions } from './render-tree.ts'
import type { TailItem } from './tail.ts'

const HEADINGS = ['TRACE', 'STATUS', 'STARTED', 'TIME', 'CALLS', 'ERRORS', 'AGENTS'] as const
const DEFAULT_COLUMNS = 200
const ASKED_COLUMNS = 30

/** What was asked has a column where there is room for it, else a line of its own. */
export function renderList(traces: readonly TraceSummary[], options: RenderOptions = {}): string {
  const paint = createColors(options.color ?? false)
  const columns = options.columns ?? DEFAULT_COLUMNS
  const rows = traces.map((trace) => cells(trace, options.showTime))
  const widths = HEADINGS.map((heading, column) =>
    rows.reduce((widest, row) => Math.max(widest, displayWidth(row[column] ?? '')), heading.length),
  )
  const isWide = columns - widths.reduce((sum, width) => sum + width + 2, 0) >= ASKED_COLUMNS
  const write = (row: readonly string[], asked: string): string =>
    [...row.map((cell, column) => pad(cell, widths[column]!, isNumber(column) ? 'right' : 'left')), asked].join('  ')
  const lines = traces.flatMap((trace, index) => {
    const asked = askedOf(trace)
    const line = clip(write(rows[index]!, isWide ? asked : '').trimEnd(), columns)
    const below = isWide || asked === '' ? [] : [paint.dim(clip(`  ${asked}`, columns))]
    return [trace.status === 'error' ? paint.red(line) : line, ...below]
  })
  return `${[paint.dim(write(HEADINGS, isWide ? 'ASKED' : '').trimEnd()), ...lines].join('\n')}\n`
}

function cells(trace: TraceSummary, showTime: (time: string) => string = String): string[] {
  const ms = trace.ended_at === null ? undefined : Date.parse(trace.ended_at) - Date.parse(trace.started_at)
  return [
    printable(trace.trace_id),
    trace.status,
    showTime(trace.started_at),
    ms === undefined ? 'open' : showMs(ms),
    String(trace.n_calls),
    String(trace.n_errors),
    printable(trace.agents.join(' ')),
  ]
}

/** The prompt, or what was called. */
function askedOf({ prompt, method, target }: TraceSummary): string {
  if (prompt !== undefined) return printable(prompt)
  return printable([method, target].filter((part) => part !== undefined).join(' '))
}

function isNumber(column: number): boolean {
  return column >= 3 && column <= 5
}

export function renderTailItem(item: TailItem, options: RenderOptions = {}): string {
  const paint = createColors(options.color ?? false)
  const at = item.event === 'started' ? item.started_at : (item.ended_at ?? item.started_at)
  const time = paint.dim((options.showTime ?? String)(at))
  const name = printable(`${item.agent}::${item.method}${item.target === undefined ? '' : ` ${item.target}`}`)
  const call = paint.bold(printable(`${item.trace_id}#${item.id}`))
  if (item.event === 'started') return `${time}  ${call}  ▶ ${name}\n`
  const duration = showMs(item.duration_ms ?? 0)
  if (item.status === 'ok') return `${time}  ${call}  ${paint.green('●')} ${name}  ${duration}\n`
  return `${time}  ${call}  ${paint.red(`✗ ${name}  ${duration}  ${printable(item.error?.message ?? 'failed')}`)}\n`
}
