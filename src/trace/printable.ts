/**
 * Makes text of peers safe to show: on a terminal, in a picture. Nothing a peer wrote moves the cursor or breaks markup.
 */
import { printable as escapeUnprintable } from '../wire/printable.ts'

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u
/** Everyday text, and the frames, blocks and marks that trees are drawn with: one column each, nothing to escape. */
const PLAIN = /^[\x20-\x7e\u2500-\u25ef]*$/
const ZERO_WIDTH = /\p{Mn}|\p{Me}/u

/** More of one line helps nobody. */
const MAX_SCANNED = 4_096

/** The text with everything that does not print written as an escape. */
export function printable(text: string): string {
  return escapeUnprintable(text.slice(0, MAX_SCANNED))
}

/** How many columns a terminal needs for it. */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length
  let width = 0
  for (const char of text) width += columnsOf(char)
  return width
}

/** At most `columns` wide, with an ellipsis where something was cut. */
export function clip(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text
  let width = 0
  let kept = ''
  for (const char of text) {
    width += columnsOf(char)
    if (width > columns - 1) break
    kept += char
  }
  return columns < 1 ? '' : `${kept}…`
}

/** Exactly `columns` wide. */
export function pad(text: string, columns: number, side: 'left' | 'right' = 'left'): string {
  const width = displayWidth(text)
  if (width > columns) return pad(clip(text, columns), columns, side)
  const space = ' '.repeat(columns - width)
  return side === 'left' ? text + space : space + text
}

function columnsOf(char: string): number {
  if (char.charCodeAt(0) < 0x300) return 1
  if (ZERO_WIDTH.test(char)) return 0
  return WIDE.test(char) ? 2 : 1
}

/** Text for XML content and attributes. */
export function escapeXml(text: string): string {
  return printable(text).replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
}

const UNITS = [
  { from: 3_600_000, unit: 'h' },
  { from: 60_000, unit: 'min' },
  { from: 1_000, unit: 's' },
] as const

/** A duration in the unit a person would choose, three digits of it. */
export function showMs(ms: number): string {
  for (const { from, unit } of UNITS) {
    if (ms >= from) return `${Number((ms / from).toPrecision(3))} ${unit}`
  }
  return `${Number(ms.toPrecision(3))} ms`
}
