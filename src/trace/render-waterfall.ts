/**
 * The calls of a trace on a common time axis, one row each, as SVG: when each began, how long it took, how it ended.
 *
 * Each row leads to the description of its call in the page. Its colours are those of the page's style.
 */
import { clip } from '../wire/columns.ts'
import { type CallNode, nameOf, type Span } from './call-tree.ts'
import { escapeXml, printable, showMs } from './printable.ts'

const ROW = 26
const AXIS = 24
const LABELS = 340
const BARS = 640
const TIMES = 80
const WIDTH = LABELS + BARS + TIMES
const INDENT = 14
const MAX_INDENT = 8
/** What fits in front of the bars in the font of the labels. */
const LABEL_CHARS = 46
const MARKS = 4

export function drawWaterfall(nodes: readonly CallNode[], extent: Span): string {
  const height = AXIS + nodes.length * ROW + 6
  const totalMs = Math.max(extent.endMs - extent.startMs, 0.001)
  return [
    `<svg class="waterfall" xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Waterfall of ${nodes.length} calls">`,
    ...Array.from({ length: MARKS + 1 }, (_, mark) => axisMark(mark, totalMs, height)),
    ...nodes.map((node, row) => drawRow(node, row, { startMs: extent.startMs, totalMs })),
    '</svg>',
  ].join('\n')
}

function axisMark(mark: number, totalMs: number, height: number): string {
  const x = LABELS + (BARS * mark) / MARKS
  const text = mark === 0 ? '0' : showMs((totalMs * mark) / MARKS)
  const anchor = mark === 0 ? 'start' : mark === MARKS ? 'end' : 'middle'
  return `<line class="grid" x1="${x}" y1="${AXIS - 4}" x2="${x}" y2="${height}"/><text class="note" x="${x}" y="14" text-anchor="${anchor}">${text}</text>`
}

function drawRow(node: CallNode, row: number, { startMs, totalMs }: { startMs: number; totalMs: number }): string {
  const { call } = node
  const y = AXIS + row * ROW
  const perMs = BARS / totalMs
  const fromMs = Date.parse(call.started_at) - startMs
  const lastedMs = call.duration_ms ?? totalMs - fromMs
  const width = Math.min(Math.max(lastedMs * perMs, 3), BARS)
  const x = LABELS + Math.min(fromMs * perMs, BARS - width)
  const depth = Math.min(node.depth, MAX_INDENT)
  const label = clip(printable(nameOf(call)), LABEL_CHARS - depth * 2)
  const took = call.duration_ms === null ? 'open' : showMs(call.duration_ms)
  return [
    `<a href="#call-${call.id}"><g class="row ${call.status}"><title>${escapeXml(`${nameOf(call)} ${call.status} ${took}`)}</title>`,
    `<rect class="hit" x="0" y="${y}" width="${WIDTH}" height="${ROW}"/>`,
    `<text class="label" x="${6 + depth * INDENT}" y="${y + 17}">${escapeXml(label)}</text>`,
    `<rect class="mark" x="${round(x)}" y="${y + 7}" width="${round(width)}" height="${ROW - 14}" rx="3"/>`,
    `<text class="note" x="${WIDTH - 6}" y="${y + 17}" text-anchor="end">${took}</text>`,
    '</g></a>',
  ].join('')
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
