/**
 * What a terminal shows after everything that was written to it: rows of cells, each a character with its colours.
 *
 * It knows what the commands of this project write: text, colours, and the few moves of a line editor and a spinner.
 */
const PLAIN = Object.freeze({ color: undefined, bold: false, dim: false, italic: false, underline: false })
const COLORS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]|\p{Emoji_Presentation}/u
const PIECES = /\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b.|[\r\n\b]|[^\x1b\r\n\b]/gu

/** How a code of SGR changes the colours. */
function restyle(style, code) {
  if (code === 0) return PLAIN
  if (code === 1) return { ...style, bold: true }
  if (code === 2) return { ...style, dim: true }
  if (code === 3) return { ...style, italic: true }
  if (code === 4) return { ...style, underline: true }
  if (code === 22) return { ...style, bold: false, dim: false }
  if (code === 23) return { ...style, italic: false }
  if (code === 24) return { ...style, underline: false }
  if (code >= 30 && code <= 37) return { ...style, color: COLORS[code - 30] }
  if (code >= 90 && code <= 97) return { ...style, color: `bright-${COLORS[code - 90]}` }
  return code === 39 ? { ...style, color: undefined } : style
}

export function readScreen(written, columns) {
  const rows = [[]]
  let [row, column, style] = [0, 0, PLAIN]
  const rowAt = (at) => {
    while (rows.length <= at) rows.push([])
    return rows[at]
  }
  const moves = {
    A: (count) => (row = Math.max(row - count, 0)),
    B: (count) => (row += count),
    C: (count) => (column += count),
    D: (count) => (column = Math.max(column - count, 0)),
    G: (count) => (column = count - 1),
    K: () => rowAt(row).splice(column),
    J: () => {
      rowAt(row).splice(column)
      rows.splice(row + 1)
    },
  }
  for (const [piece, parameters, command] of written.matchAll(PIECES)) {
    if (piece === '\n') row += 1
    else if (piece === '\r') column = 0
    else if (piece === '\b') column = Math.max(column - 1, 0)
    else if (command === 'm') for (const code of parameters.split(';')) style = restyle(style, Number(code))
    else if (command !== undefined) moves[command]?.(Number.parseInt(parameters, 10) || 1)
    else if (piece[0] !== '\x1b') {
      const width = WIDE.test(piece) ? 2 : 1
      if (column + width > columns) [row, column] = [row + 1, 0]
      const cells = rowAt(row)
      while (cells.length < column) cells.push({ char: ' ', style: PLAIN })
      cells[column] = { char: piece, style }
      if (width === 2) cells[column + 1] = { char: '', style }
      column += width
    }
  }
  return rows
}
