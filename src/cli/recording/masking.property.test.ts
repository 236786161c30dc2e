import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Envelope } from '../../wire/envelope.ts'
import { FIELD, FIELD_NAMES } from '../../wire/fields.ts'
import { maskBeginning, maskLine } from './masking.ts'

const KEYS = [
  'id',
  'method',
  'sessionId',
  'pool',
  'params',
  'result',
  'error',
  '_meta',
  'progressToken',
  'secret',
  'text',
]
const key = fc.constantFrom(...KEYS)
const scalar = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.boolean(),
  fc.constant(null),
)
const message = fc.dictionary(key, fc.oneof(scalar, fc.dictionary(key, scalar), fc.array(scalar)))

/** What a router can see of a line. */
function seen(line: Buffer): unknown[] {
  const envelope = new Envelope()
  const shape = envelope.read(line, 0, line.length)
  const fields = FIELD_NAMES.filter((name) => ['string', 'number'].includes(envelope.typeOf(FIELD[name])))
  return [shape, ...fields.map((name) => [name, envelope.spelling(FIELD[name]).toString()])]
}

/** Routing fields that are texts or numbers; `result` and its like hold payload. */
const PAYLOAD = new Set(['params', 'result', 'error', 'meta'])
function routing(line: Buffer): unknown[] {
  return seen(line).filter((entry) => !Array.isArray(entry) || !PAYLOAD.has(entry[0] as string))
}

test('a masked line is as long, is JSON as well, and shows a router the same', () => {
  fc.assert(
    fc.property(message, (value) => {
      const line = Buffer.from(JSON.stringify(value))
      const masked = maskLine(line)
      expect(masked.length).toBe(line.length)
      expect(() => JSON.parse(masked.toString())).not.toThrow()
      expect(routing(masked)).toEqual(routing(line))
      expect(maskLine(masked)).toEqual(masked)
    }),
  )
})

test('a line that is not JSON stays none, and a beginning keeps its length', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const line = Buffer.from(bytes.filter((byte) => byte !== 10))
      expect(maskLine(line).length).toBe(line.length)
      expect(seen(maskLine(line))[0]).toBe(seen(line)[0])
      expect(maskBeginning(line).length).toBe(line.length)
    }),
  )
})

test('no text or number beside the routing fields is left', () => {
  const line =
    '{"id":7,"method":"tools/call","params":{"password":"hunter2","n":42,"list":["abc"],"\\u0073ecret":"\\u0041é"},"result":"plain"}'
  const masked = maskLine(Buffer.from(line)).toString()
  expect(masked).toContain('"id":7,"method":"tools/call"')
  for (const secret of ['hunter2', 'password', '42', 'abc', '0041', 'é', 'plain']) expect(masked).not.toContain(secret)
})

test('the id of a line that was too long can still be seen', () => {
  expect(maskBeginning(Buffer.from('{"id":"r1","params":{"data":"abcdefgh')).toString()).toBe(
    '{"id":"r1","params":{"xxxx":"xxxxxxxx',
  )
  expect(maskBeginning(Buffer.from('{"\\q":"abc')).toString()).toBe('{"\\q":"xxx')
})
