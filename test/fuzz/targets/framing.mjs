/**
 * Fuzzes the framing: however a stream is cut into chunks, the same lines come out as from splitting it at once.
 *
 * The input is a limit and the chunks. The sink refuses now and then, and sometimes reads the envelope in the middle, as
 * the bus does, since the chunk is lent to the scanner meanwhile.
 */
import { Random } from '../../chaos/stage/random.mjs'
import { escapeBytes, unescapeBytes } from '../corpus.mjs'
import { chance, spellMessage } from '../grammar.mjs'

const NEWLINE = 10
const LIMITS = [1, 2, 3, 7, 16, 63, 64, 65, 100, 255, 1000, 4096]
const SMALLEST_KEPT_BYTES = 65_536

export async function framingTarget(program) {
  const [{ LineSplitter }, { Envelope }] = await Promise.all([
    program.load('wire/frame.js'),
    program.load('wire/envelope.js'),
  ])
  const placed = new Envelope()
  const alone = new Envelope()

  /** Pushes everything as the bus does and gives what came out, or a finding. */
  function split({ limit, chunks }) {
    const splitter = new LineSplitter(limit)
    const lines = []
    const whims = new Random(limit * 31 + chunks.length)
    let wrong
    const sink = (bytes, start, end) => {
      if (bytes[end] !== NEWLINE) wrong ??= `newline: there is none behind line ${lines.length}`
      const line = Buffer.from(bytes.subarray(start, end))
      if (whims.between(0, 7) === 0 && placed.read(bytes, start, end) !== alone.read(line, 0, line.length))
        wrong ??= `lent: line ${lines.length} is read otherwise in its chunk`
      lines.push(line)
      return whims.between(0, 3) !== 0
    }
    for (const chunk of chunks) {
      for (let from = 0; from < chunk.length; ) {
        const taken = splitter.push(chunk, from, sink)
        if (taken <= from || taken > chunk.length) return { wrong: `taken: ${taken} of ${chunk.length} from ${from}` }
        from = taken
      }
      if (splitter.retainedBytes > Math.max(SMALLEST_KEPT_BYTES, 2 * (limit + 1)))
        wrong ??= `retained: ${splitter.retainedBytes} bytes at a limit of ${limit}`
    }
    splitter.finish(sink)
    return { lines, overflowed: splitter.overflowed, head: splitter.head, wrong }
  }

  function check(input) {
    const expected = splitAtOnce(input)
    const got = split(input)
    if (got.wrong !== undefined) return got.wrong
    if (got.overflowed !== expected.overflowed)
      return `overflow: ${got.overflowed} where ${expected.overflowed} is meant`
    if (got.lines.length !== expected.lines.length)
      return `count: ${got.lines.length} lines where ${expected.lines.length} are meant`
    const at = got.lines.findIndex((line, index) => !line.equals(expected.lines[index]))
    if (at !== -1) return `line: number ${at} is not what was sent`
    const isBeginning = !got.overflowed || got.head.equals(expected.tooLong.subarray(0, got.head.length))
    return isBeginning ? undefined : 'head: it is not the beginning of the line that was too long'
  }

  return {
    name: 'framing',
    generate,
    check,
    kindOf: (input) =>
      splitAtOnce(input).overflowed
        ? 'too long'
        : `${Math.min(input.chunks.length, 2) === 2 ? 'many chunks' : 'one chunk'}`,
    partsOf: ({ chunks }) => chunks.flatMap((chunk, index) => [...(index === 0 ? [] : [-1]), ...chunk]),
    fromParts: (parts, { limit }) => ({ limit, chunks: chunksOf(parts) }),
    encode: ({ limit, chunks }) => [limit, ...chunks.map((chunk) => escapeBytes(chunk, '#|'))].join('|'),
    decode: (text) => {
      const [limit, ...chunks] = text.split('|')
      return [{ limit: Number(limit), chunks: chunks.map(unescapeBytes) }]
    },
  }
}

/** The simplest splitter there is. */
function splitAtOnce({ limit, chunks }) {
  const bytes = Buffer.concat(chunks)
  const lines = []
  let start = 0
  for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
    lines.push(bytes.subarray(start, end))
    start = end + 1
  }
  if (start < bytes.length) lines.push(bytes.subarray(start))
  const tooLong = lines.findIndex((line) => line.length > limit)
  if (tooLong === -1) return { lines, overflowed: false }
  return { lines: lines.slice(0, tooLong), overflowed: true, tooLong: lines[tooLong] }
}

/** Bytes with -1 where a chunk ends. */
function chunksOf(parts) {
  const chunks = [[]]
  for (const part of parts) {
    if (part === -1) chunks.push([])
    else chunks.at(-1).push(part)
  }
  return chunks.map((chunk) => Buffer.from(chunk))
}

function generate(random) {
  const isLarge = chance(random, 1 / 500)
  const limit = isLarge ? random.between(60_000, 140_000) : random.pick(LIMITS)
  const lines = Array.from({ length: random.between(0, 8) }, () => makeLine(random, limit))
  const stream = Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]))
  const bytes = chance(random, 0.4) ? stream.subarray(0, -1 - random.between(0, 3)) : stream
  return { limit, chunks: cut(bytes, random) }
}

/** Around the limit more often than anywhere else; beyond it seldom, since nothing comes after that. */
function makeLine(random, limit) {
  const kind = random.between(0, 19)
  if (kind < 6) return Buffer.alloc(Math.max(0, limit - random.between(0, 2)), random.between(11, 255))
  if (kind === 6) return Buffer.alloc(limit + random.between(1, 2), 'o')
  if (kind === 7) return Buffer.alloc(0)
  if (kind < 12) return Buffer.from(spellMessage(random)).subarray(0, limit)
  return Buffer.from(Array.from({ length: random.between(0, Math.min(limit, 24)) }, () => random.between(11, 255)))
}

function cut(bytes, random) {
  const places = new Set()
  const newlines = []
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) newlines.push(at)
  for (let cuts = random.pick([0, 1, 2, 3, 8]); cuts > 0; cuts--) {
    const isNear = newlines.length > 0 && chance(random, 0.6)
    places.add(isNear ? random.pick(newlines) + random.between(-1, 2) : random.between(0, bytes.length))
  }
  if (bytes.length < 64 && chance(random, 0.1)) for (let at = 0; at < bytes.length; at++) places.add(at)
  const sorted = [...places].filter((at) => at > 0 && at < bytes.length).sort((a, b) => a - b)
  return [0, ...sorted].map((at, index) => bytes.subarray(at, sorted[index] ?? bytes.length))
}
