/**
 * The execution graph of a trace as SVG: a card per call, from left to right by depth, an edge from each caller.
 *
 * Written by hand because the graph is a forest and needs no engine. Every call is one element of class `node` with
 * `data-call`, every parent one element of class `edge`; nothing is aggregated (spec T10). The picture needs no script and
 * no font of its own, and reads on a light and on a dark page. Text of peers is escaped.
 */
import { clip } from '../wire/columns.ts'
import { type CallNode, errorLine, extentOf, growTree, type Span } from './call-tree.ts'
import type { CallDocument, TraceDocument } from './document.ts'
import { escapeXml, printable, showMs } from './printable.ts'

const CARD = { width: 236, height: 62 } as const
const GAP = { x: 56, y: 14 } as const
const MARGIN = 20
const HEAD = 58
/** Characters that fit a card; sans-serif and monospace at the sizes below. */
const AGENT_CHARS = 20
const METHOD_CHARS = 31
const REASON_CHARS = 34

interface Placed {
  readonly node: CallNode
  readonly x: number
  readonly y: number
}

export const GRAPH_STYLE = `
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#1f2937}
.card{fill:#fff;stroke:#9ca3af;stroke-width:1}
.agent{font-size:13px;font-weight:600}
.method,.id{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:11px}
.time,.note{font-size:11px;fill:#6b7280}
.reason{font-size:11px;fill:#b91c1c}
.track{fill:#e5e7eb}
.ok .mark,.completed .mark{fill:#15803d}.error .mark{fill:#dc2626}.pending .mark,.active .mark{fill:#0284c7}
.error .card{stroke:#dc2626;stroke-width:2}.pending .card{stroke-dasharray:5 3}
.edge{fill:none;stroke:#8b95a5;stroke-width:1.5}
.edge.error{stroke:#dc2626}
.title{font-size:15px;font-weight:600}
@media (prefers-color-scheme:dark){
text{fill:#e5e7eb}.card{fill:#1f2937;stroke:#6b7280}.time,.note{fill:#9ca3af}.reason{fill:#fca5a5}.track{fill:#374151}
.error .card{stroke:#f87171}.edge.error{stroke:#f87171}
.ok .mark,.completed .mark{fill:#22c55e}.error .mark{fill:#f87171}.pending .mark,.active .mark{fill:#38bdf8}
}`

/** A file of its own. */
export function renderSvg(trace: TraceDocument): string {
  return `${drawGraph(trace, `<style>${GRAPH_STYLE}\n</style>`)}\n`
}

/** The picture inside of a page, which has the style. */
export function drawGraph(trace: TraceDocument, style = ''): string {
  const placed = place(growTree(trace.calls))
  const extent = extentOf(trace.calls)
  const positions = new Map(placed.map((card) => [card.node, card]))
  const width =
    Math.max(
      reach(placed, (card) => card.x + CARD.width),
      520,
    ) + MARGIN
  const height =
    Math.max(
      reach(placed, (card) => card.y + CARD.height),
      HEAD,
    ) + MARGIN
  const label = escapeXml(`Execution graph of ${trace.trace_id}: ${trace.calls.length} calls, ${trace.status}`)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}">`,
    ...(style === '' ? [] : [style]),
    heading(trace, extent, width),
    ...placed.flatMap((card) => edge(card, positions)),
    ...placed.map((card) => drawCard(card, trace.trace_id, extent)),
    '</svg>',
  ].join('\n')
}

/** Leaves take the next free row; a caller stands in the middle of those it called. Children come after their parents. */
function place(nodes: readonly CallNode[]): Placed[] {
  const rows = new Map<CallNode, number>()
  let nextRow = 0
  for (const node of nodes) if (node.children.length === 0) rows.set(node, nextRow++)
  for (const node of [...nodes].reverse()) {
    const [first, last] = [node.children[0], node.children.at(-1)]
    if (first === undefined || last === undefined) continue
    rows.set(node, ((rows.get(first) ?? 0) + (rows.get(last) ?? 0)) / 2)
  }
  return nodes.map((node) => ({
    node,
    x: MARGIN + node.depth * (CARD.width + GAP.x),
    y: MARGIN + HEAD + (rows.get(node) ?? 0) * (CARD.height + GAP.y),
  }))
}

function heading(trace: TraceDocument, extent: Span, width: number): string {
  const errors = trace.calls.filter((call) => call.status === 'error').length
  const facts = [
    trace.status,
    `${trace.calls.length} call${trace.calls.length === 1 ? '' : 's'}`,
    ...(errors > 0 ? [`${errors} error${errors === 1 ? '' : 's'}`] : []),
    ...(trace.missing > 0 ? [`${trace.missing} missing`] : []),
    showMs(extent.endMs - extent.startMs),
    trace.started_at,
  ]
  return [
    `<g class="${trace.status}" transform="translate(${MARGIN} ${MARGIN})">`,
    `<rect class="card" width="${width - 2 * MARGIN}" height="44" rx="8"/>`,
    '<circle class="mark" cx="18" cy="22" r="5"/>',
    `<text class="title" x="32" y="19">${escapeXml(clip(printable(trace.trace_id), 48))}</text>`,
    `<text class="note" x="32" y="35">${escapeXml(facts.join(' · '))}</text>`,
    '</g>',
  ].join('')
}

function edge({ node, x, y }: Placed, positions: ReadonlyMap<CallNode, Placed>): string[] {
  const from = node.parent && positions.get(node.parent)
  if (from === undefined) return []
  const startX = from.x + CARD.width
  const startY = from.y + CARD.height / 2
  const endY = y + CARD.height / 2
  const bend = GAP.x / 2
  const path = `M${startX} ${startY}C${startX + bend} ${startY} ${x - bend} ${endY} ${x} ${endY}`
  return [`<path class="edge ${node.call.status}" d="${path}"/>`]
}

function drawCard({ node, x, y }: Placed, traceId: string, extent: Span): string {
  const { call } = node
  const name = escapeXml(`${traceId}#${call.id}`)
  const duration = call.duration_ms === null ? 'open' : showMs(call.duration_ms)
  const detail = call.status === 'error' ? ` - ${errorLine(call)}` : ''
  const tip = escapeXml(`${traceId}#${call.id} ${call.agent}::${call.method} ${call.status} ${duration}${detail}`)
  return [
    `<g class="node ${call.status}" data-call="${name}" transform="translate(${x} ${y})"><title>${tip}</title>`,
    `<rect class="card" width="${CARD.width}" height="${CARD.height}" rx="8"/>`,
    '<circle class="mark" cx="16" cy="17" r="5"/>',
    `<text class="agent" x="28" y="21">${escapeXml(clip(printable(call.agent), AGENT_CHARS))}</text>`,
    `<text class="time" x="${CARD.width - 12}" y="21" text-anchor="end">${duration}</text>`,
    `<text class="method" x="12" y="38">${escapeXml(clip(printable(methodOf(call)), METHOD_CHARS))}</text>`,
    call.status === 'error' ? reason(call) : timeBar(call, extent),
    '</g>',
  ].join('')
}

function methodOf(call: CallDocument): string {
  return call.target === undefined ? call.method : `${call.method} ${call.target}`
}

function reason(call: CallDocument): string {
  return `<text class="reason" x="12" y="54">${escapeXml(clip(printable(errorLine(call)), REASON_CHARS))}</text>`
}

/** Where in the time of the whole trace the call was. */
function timeBar(call: CallDocument, extent: Span): string {
  const track = CARD.width - 24
  const perMs = track / Math.max(extent.endMs - extent.startMs, 0.001)
  const startMs = Date.parse(call.started_at) - extent.startMs
  const lasted = call.duration_ms ?? extent.endMs - extent.startMs - startMs
  const width = Math.min(Math.max(lasted * perMs, 3), track)
  const left = Math.min(startMs * perMs, track - width)
  return (
    `<rect class="track" x="12" y="48" width="${track}" height="4" rx="2"/>` +
    `<rect class="mark" x="${round(12 + left)}" y="48" width="${round(width)}" height="4" rx="2"/>`
  )
}

function reach(placed: readonly Placed[], edgeOf: (card: Placed) => number): number {
  return placed.reduce((furthest, card) => Math.max(furthest, edgeOf(card)), 0)
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
