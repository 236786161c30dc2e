/**
 * What is sent on one connection, and what must come back by contract 4.3 and 8.2.
 *
 * Every line but the last is one the bus must take; the last may be one for which it must close the connection.
 */
import { chance, spellMessage } from '../grammar.mjs'
import { mutate } from '../mutate.mjs'
import { faultOf, isId, parseLine, Reference } from '../reference.mjs'
import { MAX_LINE_BYTES } from './house.mjs'

const TRIES = 8
const JUNK = Buffer.from('}{\n{"id":"late","method":"m"}\n')
const OPENINGS = ['plain', 'auto'].map((pool) => `{"id":"o","method":"bus::open","params":{"pool":"${pool}"}}`)

const withoutNewlines = (bytes) => Buffer.from(bytes.map((byte) => (byte === 10 ? 32 : byte)))

function padTo(bytes, text) {
  return Buffer.from(`${text}${' '.repeat(Math.max(0, bytes - Buffer.byteLength(text)))}`)
}

function makeLine(random) {
  const kind = random.between(0, 19)
  const message = spellMessage(random, 0.05)
  if (kind < 12) return Buffer.from(message)
  if (kind < 18) return withoutNewlines(mutate(Buffer.from(message), random, Buffer.from(spellMessage(random))))
  if (kind === 18) return Buffer.from(random.pick(['', ' ', '\r', `${message}\r`, '\t \r']))
  return padTo(MAX_LINE_BYTES - random.between(0, 1), message)
}

function makeFault(random) {
  const kind = random.between(0, 9)
  const message = spellMessage(random, 0)
  if (kind === 0) return padTo(MAX_LINE_BYTES + random.pick([1, 2, 100, 70_000]), message)
  if (kind === 2) return makeEndless(random)
  if (kind === 1)
    return Buffer.from(random.pick(['[]', '1', 'null', `[${message}]`, '{}', '{"id":1}', `\ufeff${message}`]))
  const odd = Buffer.from(spellMessage(random, kind < 5 ? 1 : 0.1))
  return kind < 5 ? odd : withoutNewlines(mutate(odd, random, Buffer.from(message)))
}

/** A line that is too long and broken besides: what is said of it must be a line all the same. */
function makeEndless(random) {
  const head = `{"id":${random.pick(['"a\\n"', '7', '"x"', `"${'x'.repeat(1025)}"`])},"method":"m","params":"`
  const hurt = chance(random, 0.8) ? mutate(Buffer.from(head), random, Buffer.from('0"\\q\t')) : Buffer.from(head)
  return Buffer.concat([withoutNewlines(hurt), Buffer.alloc(MAX_LINE_BYTES, 'z')])
}

const isFault = (line) => faultOf(line, MAX_LINE_BYTES) !== undefined

function untilIt(wanted, make, otherwise) {
  for (let left = TRIES; left > 0; left--) {
    const line = make()
    if (wanted(line)) return line
  }
  return otherwise
}

/** A connection's worth of lines, at most `most`. */
export function makePlan(random, most) {
  const harmless = (line) => !isFault(line)
  const lines = Array.from({ length: random.between(1, most) }, () =>
    untilIt(harmless, () => makeLine(random), Buffer.from('{"id":1,"method":"m"}')),
  )
  if (chance(random, 0.05)) lines.unshift(Buffer.from(random.pick(OPENINGS)))
  if (chance(random, 0.5)) lines.push(untilIt(isFault, () => makeFault(random), Buffer.from('}')))
  return planFor(lines, {
    sizes: Array.from({ length: 8 }, () => random.pick([1, 7, 100, 1000, 65_536, 65_536])),
    endsEarly: chance(random, 0.3),
    isUnfinished: chance(random, 0.2),
    junk: chance(random, 0.1) ? JUNK : Buffer.alloc(0),
  })
}

/** Lines that are kept or shrunk may have their fault anywhere: nothing behind it counts. */
export function planFor(
  lines,
  manner = { sizes: [65_536], endsEarly: false, isUnfinished: false, junk: Buffer.alloc(0) },
) {
  const at = lines.findIndex(isFault)
  const sent = at === -1 ? lines : lines.slice(0, at + 1)
  const fault = at === -1 ? undefined : { reason: faultOf(lines[at], MAX_LINE_BYTES), ids: idsOf(lines[at]) }
  const requests = sent.filter((line) => !isFault(line)).flatMap(requestId)
  // Of a client that speaks ACP or MCP the end of its writing means that it has gone (contract 4.1.2).
  const maySpeak = sent.some((line) => line.includes('auto') || line.includes('uto'))
  return { ...manner, lines: sent, fault, requests, endsEarly: manner.endsEarly && !maySpeak }
}

function requestId(line) {
  if (parseLine(line).is !== 'object') return []
  const reference = new Reference(line)
  return reference.shape === 'request' ? [keyOf(reference)] : []
}

function keyOf(reference) {
  return JSON.stringify(JSON.parse(Buffer.from(reference.spelling('id'), 'latin1').toString()))
}

/** The ids with which a line may be refused: its own when it can be read; that of an endless line need not be seen. */
function idsOf(line) {
  if (parseLine(line).is !== 'object') return line.length > MAX_LINE_BYTES ? undefined : ['null']
  const reference = new Reference(line)
  const spelling = reference.spelling('id')
  if (reference.doubled.includes('id') || spelling === undefined || !isId(spelling)) return ['null']
  return line.length > MAX_LINE_BYTES ? ['null', keyOf(reference)] : [keyOf(reference)]
}

/** The bytes in the pieces in which they are written. */
export function piecesOf({ lines, sizes, endsEarly, isUnfinished, fault, junk }) {
  const whole = Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]))
  // Without its newline the last line counts only when the stream ends.
  const bytes =
    isUnfinished && endsEarly ? whole.subarray(0, -1) : fault === undefined ? whole : Buffer.concat([whole, junk])
  const pieces = []
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = Math.max(sizes[turn % sizes.length], bytes.length >> 6)
    pieces.push(bytes.subarray(at, at + size))
    at += size
  }
  return pieces
}
