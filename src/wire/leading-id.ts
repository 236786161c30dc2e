/** The id of a line that is too long to be read: looked for in its beginning, and believed only when it surely is one. */
import { Envelope, SHAPE } from './envelope.ts'

const idReader = new Envelope()
const LEADING_ID =
  /^\s*\{(?:\s*"(?!id")[^"\\]*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null)\s*,)*?\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*[,}]/

/** Looks for a top-level id in the beginning of a line that is too long; what is not surely one is `null`. */
export function idSeenIn(head: Buffer, maxBytes: number): string {
  const seen = LEADING_ID.exec(head.toString('latin1', 0, maxBytes))?.[1]
  if (seen === undefined) return 'null'
  // The line was never proved to be JSON: its id must be, since it goes back in a line of ours.
  const line = Buffer.from(`{"method":"","id":${seen}}`, 'latin1')
  return idReader.read(line, 0, line.length) === SHAPE.request ? idReader.idSpelling() : 'null'
}
