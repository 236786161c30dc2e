import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Envelope, SHAPE } from './envelope.ts'
import { FIELD, FIELD_NAMES } from './fields.ts'
import { READ_BYTES } from './layout.ts'
import { lend, makeReadMemory } from './scanner.ts'

const id = fc.oneof(fc.integer(), fc.string({ maxLength: 12 }))
const message = fc.record(
  { jsonrpc: fc.constant('2.0'), id, method: fc.string(), sessionId: fc.string(), params: fc.jsonValue() },
  { requiredKeys: ['jsonrpc'] },
)
const line = fc.oneof(
  message.map((value) => JSON.stringify(value)),
  message.chain((value) => fc.nat(200).map((cut) => JSON.stringify(value).slice(0, cut))),
  fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\n', ' ')),
)

/** Everything that can be asked of a line. */
function readAll(bytes: Buffer, start: number, end: number): unknown {
  const envelope = new Envelope()
  const shape = envelope.read(bytes, start, end)
  if (shape === SHAPE.notJson) return shape
  const fields = FIELD_NAMES.map((name) => FIELD[name])
  return {
    shape,
    problem: envelope.problem,
    places: fields.map(
      (field) => envelope.has(field) && [envelope.startOf(field) - start, envelope.endOf(field) - start],
    ),
    key: envelope.has(FIELD.id) ? envelope.key(FIELD.id) : undefined,
  }
}

test('a line that lies where sockets are read is read as anywhere else, and left as it was', () => {
  const memory = makeReadMemory()
  expect(memory.length).toBe(READ_BYTES)
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 8 }), fc.boolean(), fc.nat(255), (lines, isLast, rest) => {
      const sent = Buffer.from(`${lines.join('\n')}\n`)
      const at = isLast ? READ_BYTES - sent.length : 0
      memory.fill(rest)
      sent.copy(memory, at)
      const chunk = memory.subarray(at, at + sent.length)
      let start = 0
      for (let end = sent.indexOf(10); end !== -1; end = sent.indexOf(10, start)) {
        lend(chunk)
        const inPlace = readAll(chunk, start, end)
        lend(undefined)
        expect(inPlace).toEqual(readAll(sent, start, end))
        start = end + 1
      }
      expect(chunk.equals(sent)).toBe(true)
    }),
  )
})
