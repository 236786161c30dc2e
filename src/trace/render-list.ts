/** Traces as a table for the terminal, and calls as lines for whoever follows them live. */
import { createColors } from 'picocolors'
import type { TraceSummary } from './document.ts'
import { clip, pad, printable, showMs } from './printable.ts'
import type { RenderOptions } from './render-tree.ts'
import type { TailItem } from './tail.ts'

const HEADINGS = ['TRACE', 'STATUS', 'STARTED', 'TIME', 'CALLS', 'ERRORS', 'AGENTS'] as const

export function renderList(traces: readonly TraceSummary[], options: RenderOptions = {}): string {
  const paint = createColors(options.color ?? false)
  const rows = traces.map(cells)
  const widths = HEADINGS.map((heading, column) =>
    rows.reduce((widest, row) => Math.max(widest, row[column]?.length ?? 0), heading.length),
  )
  const write = (row: readonly string[]): string =>
    row.map((cell, column) => pad(cell, widths[column] ?? 0, isNumber(column) ? 'right' : 'left')).join('  ')
  const lines = rows.map((row, index) => {
    const line = clip(write(row).trimEnd(), options.columns ?? 200)
    return traces[index]?.status === 'error' ? paint.red(line) : line
  })
  return `${[paint.dim(write(HEADINGS).trimEnd()), ...lines].join('\n')}\n`
}

function cells(trace: TraceSummary): string[] {
  const ms = trace.ended_at === null ? undefined : Date.parse(trace.ended_at) - Date.parse(trace.started_at)
  return [
    printable(trace.trace_id),
    trace.status,
    trace.started_at,
    ms === undefined ? 'open' : showMs(ms),
    String(trace.n_calls),
    String(trace.n_errors),
    printable(trace.agents.join(' ')),
  ]
}

function isNumber(column: number): boolean {
  return column >= 3 && column <= 5
}

export function renderTailItem(item: TailItem, options: RenderOptions = {}): string {
  const paint = createColors(options.color ?? false)
  const time = paint.dim(item.event === 'started' ? item.started_at : (item.ended_at ?? item.started_at))
  const name = printable(`${item.agent}::${item.method}${item.target === undefined ? '' : ` ${item.target}`}`)
  const call = paint.bold(printable(`${item.trace_id}#${item.id}`))
  if (item.event === 'started') return `${time}  ${call}  ▶ ${name}\n`
  const duration = showMs(item.duration_ms ?? 0)
  if (item.status === 'ok') return `${time}  ${call}  ${paint.green('●')} ${name}  ${duration}\n`
  return `${time}  ${call}  ${paint.red(`✗ ${name}  ${duration}  ${printable(item.error?.message ?? 'failed')}`)}\n`
}
