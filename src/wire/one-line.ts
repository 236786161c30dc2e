/**
 * A JSON text of any layout as one line, as the doors and upstreams of HTTP have it written over many.
 *
 * Line breaks between tokens become spaces, and every other byte stays where it is. It proves nothing: a text with a line
 * break inside a string is not JSON, keeps that break, and is for whoever reads the line to refuse.
 */
const NEWLINE = 0x0a
const RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** The bytes themselves where no line ends in them, else a copy. */
export function toOneLine(bytes: Buffer): Buffer {
  if (!bytes.includes(NEWLINE) && !bytes.includes(RETURN)) return bytes
  const line = Buffer.from(bytes)
  for (let i = 0; i < line.length; i++) {
    const byte = line[i]!
    if (byte === NEWLINE || byte === RETURN) line[i] = SPACE
    else if (byte === QUOTE) i = endOfString(line, i)
  }
  return line
}

/** The offset of the closing quote, or the end of a text that has none; `at` stands on the opening one. */
function endOfString(bytes: Buffer, at: number): number {
  let i = at + 1
  while (i < bytes.length && bytes[i] !== QUOTE) i += bytes[i] === BACKSLASH ? 2 : 1
  return i
}
