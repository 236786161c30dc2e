/**
 * How many columns of a terminal text takes, and text cut or filled to a number of them.
 *
 * It escapes nothing: what comes here has been made printable. Terminals differ about emoji that are joined from several;
 * here each of their parts takes its own columns, so that a line is rather too short than too long.
 */

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u
/** Everyday text, and the frames, blocks and marks that trees are drawn with: one column each. */
const PLAIN = /^[\x20-\x7e\u2500-\u25ef]*$/
const ZERO_WIDTH = /\p{Mn}|\p{Me}|\p{Cf}/u

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
  return columns < 1 ? '' : `${cutAt(text, columns - 1)[0]}…`
}

/** Two parts, the first as wide as fits: empty where its first character does not. */
export function cutAt(text: string, columns: number): [head: string, tail: string] {
  let width = 0
  let end = 0
  for (const char of text) {
    width += columnsOf(char)
    if (width > columns) break
    end += char.length
  }
  return [text.slice(0, end), text.slice(end)]
}

/** Exactly `columns` wide. */
export function pad(text: string, columns: number, side: 'left' | 'right' = 'left'): string {
  const width = displayWidth(text)
  if (width > columns) return pad(clip(text, columns), columns, side)
  const space = ' '.repeat(columns - width)
  return side === 'left' ? text + space : space + text
}

function columnsOf(char: string): number {
  const code = char.charCodeAt(0)
  if (code < 0x300) return code === 0xad ? 0 : 1
  if (ZERO_WIDTH.test(char)) return 0
  return WIDE.test(char) ? 2 : 1
}
