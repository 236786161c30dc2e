/**
 * Makes text of others safe to show on one line of a terminal or a log, and never longer than `maxLength`.
 */
import { printable as escapeUnprintable } from '../wire/printable.ts'

export function printable(text: string, maxLength = 2_000): string {
  return escapeUnprintable(text.length > maxLength ? `${text.slice(0, maxLength)}…` : text)
}
