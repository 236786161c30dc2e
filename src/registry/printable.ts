/**
 * Makes text of others safe to show on one line of a terminal or a log: no control character, no line break, no
 * reordering of what follows, and never longer than `maxLength`.
 */
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g

export function printable(text: string, maxLength = 2_000): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text
  return cut.replace(UNSAFE, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
