/**
 * A table of Markdown with its columns under each other, never wider than the terminal: cells that are too long have several
 * lines. Emphasis inside of cells is not painted.
 */
import { cutAt, displayWidth, pad } from '../../wire/columns.ts'
import { readInline } from './markdown-inline.ts'
import type { Colors } from './paint.ts'

type Side = 'left' | 'right'

const RULE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/
const BETWEEN = ' │ '
const MIN_COLUMN = 6

export function isTableRow(line: string): boolean {
  return /^\s*\|/.test(line)
}

/** The lines to show; undefined: it is no table, or the terminal is too narrow for it. */
export function renderTable(rows: readonly string[], width: number, paint: Colors): string[] | undefined {
  const [head, rule, ...body] = rows
  if (head === undefined || rule === undefined || !RULE.test(rule)) return undefined
  const sides = cellsOf(rule).map((cell): Side => (/^[^:]*:$/.test(cell) ? 'right' : 'left'))
  const table = [head, ...body].map((row) => sides.map((_, column) => shown(cellsOf(row)[column] ?? '', paint)))
  const widths = narrow(
    sides.map((_, column) => Math.max(...table.map((row) => displayWidth(row[column]!)), 1)),
    width - (sides.length - 1) * BETWEEN.length,
  )
  if (widths === undefined) return undefined
  const bar = paint.dim(BETWEEN)
  const draw = (row: readonly string[], decorate: (text: string) => string): string[] => {
    const cells = row.map((cell, column) => wrapCell(cell, widths[column]!))
    const height = Math.max(...cells.map((lines) => lines.length))
    return Array.from({ length: height }, (_, line) =>
      cells
        .map((lines, column) => decorate(pad(lines[line] ?? '', widths[column]!, sides[column])))
        .join(bar)
        .trimEnd(),
    )
  }
  const line = paint.dim(widths.map((columns) => '─'.repeat(columns)).join('─┼─'))
  return [...draw(table[0]!, paint.bold), line, ...table.slice(1).flatMap((row) => draw(row, String))]
}

/** The cells of a row, without the bars around them; a bar in code or behind a backslash parts nothing. */
function cellsOf(row: string): string[] {
  const inner = row
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '')
  return (inner.match(/(?:\\.|`[^`]*`|[^|\\])*(?:\||$)/g) ?? [])
    .slice(0, inner.endsWith('|') ? undefined : -1)
    .map((cell) => cell.replace(/\|$/, '').trim().replaceAll('\\|', '|'))
}

function shown(cell: string, paint: Colors): string {
  if (!paint.isColorSupported) return cell
  return readInline(cell)
    .map(({ kind, text }) => (kind === 'text' || kind === 'code' || kind === 'link' ? text : shown(text, paint)))
    .join('')
}

/** Takes from the widest until all fit. */
function narrow(natural: readonly number[], room: number): number[] | undefined {
  const widths = [...natural]
  for (let over = sum(widths) - room; over > 0; over = sum(widths) - room) {
    const widest = widths.indexOf(Math.max(...widths))
    if (widths[widest]! <= MIN_COLUMN) return undefined
    const second = Math.max(...widths.filter((_, column) => column !== widest), MIN_COLUMN)
    widths[widest] = Math.max(widths[widest]! - over, Math.min(second, widths[widest]! - 1), MIN_COLUMN)
  }
  return widths
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}

function wrapCell(text: string, columns: number): string[] {
  const lines = ['']
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1)!
    const joined = last === '' ? word : `${last} ${word}`
    if (displayWidth(joined) <= columns) lines[lines.length - 1] = joined
    else
      for (let left = word, isFirst = last === ''; left !== ''; isFirst = false) {
        const [head, tail] = cutAt(left, columns)
        if (isFirst) lines[lines.length - 1] = head
        else lines.push(head)
        left = tail
      }
  }
  return lines
}
