/**
 * A trace for the terminal: the tree of calls on the left, their bars on a common time axis on the right.
 *
 * A failed call is marked, coloured and followed by its reason, so the first failing step is found at a glance. Never wider
 * than asked for; text of peers is escaped.
 */

import { createColors } from 'picocolors'
import { clip, displayWidth, pad } from '../wire/columns.ts'
import { type CallNode, errorLine, extentOf, growTree, nameOf, type Span } from './call-tree.ts'
import type { CallDocument, TraceDocument } from './document.ts'
import { printable, showMs } from './printable.ts'
import { answerTextOf, promptTextOf } from './spoken-text.ts'

export interface RenderOptions {
  readonly columns?: number
  readonly color?: boolean
  /** How a time is told where it is read; as it is in documents unless said otherwise. */
  readonly showTime?: (time: string) => string
}

interface Layout {
  readonly columns: number
  readonly labelColumns: number
  readonly barColumns: number
  readonly extent: Span
  readonly paint: ReturnType<typeof createColors>
}

const DURATION_COLUMNS = 8
const MIN_COLUMNS = 40
const MAX_COLUMNS = 160
const MAX_INDENT = 24
const MARKS = { ok: '●', error: '✗', pending: '○' } as const

export function renderTree(trace: TraceDocument, options: RenderOptions = {}): string {
  const nodes = growTree(trace.calls)
  const layout = layOut(nodes, extentOf(trace.calls), options)
  const lines = [heading(trace, layout, options.showTime), '', axis(layout)]
  for (const node of nodes) {
    lines.push(callLine(node, layout))
    if (node.call.status === 'error') lines.push(reasonLine(node, layout))
  }
  return `${[...lines, ...spoken(trace, layout)].join('\n')}\n`
}

/** What was asked first and what was answered to it, a line each. */
function spoken({ calls: [first] }: TraceDocument, { columns, paint }: Layout): string[] {
  if (first === undefined) return []
  const said = [
    ['asked', promptTextOf(first)],
    ['answered', answerTextOf(first)],
  ] as const
  const lines = said.flatMap(([name, text]) => {
    if (text === undefined) return []
    const line = printable(text.slice(0, MAX_COLUMNS * 4).replace(/\s+/g, ' '))
    return [`${paint.dim(name.padEnd(10))}${clip(line, columns - 10)}`]
  })
  return lines.length === 0 ? [] : ['', ...lines]
}

function layOut(nodes: readonly CallNode[], extent: Span, options: RenderOptions): Layout {
  const columns = Math.min(Math.max(options.columns ?? 100, MIN_COLUMNS), MAX_COLUMNS)
  let widest = 0
  for (const node of nodes) widest = Math.max(widest, displayWidth(labelOf(node)))
  const labelColumns = Math.min(widest, Math.floor(columns * 0.5))
  const barColumns = columns - labelColumns - DURATION_COLUMNS - 3
  return { columns, labelColumns, barColumns, extent, paint: createColors(options.color ?? false) }
}

/** As many facts as fit, the most important first. */
function heading(trace: TraceDocument, layout: Layout, showTime: (time: string) => string = String): string {
  const { extent, paint } = layout
  const errors = trace.calls.filter((call) => call.status === 'error').length
  const status = { completed: paint.green, active: paint.cyan, error: paint.red }[trace.status]
  const facts: [text: string, color: (text: string) => string][] = [
    [printable(trace.trace_id), paint.bold],
    [trace.status, status],
    [errors > 0 ? plural(errors, 'error') : '', paint.red],
    [trace.missing > 0 ? `${trace.missing} missing` : '', paint.yellow],
    [plural(trace.calls.length, 'call'), String],
    [showMs(extent.endMs - extent.startMs), String],
    [callersOf(trace), String],
    [showTime(trace.started_at), paint.dim],
  ]
  let room = layout.columns
  const fitting = facts.filter(([text]) => text !== '' && (room -= displayWidth(text) + 2) >= -2)
  return fitting.map(([text, color]) => color(text)).join('  ')
}

function callersOf({ calls }: TraceDocument): string {
  const principals = new Set(calls.flatMap(({ caller }) => caller?.principal ?? []))
  return principals.size === 0 ? '' : printable(`by ${[...principals].join(', ')}`)
}

/** Start, middle and end of the time axis, above the bars. */
function axis({ labelColumns, barColumns, extent, paint }: Layout): string {
  const total = extent.endMs - extent.startMs
  const middle = showMs(total / 2)
  const end = showMs(total)
  const gap = Math.max(1, Math.floor((barColumns - middle.length) / 2) - 1)
  const marks = `0${' '.repeat(gap)}${middle}`
  const rest = Math.max(1, barColumns - marks.length - end.length)
  const text =
    marks.length + end.length + 1 > barColumns ? pad(end, barColumns, 'right') : `${marks}${' '.repeat(rest)}${end}`
  return paint.dim(`${' '.repeat(labelColumns + DURATION_COLUMNS + 3)}${text}`)
}

function callLine(node: CallNode, layout: Layout): string {
  const { call } = node
  const { paint } = layout
  const label = pad(labelOf(node), layout.labelColumns)
  const duration = pad(call.duration_ms === null ? 'open' : showMs(call.duration_ms), DURATION_COLUMNS, 'right')
  const color = { ok: paint.green, error: paint.red, pending: paint.cyan }[call.status]
  const name = call.status === 'error' ? paint.red(label) : label
  return `${name} ${paint.dim(duration)}  ${color(bar(call, layout))}`.trimEnd()
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

function bar(call: CallDocument, { barColumns, extent }: Layout): string {
  const perMs = barColumns / Math.max(extent.endMs - extent.startMs, 0.001)
  const startMs = Date.parse(call.started_at) - extent.startMs
  const durationMs = call.duration_ms ?? extent.endMs - extent.startMs - startMs
  const from = Math.min(Math.floor(startMs * perMs), barColumns - 1)
  const eighths = Math.min(Math.max(Math.round(durationMs * perMs * 8), 1), (barColumns - from) * 8)
  const solid = (call.duration_ms === null ? '░' : '█').repeat(Math.floor(eighths / 8))
  return ' '.repeat(from) + solid + EIGHTHS[eighths % 8]
}

/** Under a failed call; the lines of the tree go on past it. */
function reasonLine(node: CallNode, { columns, paint }: Layout): string {
  const passing = node.children.length > 0 ? '│ ' : '  '
  const indent = branches(node)
    .replace('├─', '│ ')
    .replace('└─', '  ')
    .replace(/⋯\d+/, (mark) => ' '.repeat(mark.length))
  return paint.red(clip(`${indent}${passing}${printable(errorLine(node.call))}`, columns))
}

function labelOf(node: CallNode): string {
  return `${branches(node)}${MARKS[node.call.status]} ${printable(nameOf(node.call))}`
}

/** The lines of the tree in front of a call; very deep ones say how deep instead. */
function branches(node: CallNode): string {
  if (node.depth === 0) return ''
  if (node.depth * 2 > MAX_INDENT) return `${' '.repeat(MAX_INDENT - 8)}${`⋯${node.depth} `.padStart(8)}`
  let drawn = node.isLast ? '└─' : '├─'
  for (let above = node.parent; above !== undefined && above.depth > 0; above = above.parent) {
    drawn = `${above.isLast ? '  ' : '│ '}${drawn}`
  }
  return drawn
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
