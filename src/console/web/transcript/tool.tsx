/** A tool call: what it does, how it went, what it changed and gave (contract 15.8). */
import { type DiffLine, diffLines } from '../../../wire/line-diff.ts'
import { Preformatted } from '../parts/preformatted.tsx'
import { brief, shown } from '../text.ts'
import { BlockView } from './blocks.tsx'
import type { Tool } from './entries.ts'

const MARKS: Readonly<Record<string, string>> = { pending: '○', in_progress: '◐', completed: '✓', failed: '✗' }
const SIGNS = { added: '+', removed: '-', same: ' ' } as const
const WORDS = { added: 'added', removed: 'removed', same: '' } as const
/** More of a text is not looked at. */
const MAX_CHARS = 256 * 1024
const MAX_DIFF_LINES = 400

export function ToolView({ tool }: { readonly tool: Tool }) {
  const { title, status, kind, content, rawInput, rawOutput } = tool
  const hasRaw = rawInput !== undefined || (rawOutput !== undefined && content.length === 0)
  return (
    <div class={`tool ${MARKS[status] === undefined ? '' : status}`}>
      <p class="tool-title">
        <span class="mark" aria-hidden="true">
          {MARKS[status] ?? '○'}
        </span>{' '}
        <span class="quiet">{kind === '' ? 'tool' : brief(kind, 20)}</span> <code>{brief(title, 300)}</code>{' '}
        <span class="sr-only">{status.replace('_', ' ')}</span>
      </p>
      {content.map((each, index) => (
        <Content key={index} content={each} />
      ))}
      {hasRaw && (
        <details>
          <summary>input{content.length === 0 && rawOutput !== undefined ? ' and output' : ''}</summary>
          {rawInput !== undefined && <Raw value={rawInput} />}
          {rawOutput !== undefined && content.length === 0 && <Raw value={rawOutput} />}
        </details>
      )}
    </div>
  )
}

function Raw({ value }: { readonly value: unknown }) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  return <Preformatted>{shown(text.slice(0, MAX_CHARS))}</Preformatted>
}

// biome-ignore lint/suspicious/noExplicitAny: of a peer
function Content({ content }: { readonly content: any }) {
  if (content?.type === 'diff') return <Diff path={content.path} before={content.oldText} after={content.newText} />
  if (content?.type === 'terminal') return <p class="quiet terminal">terminal {brief(content.terminalId)}</p>
  const block = content?.content
  if (block?.type === 'text')
    return <Preformatted kind="output">{shown(withoutFence(String(block.text)).slice(0, MAX_CHARS))}</Preformatted>
  return typeof block?.type === 'string' ? <BlockView block={block} /> : null
}

/** Agents put output between fences, which only Markdown needs. */
function withoutFence(text: string): string {
  return /^\s*(`{3,})[^\n`]*\n([\s\S]*?)\n?\1\s*$/.exec(text.slice(0, MAX_CHARS))?.[2] ?? text
}

interface DiffProps {
  readonly path: unknown
  readonly before: unknown
  readonly after: unknown
}

export function Diff({ path, before, after }: DiffProps) {
  const lines = diffLines(textOf(before), textOf(after))
  const count = (kind: DiffLine['kind']): number => lines.filter((line) => line.kind === kind).length
  return (
    <figure class="diff">
      <figcaption>
        <code>{brief(path, 300)}</code> <span class="added">+{count('added')}</span>{' '}
        <span class="removed">-{count('removed')}</span>
      </figcaption>
      <Preformatted>
        {lines.slice(0, MAX_DIFF_LINES).map((line, index) => (
          <Change key={index} line={line} />
        ))}
        {lines.length > MAX_DIFF_LINES && <span class="quiet">… {lines.length - MAX_DIFF_LINES} lines more</span>}
      </Preformatted>
    </figure>
  )
}

function Change({ line }: { readonly line: DiffLine }) {
  if (line.kind === 'skipped')
    return (
      <span class="skipped">
        ⋮ {line.count} lines the same{'\n'}
      </span>
    )
  return (
    <span class={line.kind}>
      <span class="sr-only">{WORDS[line.kind]} </span>
      {SIGNS[line.kind]} {shown(line.text)}
      {'\n'}
    </span>
  )
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_CHARS) : ''
}
