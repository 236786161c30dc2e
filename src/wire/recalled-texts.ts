/**
 * Short texts that were decoded lately: names of sessions and methods come again and again.
 *
 * One that is recalled is the very same string as before, so it costs no decoding, and its hash is known. There is one
 * place for texts that end alike; a new one takes it, so nothing grows.
 */
const PLACES = 256
const LONGEST = 64
const SHORTEST = 2

const texts: string[] = new Array(PLACES).fill('')
/** Their bytes, each in a slice of its own: what is compared is compared here. */
const spellings = new Uint8Array(PLACES * LONGEST)

/** The text in `bytes[start, end)`, which holds ASCII alone. */
export function recallText(bytes: Buffer, start: number, end: number): string {
  const length = end - start
  if (length > LONGEST || length < SHORTEST) return bytes.latin1Slice(start, end)
  const place = (bytes[end - 1]! * 7 + bytes[end - 2]! * 61 + length * 17) & (PLACES - 1)
  const known = texts[place]!
  if (known.length === length && isSame(place * LONGEST, bytes, start, length)) return known
  const text = bytes.latin1Slice(start, end)
  texts[place] = text
  for (let i = 0; i < length; i++) spellings[place * LONGEST + i] = bytes[start + i]!
  return text
}

function isSame(at: number, bytes: Buffer, start: number, length: number): boolean {
  for (let i = length - 1; i >= 0; i--) if (spellings[at + i] !== bytes[start + i]) return false
  return true
}
