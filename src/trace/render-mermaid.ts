/**
 * The execution graph as a Mermaid flowchart, for pages that draw one from text.
 *
 * Labels hold no character that Mermaid gives a meaning to: everything but plain letters, digits and a few marks is written
 * as its code.
 */
import { clip } from '../wire/columns.ts'
import { growTree } from './call-tree.ts'
import type { CallDocument, TraceDocument } from './document.ts'
import { printable, showMs } from './printable.ts'

const CLASSES = [
  'classDef ok stroke:#15803d,stroke-width:2px',
  'classDef error stroke:#dc2626,stroke-width:3px',
  'classDef pending stroke:#0284c7,stroke-width:2px,stroke-dasharray:5 3',
]
const LABEL_CHARS = 60

export function renderMermaid(trace: TraceDocument): string {
  const nodes = growTree(trace.calls)
  const lines = [
    'flowchart LR',
    ...nodes.map(({ call }) => `c${call.id}["${labelOf(call)}"]:::${call.status}`),
    ...nodes.flatMap(({ call, parent }) => (parent === undefined ? [] : [`c${parent.call.id} --> c${call.id}`])),
    ...CLASSES,
  ]
  return `${lines.join('\n  ')}\n`
}

function labelOf(call: CallDocument): string {
  const method = call.target === undefined ? call.method : `${call.method} ${call.target}`
  const duration = call.duration_ms === null ? 'open' : showMs(call.duration_ms)
  return [call.agent, method, duration].map(plain).join('<br/>')
}

function plain(text: string): string {
  return clip(printable(text), LABEL_CHARS).replace(/[^A-Za-z0-9 ._:/-]/gu, (char) => `#${char.codePointAt(0)};`)
}
