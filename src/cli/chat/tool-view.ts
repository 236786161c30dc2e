/**
 * A tool call as lines of the terminal: its title, what it gave, and diffs of what it changed.
 *
 * Long output is cut, with a word about how much; nothing of a peer is shown before it was made printable.
 */
import type { ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate } from '@agentclientprotocol/sdk'
import { clip } from '../../wire/columns.ts'
import { type DiffLine, diffLines } from '../../wire/line-diff.ts'
import { printable } from '../../wire/printable.ts'
import { clean } from './clean.ts'
import type { Colors, Paint } from './paint.ts'

/** A tool call, put together from what has been said of it. */
export interface ToolState {
  title: string
  status: ToolCallStatus
  content: readonly ToolCallContent[]
  rawInput: unknown
  rawOutput: unknown
}

export interface ToolViewOptions {
  readonly paint: Colors
  readonly columns: number
}

const MARKS: Readonly<Record<ToolCallStatus, string>> = { pending: '…', in_progress: '…', completed: '✓', failed: '✗' }
const MAX_OUTPUT_LINES = 10
const MAX_DIFF_LINES = 40
/** More of a text is not looked at. */
const MAX_LOOKED_AT = 256 * 1024
const INDENT = '    '

export function newTool(): ToolState {
  return { title: 'tool', status: 'pending', content: [], rawInput: undefined, rawOutput: undefined }
}

/** What an update leaves out stays as it was. */
export function mergeTool(tool: ToolState, update: ToolCall | ToolCallUpdate): void {
  tool.title = update.title ?? tool.title
  tool.status = update.status ?? tool.status
  tool.content = update.content ?? tool.content
  tool.rawInput = update.rawInput ?? tool.rawInput
  tool.rawOutput = update.rawOutput ?? tool.rawOutput
}

/** One line, whatever the agent called it. */
export function toolTitle(tool: Pick<ToolState, 'title'>, columns: number): string {
  return clip(printable(clean(tool.title).replace(/\s+/g, ' ')), Math.max(columns, 20))
}

export function toolLine(tool: ToolState, { paint, columns }: ToolViewOptions): string {
  const mark: Paint = { pending: paint.dim, in_progress: paint.dim, completed: paint.green, failed: paint.red }[
    tool.status
  ]
  return `${mark(MARKS[tool.status])} ${toolTitle(tool, columns - 3)}`
}

/** What is to be seen below the line: output and diffs. */
export function toolOutput(tool: ToolState, options: ToolViewOptions): string[] {
  const shown = tool.content.flatMap((content) => showContent(content, options))
  return shown.length > 0 ? shown : showRaw(tool.rawOutput, options)
}

function showContent(content: ToolCallContent, options: ToolViewOptions): string[] {
  if (content.type === 'diff') return showDiff(content.path, content.oldText ?? '', content.newText, options)
  if (content.type === 'terminal') return showText(`(terminal ${content.terminalId})`, options)
  const block = content.content
  if (block.type === 'text') return showText(withoutFence(block.text), options)
  if (block.type === 'resource_link') return showText(block.uri, options)
  if (block.type === 'resource' && 'text' in block.resource) return showText(block.resource.text, options)
  return showText(`[${block.type}]`, options)
}

function showRaw(output: unknown, options: ToolViewOptions): string[] {
  if (output === undefined || output === null) return []
  return showText(typeof output === 'string' ? output : JSON.stringify(output), options)
}

/** Agents put output between fences, which only Markdown needs. */
function withoutFence(text: string): string {
  return /^\s*(`{3,})[^\n`]*\n([\s\S]*?)\n?\1\s*$/.exec(text.slice(0, MAX_LOOKED_AT))?.[2] ?? text
}

function showText(text: string, { paint, columns }: ToolViewOptions): string[] {
  const lines = clean(text.slice(0, MAX_LOOKED_AT)).trimEnd().split('\n')
  if (lines.length === 1 && lines[0] === '') return []
  const kept = lines.slice(0, MAX_OUTPUT_LINES).map((line) => fitted(line, columns, paint.dim))
  const more = lines.length - kept.length
  return more > 0 ? [...kept, `${INDENT}${paint.dim(`… ${more} more ${more === 1 ? 'line' : 'lines'}`)}`] : kept
}

function showDiff(path: string, before: string, after: string, { paint, columns }: ToolViewOptions): string[] {
  const lines = diffLines(clean(before.slice(0, MAX_LOOKED_AT)), clean(after.slice(0, MAX_LOOKED_AT)))
  const count = (kind: DiffLine['kind']): number => lines.filter((line) => line.kind === kind).length
  const name = clip(printable(path), Math.max(columns - 24, 20))
  const head = `${INDENT}${paint.bold(name)} ${paint.green(`+${count('added')}`)} ${paint.red(`-${count('removed')}`)}`
  const kept = lines.slice(0, MAX_DIFF_LINES).map((line) => showDiffLine(line, columns, paint))
  const more = lines.length - kept.length
  return [head, ...kept, ...(more > 0 ? [`${INDENT}${paint.dim(`… ${more} more`)}`] : [])]
}

function showDiffLine(line: DiffLine, columns: number, paint: Colors): string {
  if (line.kind === 'skipped') return `${INDENT}${paint.dim('⋮')}`
  const { sign, color } = {
    same: { sign: ' ', color: paint.dim },
    added: { sign: '+', color: paint.green },
    removed: { sign: '-', color: paint.red },
  }[line.kind]
  return fitted(`${sign} ${line.text}`, columns, color)
}

function fitted(line: string, columns: number, paint: Paint): string {
  return `${INDENT}${paint(clip(line.replaceAll('\t', '  '), Math.max(columns - INDENT.length - 1, 20)))}`
}
