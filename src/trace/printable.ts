/**
 * Makes text of peers safe to show: on a terminal, in a picture. Nothing a peer wrote moves the cursor or breaks markup.
 */
import { printable as escapeUnprintable, printableProse } from '../wire/printable.ts'

/** More of one line helps nobody. */
const MAX_SCANNED = 4_096

/** The text with everything that does not print written as an escape. */
export function printable(text: string): string {
  return escapeUnprintable(text.slice(0, MAX_SCANNED))
}

/** Text for XML content and attributes, on one line. */
export function escapeXml(text: string): string {
  return escapeMarkup(printable(text))
}

/** Text of several lines and of any length, for XML content. */
export function escapeProse(text: string): string {
  return escapeMarkup(printableProse(text))
}

function escapeMarkup(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`)
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
