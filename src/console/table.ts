/** Rows for the terminal, each column as wide as its widest cell. */
import type { createColors } from 'picocolors'

export type Colors = ReturnType<typeof createColors>
export type Decorate = (text: string, column: number, row: number) => string

export function formatTable(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  colors: Colors,
  decorate: Decorate = (text) => text,
): string[] {
  const widths = columns.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]!.length)))
  const line = (cells: readonly string[], paint: (text: string, column: number) => string): string =>
    cells
      .map((cell, column) => paint(cell.padEnd(widths[column]!), column))
      .join('  ')
      .trimEnd()
  const body = rows.map((cells, row) => line(cells, (text, column) => decorate(text, column, row)))
  return [line(columns, (text) => colors.dim(text)), ...body]
}
