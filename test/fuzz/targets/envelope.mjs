/**
 * Fuzzes the envelope: the scanner, its twin and JSON.parse must agree on every line, wherever it lies.
 *
 * A finding is a sentence that begins with what disagreed; the first word decides whether a smaller input fails alike.
 */
import { escapeBytes, unescapeBytes } from '../corpus.mjs'
import { chance, spellDocument, spellMessage } from '../grammar.mjs'
import { mutate } from '../mutate.mjs'
import { isId, parseLine, Reference } from '../reference.mjs'

const RECENT = 64
const SURROUNDINGS = [
  '"',
  '\\',
  '}',
  '{"id":1}\n',
  '0',
  'e5',
  '","id":7',
  '\xf0\x90',
  '\x80\x80"',
  ' ',
  '\n',
  'x'.repeat(70),
]
const COMMON_INTEGER = /^(?:0|-?[1-9]\d{0,14})$/
const SAFE_DIGITS = /^-?[1-9]\d{15}$/

export async function envelopeTarget(program) {
  const [{ Envelope, SHAPE }, { FIELD_TREE, FIELD_NAMES, FIELD }, { scanLine }, { lend, scanFast, scanner }, layout] =
    await Promise.all(
      ['envelope', 'fields', 'line-scan', 'scanner', 'layout'].map((name) => program.load(`wire/${name}.js`)),
    )
  const paths = pathsOf(FIELD_TREE)
  const shapeNames = Object.fromEntries(Object.entries(SHAPE).map(([name, shape]) => [shape, name]))
  const verdicts = { notJson: layout.VERDICT_BROKEN, object: layout.VERDICT_OBJECT, other: layout.VERDICT_OTHER }
  const twinNotes = new Int32Array(layout.NOTE_COUNT)
  const envelope = new Envelope()
  const second = new Envelope()
  const recent = []

  function generate(random) {
    const isDamaged = recent.length > 0 && chance(random, 0.45)
    const whole = isDamaged && chance(random, 0.5) ? random.pick(recent) : Buffer.from(spellDocument(random))
    const line = isDamaged ? mutate(whole, random, random.pick(recent)) : whole
    const isHuge = chance(random, 1 / 50_000)
    const made = isHuge ? Buffer.from(`{"id":1,"x":"${'z'.repeat(2 ** 20)}",${spellMessage(random).slice(1)}`) : line
    if (made.length < 4096) recent[random.between(0, RECENT - 1) % (recent.length + 1)] = made
    const place = { before: random.pick(SURROUNDINGS), behind: random.pick(SURROUNDINGS), isLent: chance(random, 0.5) }
    return { line: withoutNewlines(made), ...place }
  }

  /** What the notes say of each field, absent ones left out, with offsets from the front of the line. */
  function meaningOf(bytes, notes, shift) {
    let meaning = `twice ${notes[layout.NOTE_TWICE]}`
    for (let slot = 0; slot < FIELD_NAMES.length; slot++) {
      const start = notes[layout.NOTE_STARTS + slot]
      if (start === -1) continue
      const plain = bytes[start] === 0x22 ? notes[layout.NOTE_PLAIN + slot] : ''
      meaning += ` ${FIELD_NAMES[slot]} ${start - shift}-${notes[layout.NOTE_ENDS + slot] - shift} ${plain}`
    }
    const isRefused = notes[layout.NOTE_TWICE] !== -1
    if (isRefused || notes[layout.NOTE_ID_IS_INTEGER] !== 1) return meaning
    return `${meaning} id ${notes[layout.NOTE_ID_HIGH]}:${notes[layout.NOTE_ID_LOW]}`
  }

  function checkTwins(line, chunk, start, isLent, is) {
    const end = start + line.length
    const alone = scanLine(line, 0, line.length, twinNotes)
    if (alone !== verdicts[is]) return `verdict: the twin says ${alone}, JSON.parse ${is}`
    const aloneMeaning = is === 'object' ? meaningOf(line, twinNotes, 0) : ''
    const placed = scanLine(chunk, start, end, twinNotes)
    const placedMeaning = is === 'object' ? meaningOf(chunk, twinNotes, start) : ''
    if (placed !== alone || placedMeaning !== aloneMeaning) return `beyond: the twin reads what surrounds the line`
    if (scanner === undefined || line.length > layout.MAX_TEXT_BYTES) return undefined
    if (isLent) lend(chunk)
    const fast = scanFast(scanner, chunk, start, end)
    lend(undefined)
    if (fast === layout.VERDICT_UNSURE) return undefined
    if (fast !== alone) return `scanner: it says ${fast}, the twin ${alone}`
    const fastMeaning = is === 'object' ? meaningOf(chunk, scanner.notes, start) : ''
    return fastMeaning === aloneMeaning ? undefined : `notes: scanner ${fastMeaning}, twin ${aloneMeaning}`
  }

  function checkFields(bytes, start, reference) {
    for (const [slot, path] of paths) {
      const found = reference.find(path)
      const at = envelope.startOf(slot)
      if ((found === undefined) !== (at === -1)) return `field: ${path.join('.')} is noted at ${at}`
      if (found === undefined) continue
      if (found.start !== at - start || found.end !== envelope.endOf(slot) - start)
        return `place: ${path.join('.')} lies at ${found.start}-${found.end}, noted ${at - start}`
      const spelled = bytes.toString('utf8', at, envelope.endOf(slot))
      if (spelled.startsWith('"') && envelope.text(slot) !== JSON.parse(spelled)) return `text: of ${path.join('.')}`
      if (/^[-\d]/.test(spelled) && envelope.key(slot) !== numberOf(spelled)) return `key: of ${path.join('.')}`
    }
    return undefined
  }

  function checkId(reference) {
    const spelling = reference.spelling('id')
    const isReadable = spelling !== undefined && isId(spelling)
    const isDoubled = reference.doubled.includes('id')
    const expected = isReadable && !isDoubled ? Buffer.from(spelling, 'latin1').toString() : 'null'
    if (envelope.idSpelling() !== expected) return `id: refused as ${envelope.idSpelling()} where ${expected} is meant`
    if (!isReadable || isDoubled || SAFE_DIGITS.test(spelling)) return undefined
    return envelope.isOdd(FIELD.id) === isOdd(spelling) ? undefined : `odd: the id is taken for ${!isOdd(spelling)}`
  }

  function check({ line, before, behind, isLent }) {
    const { is } = parseLine(line)
    const head = Buffer.from(before, 'latin1')
    const chunk = Buffer.concat([head, line, Buffer.from(behind, 'latin1')])
    const wrong = checkTwins(exactly(line), chunk, head.length, isLent, is)
    if (wrong !== undefined) return wrong
    const shape = shapeNames[envelope.read(chunk, head.length, head.length + line.length)]
    second.read(SOMETHING_ELSE, 0, SOMETHING_ELSE.length)
    if (is !== 'object')
      return shape === (is === 'notJson' ? 'notJson' : 'bad') ? undefined : `shape: ${shape}, is ${is}`
    const reference = new Reference(line)
    if (shape !== reference.shape) return `shape: ${shape} where ${reference.shape} is meant`
    if (envelope.hasBadParamsSession !== reference.hasBadParamsSession)
      return 'params: the session in them is misjudged'
    return (reference.doubled.length > 0 ? undefined : checkFields(chunk, head.length, reference)) ?? checkId(reference)
  }

  return {
    name: 'envelope',
    generate,
    check,
    kindOf: ({ line }) =>
      line.length > 4096 ? 'large' : parseLine(line).is === 'object' ? new Reference(line).shape : parseLine(line).is,
    partsOf: ({ line }) => [...line],
    fromParts: (parts, input) => ({ ...input, line: Buffer.from(parts) }),
    encode: ({ line }) => escapeBytes(line),
    decode: (text) => SURROUNDINGS.map((behind) => ({ line: unescapeBytes(text), before: '"', behind, isLent: true })),
  }
}

const SOMETHING_ELSE = Buffer.from('{"method":"else","id":"other","sessionId":"elsewhere"}')

/** A copy in memory of exactly its size: reading on would leave it. */
function exactly(line) {
  const copy = Buffer.allocUnsafeSlow(line.length)
  line.copy(copy)
  return copy
}

function withoutNewlines(line) {
  return line.includes(10) ? Buffer.from(line.map((byte) => (byte === 10 ? 32 : byte))) : line
}

function numberOf(spelled) {
  const value = Number(spelled)
  return Number.isSafeInteger(value) || /[.eE]/.test(spelled) ? value : BigInt(spelled)
}

/** Whether a JSON library may spell the id otherwise (contract 4.2.3). */
function isOdd(spelling) {
  if (!spelling.startsWith('"')) return !COMMON_INTEGER.test(spelling)
  return /\p{Surrogate}/u.test(JSON.parse(Buffer.from(spelling, 'latin1').toString()))
}

/** Every field of the table with its path, read from the tree: `[[slot, ['params', 'sessionId']], ...]`. */
function pathsOf(node, path = []) {
  return node.byLength.flat().flatMap((child) => {
    if (child === undefined) return []
    const here = [...path, String(child.key)]
    return [...(child.slot === -1 ? [] : [[child.slot, here]]), ...pathsOf(child, here)]
  })
}
