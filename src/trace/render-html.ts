/**
 * A whole trace as one page for people: what was asked and answered, the waterfall, the graph, and every call with its payloads.
 *
 * The file stands alone: no script, no font, no picture from elsewhere, and a policy that allows nothing but its own style, by
 * hash. Text of peers is escaped wherever it is shown, so it is only ever text. It reads on a light and on a dark page, and
 * prints.
 */
import { createHash } from 'node:crypto'
import { errorLine, extentOf, growTree, nameOf } from './call-tree.ts'
import type { CallDocument, TraceDocument } from './document.ts'
import { PAGE_STYLE } from './html-style.ts'
import { escapeProse, escapeXml, showMs } from './printable.ts'
import { drawGraph, GRAPH_STYLE } from './render-svg.ts'
import { drawWaterfall } from './render-waterfall.ts'
import { answerTextOf, promptTextOf } from './spoken-text.ts'

const STYLE = `${GRAPH_STYLE}\n${PAGE_STYLE}`
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')
/** Nothing is loaded and nothing runs; a page that was given away must not be able to tell that it is read. */
const POLICY = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'`

export function renderPage(trace: TraceDocument): string {
  const nodes = growTree(trace.calls)
  const title = escapeXml(trace.trace_id)
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${POLICY}">`,
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    '<meta name="referrer" content="no-referrer">',
    `<title>${title}</title>`,
    `<style>${STYLE}</style>`,
    '</head>',
    '<body>',
    '<main>',
    heading(trace),
    ...spoken(trace),
    section('Waterfall', `<div class="scroll">${drawWaterfall(nodes, extentOf(trace.calls))}</div>`),
    section('Graph', `<div class="scroll">${drawGraph(trace)}</div>`),
    section('Calls', nodes.map(({ call }) => describe(call, trace.trace_id)).join('\n')),
    '</main>',
    '</body>',
    '</html>\n',
  ].join('\n')
}

function heading(trace: TraceDocument): string {
  const { startMs, endMs } = extentOf(trace.calls)
  const errors = trace.calls.filter(({ status }) => status === 'error').length
  const callers = new Set(trace.calls.flatMap(({ caller }) => caller?.principal ?? []))
  const facts: (readonly [name: string, value: string])[] = [
    ['started', trace.started_at],
    ['took', showMs(endMs - startMs)],
    ['calls', String(trace.calls.length)],
    ['errors', String(errors)],
    ...(trace.missing > 0 ? [['missing', String(trace.missing)] as const] : []),
    ['by', [...callers].join(', ') || 'nobody known'],
    ['OpenTelemetry', trace.otel_trace_id],
  ]
  return [
    `<header><h1>${escapeXml(trace.trace_id)} <span class="pill ${trace.status}">${trace.status}</span></h1>`,
    `<dl class="facts">${facts.map(fact).join('')}</dl></header>`,
  ].join('')
}

function fact([name, value]: readonly [string, string]): string {
  return `<div><dt>${name}</dt><dd>${escapeXml(value)}</dd></div>`
}

/** What was asked first, and what was answered to it. */
function spoken({ calls: [first] }: TraceDocument): string[] {
  if (first === undefined) return []
  const prompt = promptTextOf(first)
  const answer = answerTextOf(first)
  return [
    ...(prompt === undefined ? [] : [`<section class="said"><h2>Asked</h2>${prose(prompt)}</section>`]),
    ...(answer === undefined ? [] : [`<section class="said"><h2>Answered</h2>${prose(answer)}</section>`]),
  ]
}

function prose(text: string): string {
  return `<div class="prose">${escapeProse(text)}</div>`
}

function section(title: string, content: string): string {
  return `<section><h2>${title}</h2>\n${content}\n</section>`
}

function describe(call: CallDocument, traceId: string): string {
  const facts: (readonly [string, string | undefined])[] = [
    ['id', `${traceId}#${call.id}`],
    ['parent', call.parent_id === null ? undefined : `#${call.parent_id}`],
    ['started', call.started_at],
    ['caller', callerOf(call)],
    ['protocol', `${call.protocol} over ${call.type}`],
    ['native', call.native_method],
    ['worker', call.worker ?? undefined],
    ['bytes', `${call.bytes_in} in, ${call.bytes_out} out`],
    ['partials', call.partials > 0 ? String(call.partials) : undefined],
    ['cut', call.truncated?.join(', ')],
    ['lost', call.lost?.join(', ')],
  ]
  const known = facts.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  const took = call.duration_ms === null ? 'open' : showMs(call.duration_ms)
  const error = call.status === 'error' ? `<p class="reason">${escapeXml(errorLine(call))}</p>` : ''
  return [
    `<details class="call ${call.status}" id="call-${call.id}"${call.status === 'error' ? ' open' : ''}>`,
    `<summary><span class="dot"></span><span class="name">${escapeXml(nameOf(call))}</span><span class="took">${took}</span></summary>`,
    error,
    `<dl class="facts">${known.map(fact).join('')}</dl>`,
    payload('input', call.input),
    payload('output', call.output),
    call.error?.data === undefined ? '' : payload('error data', call.error.data),
    '</details>',
  ].join('')
}

function callerOf({ caller }: CallDocument): string | undefined {
  if (caller === undefined) return undefined
  return [caller.principal, caller.agent && `agent ${caller.agent}`, caller.client && `client ${caller.client}`]
    .filter(Boolean)
    .join(', ')
}

function payload(name: string, value: unknown): string {
  if (value === null || value === undefined) return ''
  return `<h3>${name}</h3><pre>${escapeProse(JSON.stringify(value, null, 2))}</pre>`
}
