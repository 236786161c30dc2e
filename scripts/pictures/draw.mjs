/** Rows of a terminal as SVG: no font of its own, no script, the same columns in whatever font there is. */
const CELL = { width: 8.4, height: 19 }
const MARGIN = { x: 18, top: 44, bottom: 16 }
const PALETTE = {
  red: '#f87171',
  green: '#4ade80',
  yellow: '#facc15',
  blue: '#60a5fa',
  magenta: '#e879f9',
  cyan: '#22d3ee',
  white: '#e5e7eb',
  'bright-black': '#6b7280',
}
const FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"

const escapeXml = (text) => text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
const round = (value) => Math.round(value * 10) / 10
const sameStyle = (a, b) => JSON.stringify(a) === JSON.stringify(b)

/** Neighbours of one style, drawn as one text; its width is that of its cells. */
function runsOf(cells) {
  const runs = []
  for (const [column, cell] of cells.entries()) {
    const { char, style } = cell ?? { char: ' ', style: {} }
    const last = runs.at(-1)
    if (last !== undefined && sameStyle(last.style, style)) last.text += char
    else runs.push({ column, style, text: char })
  }
  return runs.filter(({ text }) => text.trim() !== '')
}

function drawRun({ column, style, text }, y) {
  const trimmed = text.trimEnd()
  const lead = trimmed.length - trimmed.trimStart().length
  const shown = trimmed.trimStart()
  const attributes = [
    `x="${round(MARGIN.x + (column + lead) * CELL.width)}"`,
    `y="${y}"`,
    `textLength="${round(columnsOf(shown) * CELL.width)}"`,
    'lengthAdjust="spacingAndGlyphs"',
    ...(style.color === undefined ? [] : [`fill="${PALETTE[style.color] ?? '#e5e7eb'}"`]),
    ...(style.bold ? ['font-weight="700"'] : []),
    ...(style.italic ? ['font-style="italic"'] : []),
    ...(style.underline ? ['text-decoration="underline"'] : []),
    ...(style.dim ? ['opacity="0.6"'] : []),
  ]
  // Spaces next to each other would be one.
  return `<text ${attributes.join(' ')}>${escapeXml(shown).replaceAll(' ', '\u00a0')}</text>`
}

const columnsOf = (text) => [...text].length

export function drawScreen(rows, { columns, title }) {
  const shown = [...rows]
  while (shown.length > 0 && shown.at(-1).every((cell) => (cell?.char ?? ' ').trim() === '')) shown.pop()
  const width = round(columns * CELL.width + 2 * MARGIN.x)
  const height = MARGIN.top + shown.length * CELL.height + MARGIN.bottom
  const dots = ['#f87171', '#facc15', '#4ade80'].map(
    (fill, n) => `<circle cx="${20 + n * 18}" cy="20" r="5.5" fill="${fill}"/>`,
  )
  const lines = shown.flatMap((cells, row) => {
    const y = MARGIN.top + row * CELL.height + 14
    return runsOf(cells).map((run) => drawRun(run, y))
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeXml(title)}">`,
    `<rect width="${width}" height="${height}" rx="10" fill="#0f1419"/>`,
    ...dots,
    `<text x="${width / 2}" y="24" text-anchor="middle" font-family="system-ui,sans-serif" font-size="12" fill="#9aa4b2">${escapeXml(title)}</text>`,
    `<g font-family="${FONT}" font-size="14" fill="#e5e7eb">`,
    ...lines,
    '</g>',
    '</svg>\n',
  ].join('\n')
}
