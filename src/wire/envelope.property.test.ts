import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Envelope, SHAPE } from './envelope.ts'
import { FIELD, FIELD_NAMES, FIELD_TREE, type FieldNode, ONCE_BELOW } from './fields.ts'
import {
  NOTE_COUNT,
  NOTE_ENDS,
  NOTE_ID_HIGH,
  NOTE_ID_IS_INTEGER,
  NOTE_ID_LOW,
  NOTE_PLAIN,
  NOTE_REPEATED,
  NOTE_STARTS,
  NOTE_TWICE,
  VERDICT_BROKEN,
  VERDICT_OBJECT,
  VERDICT_OTHER,
  VERDICT_UNSURE,
} from './layout.ts'
import { scanLine } from './line-scan.ts'
import { lend, scanFast, scanner } from './scanner.ts'

/** A document as it is spelled, white space, escapes and doubled keys included. */
type Spelled =
  | { readonly scalar: string }
  | { readonly items: readonly Spelled[]; readonly gap: string }
  | { readonly entries: readonly (readonly [string, Spelled])[]; readonly gap: string }

const gap = fc.oneof(
  { weight: 4, arbitrary: fc.constant('') },
  { weight: 1, arbitrary: fc.constantFrom(' ', '\t', '\r', '\n', '  \t') },
)

function escapeSome(text: string, odds: readonly boolean[]): string {
  return [...text]
    .map((char, i) => (odds[i % odds.length] ? escapeAll(char) : JSON.stringify(char).slice(1, -1)))
    .join('')
}

function escapeAll(text: string): string {
  return text
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}

const characters = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: 'binary', maxLength: 24 }) },
  { weight: 3, arbitrary: fc.string({ maxLength: 90 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', '"', '\\', '\\"', 'ж'.repeat(40), '漢字😀'.repeat(9), '/\b\f\n\r\t\u007f', '\ud800'),
  },
)
const quoted = fc
  .tuple(characters, fc.array(fc.boolean(), { minLength: 1, maxLength: 5 }))
  .map(([text, odds]) => `"${escapeSome(text, odds)}"`)

const numbers = fc.oneof(
  fc.integer().map(String),
  fc.maxSafeInteger().map(String),
  fc.bigInt().map(String),
  fc.double({ noDefaultInfinity: true, noNaN: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom(
    '0',
    '-0',
    '0.0',
    '1e5',
    '1E+5',
    '-2.50e-07',
    '999999999999999',
    '-999999999999999',
    '1000000000000000',
  ),
  fc.constantFrom('4294967296', '-4294967297', '2147483648', '-2147483649', '1e400', `1${'0'.repeat(40)}`),
)
const scalars = fc
  .oneof(quoted, numbers, fc.constantFrom('true', 'false', 'null'))
  .map((scalar): Spelled => ({ scalar }))

/** Every key on the way to a field, at any depth: most make look-alikes, some the real thing. */
const FIELD_KEYS = keysBelow(FIELD_TREE)

function keysBelow(node: FieldNode): string[] {
  return node.byLength.flat().flatMap((child) => (child ? [String(child.key), ...keysBelow(child)] : []))
}

const keys = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom(...FIELD_KEYS).map((key) => JSON.stringify(key)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(...FIELD_KEYS).map((key) => `"${escapeAll(key.slice(0, 1))}${key.slice(1)}"`),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('i', 'idd', 'Id', 'methof', 'param', '__proto__', '').map((key) => `"${key}"`),
  },
  { weight: 1, arbitrary: quoted },
)

const { document } = fc.letrec<{ document: Spelled; object: Spelled }>((tie) => ({
  document: fc.oneof(
    { maxDepth: 5 },
    scalars,
    { weight: 3, arbitrary: tie('object') },
    fc.record({ items: fc.array(tie('document'), { maxLength: 4 }), gap }),
  ),
  object: fc.record({ entries: fc.array(fc.tuple(keys, tie('document')), { maxLength: 7 }), gap }),
}))
const messages = fc.record({ entries: fc.array(fc.tuple(keys, document), { maxLength: 8 }), gap })
const documents: fc.Arbitrary<Spelled> = fc.oneof({ weight: 5, arbitrary: messages }, document)

function spell(value: Spelled): string {
  if ('scalar' in value) return value.scalar
  const { gap } = value
  const inside =
    'items' in value ? value.items.map(spell) : value.entries.map(([key, item]) => `${key}${gap}:${gap}${spell(item)}`)
  const [open, close] = 'items' in value ? ['[', ']'] : ['{', '}']
  return `${gap}${open}${gap}${inside.join(`${gap},${gap}`)}${gap}${close}${gap}`
}

const valid = documents.map((value) => Buffer.from(spell(value)))

/** A valid text with a few bytes changed, lost, doubled or added, or cut off: most are broken, in every way there is. */
const damaged = fc
  .tuple(
    valid,
    fc.array(fc.tuple(fc.nat(), fc.nat(3), fc.oneof(fc.nat(255), fc.constantFrom(...'{}[]",:\\eE+-.0\n'))), {
      maxLength: 3,
    }),
  )
  .map(([bytes, wounds]) => wounds.reduce<Buffer>((hurt, [at, how, what]) => wound(hurt, at, how, what), bytes))

function wound(bytes: Buffer, where: number, how: number, what: number | string): Buffer {
  const at = bytes.length === 0 ? 0 : where % bytes.length
  const byte = Buffer.from(typeof what === 'string' ? what : [what])
  if (how === 0) return Buffer.concat([bytes.subarray(0, at), byte, bytes.subarray(at + 1)])
  if (how === 1) return Buffer.concat([bytes.subarray(0, at), byte, bytes.subarray(at)])
  if (how === 2) return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)])
  return bytes.subarray(0, at)
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function parse(bytes: Buffer): { verdict: number; value?: unknown } {
  try {
    const value: unknown = JSON.parse(utf8.decode(bytes))
    return { verdict: isObject(value) ? VERDICT_OBJECT : VERDICT_OTHER, value }
  } catch {
    return { verdict: VERDICT_BROKEN }
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What every field is in the parsed value; absent ones are left out. */
function fieldsOf(value: unknown, node: FieldNode, found = new Map<number, unknown>()): Map<number, unknown> {
  for (const child of node.byLength.flat()) {
    const key = String(child?.key)
    if (child === undefined || !isObject(value) || !Object.hasOwn(value, key)) continue
    if (child.slot !== -1) found.set(child.slot, value[key])
    fieldsOf(value[key], child, found)
  }
  return found
}

function notedFields(bytes: Buffer, notes: Int32Array): Map<number, unknown> {
  const present = [...FIELD_NAMES.keys()].filter((slot) => notes[NOTE_STARTS + slot] !== -1)
  return new Map(
    present.map((slot) => [
      slot,
      JSON.parse(bytes.toString('utf8', notes[NOTE_STARTS + slot], notes[NOTE_ENDS + slot])),
    ]),
  )
}

/** The notes as far as they mean anything: of absent fields, of values that are no strings, there is nothing to compare. */
function meaningOf(bytes: Buffer, notes: Int32Array): unknown {
  const present = [...FIELD_NAMES.keys()].filter((slot) => notes[NOTE_STARTS + slot] !== -1)
  const fields = present.map((slot) => {
    const start = notes[NOTE_STARTS + slot]!
    return { slot, start, end: notes[NOTE_ENDS + slot], plain: bytes[start] === 0x22 ? notes[NOTE_PLAIN + slot] : 0 }
  })
  const isInteger = notes[NOTE_ID_IS_INTEGER] === 1
  const id = isInteger ? [notes[NOTE_ID_HIGH], notes[NOTE_ID_LOW]] : undefined
  return { fields, twice: notes[NOTE_TWICE], repeated: notes[NOTE_REPEATED], id }
}

function scanByTwin(bytes: Buffer, start = 0, end = bytes.length): { verdict: number; notes: Int32Array } {
  const notes = new Int32Array(NOTE_COUNT)
  return { verdict: scanLine(bytes, start, end, notes), notes }
}

function scanByMachine(bytes: Buffer, start = 0, end = bytes.length): { verdict: number; notes: Int32Array } {
  const verdict = scanFast(scanner!, bytes, start, end)
  return { verdict, notes: scanner!.notes }
}

/** The scanner may leave a line to its twin, else the two must agree. */
function expectAgreement(bytes: Buffer, start: number, end: number): void {
  const machine = scanByMachine(bytes, start, end)
  if (machine.verdict === VERDICT_UNSURE) return
  const twin = scanByTwin(bytes, start, end)
  expect(machine.verdict).toBe(twin.verdict)
  if (twin.verdict === VERDICT_OBJECT) expect(meaningOf(bytes, machine.notes)).toEqual(meaningOf(bytes, twin.notes))
}

const RUNS = { numRuns: 1000 }

describe('a line, by the twin and by the scanner', () => {
  it('is judged as JSON.parse judges it, whole or broken', () => {
    fc.assert(
      fc.property(fc.oneof(valid, damaged), (bytes) => {
        expect(scanByTwin(bytes).verdict).toBe(parse(bytes).verdict)
        expectAgreement(bytes, 0, bytes.length)
      }),
      RUNS,
    )
  })

  it('may nest deeply: every container is closed by its own kind, however many are open', () => {
    const depth = fc.oneof(fc.integer({ min: 60, max: 70 }), fc.integer({ min: 120, max: 400 }))
    const kinds = depth.chain((length) => fc.array(fc.boolean(), { minLength: length, maxLength: length }))
    fc.assert(
      fc.property(kinds, fc.option(fc.nat()), fc.boolean(), (objects, wrongAt, returns) => {
        const opened = objects.map((isOne) => (isOne ? '{"a":' : '[')).join('')
        const wrong = wrongAt === null ? -1 : wrongAt % objects.length
        const closed = objects.map((isOne, at) => (isOne === (at !== wrong) ? '}' : ']')).reverse()
        const inner = `${opened}1${closed.join('')}`
        const bytes = Buffer.from(returns ? `{"params":[${inner},${inner}],"id":1}` : inner)
        expect(scanByMachine(bytes).verdict).toBe(parse(bytes).verdict)
        expectAgreement(bytes, 0, bytes.length)
      }),
      RUNS,
    )
  })

  it('has its fields noted as JSON.parse finds them', () => {
    fc.assert(
      fc.property(valid, (bytes) => {
        const { verdict, value } = parse(bytes)
        if (verdict !== VERDICT_OBJECT) return
        expect(notedFields(bytes, scanByTwin(bytes).notes)).toEqual(fieldsOf(value, FIELD_TREE))
        expectAgreement(bytes, 0, bytes.length)
      }),
      RUNS,
    )
  })

  it('is read alike wherever it lies in a chunk and whatever surrounds it', () => {
    const junk = fc.oneof(
      fc.uint8Array({ maxLength: 80 }),
      fc.constantFrom([0xf0, 0x90], [0x22], [0x5c], [0x80, 0x80, 0x22]),
    )
    fc.assert(
      fc.property(fc.oneof(valid, damaged), junk, junk, fc.boolean(), (line, before, behind, isLent) => {
        const chunk = Buffer.concat([
          Buffer.from(before),
          Buffer.from('\n'),
          line,
          Buffer.from('\n'),
          Buffer.from(behind),
        ])
        const start = before.length + 1
        if (isLent) lend(chunk)
        if (isLent) scanByMachine(chunk, 0, start - 1)
        expectAgreement(chunk, start, start + line.length)
        lend(undefined)
        expect(scanByTwin(chunk, start, start + line.length).verdict).toBe(parse(line).verdict)
      }),
      RUNS,
    )
  })

  it('is UTF-8 or broken, as the decoder of the platform says', () => {
    const inside = fc.oneof(
      fc.integer({ min: 0x80, max: 0xbf }),
      fc.integer({ min: 0xc0, max: 0xff }),
      fc.constant(0x61),
    )
    const character = fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).map((text) => [...Buffer.from(text)])
    const text = fc.array(fc.oneof({ weight: 9, arbitrary: character }, { weight: 1, arbitrary: fc.tuple(inside) }), {
      maxLength: 40,
    })
    fc.assert(
      fc.property(text, (parts) => {
        const string = Buffer.from(parts.flat().filter((byte) => byte >= 0x20 && byte !== 0x22 && byte !== 0x5c))
        const bytes = Buffer.concat([Buffer.from('{"a":"'), string, Buffer.from('"}')])
        expect(scanByMachine(bytes).verdict).toBe(parse(bytes).verdict)
        expect(scanByTwin(bytes).verdict).toBe(parse(bytes).verdict)
      }),
      RUNS,
    )
  })

  it('counts as having a routing field twice when one does stand twice', () => {
    fc.assert(
      fc.property(messages, (message) => {
        const bytes = Buffer.from(spell(message))
        expect(scanByTwin(bytes).notes[NOTE_TWICE] !== -1).toBe(hasTwice(message))
      }),
      RUNS,
    )
  })
})

function hasTwice(message: Spelled): boolean {
  const top = entriesOf(message)
  const routing = FIELD_NAMES.slice(0, ONCE_BELOW).filter((name) => name !== 'paramsSessionId')
  if (routing.some((name) => top.filter(([key]) => key === name).length > 1)) return true
  const params = top.find(([key]) => key === 'params')?.[1]
  return params !== undefined && entriesOf(params).filter(([key]) => key === 'sessionId').length > 1
}

function entriesOf(value: Spelled): (readonly [string, Spelled])[] {
  return 'entries' in value ? value.entries.map(([key, item]) => [JSON.parse(key) as string, item] as const) : []
}

describe('an id', () => {
  it('is a key by its value, not by its spelling', () => {
    const envelope = new Envelope()
    const keyOf = (id: string): unknown => {
      const line = Buffer.from(`{"id":${id},"method":"m"}`)
      expect(envelope.read(line, 0, line.length)).toBe(SHAPE.request)
      return envelope.key(FIELD.id)
    }
    fc.assert(
      fc.property(fc.oneof(numbers, quoted), (id) => {
        const value: unknown = JSON.parse(id)
        const isHuge = typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(id)
        expect(keyOf(id)).toBe(isHuge ? BigInt(id) : value)
      }),
      RUNS,
    )
  })
})
