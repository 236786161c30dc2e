import fc from 'fast-check'
import { expect, test } from 'vitest'
import { messagesOf, readIncoming, readOutgoing } from './message.ts'

const asked = { id: 7, idSpelling: '7' } as const
const read = (text: string, of: { id: number; idSpelling: string } | undefined = asked) =>
  readIncoming(Buffer.from(text), of)

test.each([
  ['{"jsonrpc":"2.0","id":7,"result":{}}', 'answer'],
  ['{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}', 'answer'],
  ['{"jsonrpc":"2.0","id":"7","result":{}}', 'other-answer'],
  ['{"jsonrpc":"2.0","id":8,"result":{}}', 'other-answer'],
  ['{"jsonrpc":"2.0","id":7,"method":"m"}', 'message'],
  ['{"jsonrpc":"2.0","method":"m"}', 'message'],
  ['{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}', 'answer'],
  ['{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}', 'answer'],
  ['{"jsonrpc":"2.0","id":null,"result":{}}', 'junk'],
  ['{"error":"unauthorized"}', 'junk'],
  ['{"error":{"message":"no code"}}', 'junk'],
  ['{"jsonrpc":"2.0","id":7}', 'junk'],
  ['[]', 'junk'],
  ['null', 'junk'],
  ['{"id":7,"result":1', 'junk'],
])('%s is %s', (text, kind) => expect(read(text).kind).toBe(kind))

test('an error that is nobody’s is nobody’s where nobody asked', () => {
  expect(readIncoming(Buffer.from('{"error":{"code":1,"message":"x"}}'), undefined).kind).toBe('junk')
})

test('whatever an upstream sends, what is passed on is one line of JSON, and an answer has the id that was asked for', () => {
  const part = fc.constantFrom(
    '{',
    '}',
    '"id"',
    ':',
    ',',
    '7',
    '"7"',
    '"result"',
    '"error"',
    '{"code":1}',
    'null',
    '"method"',
    '"m"',
    '[',
    ']',
    '\n',
  )
  const text = fc.oneof(
    fc.array(part).map((parts) => parts.join('')),
    fc.json(),
    fc
      .record(
        { id: fc.constantFrom(7, '7', null, 1.5), result: fc.jsonValue(), error: fc.jsonValue(), method: fc.string() },
        { requiredKeys: [] },
      )
      .map((each) => JSON.stringify(each)),
  )
  fc.assert(
    fc.property(text, (sent) => {
      const { kind, line } = read(sent)
      if (kind === 'junk') return
      expect(line.at(-1)).toBe(0x0a)
      const message = JSON.parse(line.toString())
      if (kind === 'answer') expect(message.id).toBe(7)
    }),
  )
})

test('an array is its messages, in order; anything else is itself', () => {
  const texts = (text: string) => messagesOf(Buffer.from(text)).map(String)
  expect(texts('[{"id":1,"result":1} , {"method":"m"}]')).toEqual(['{"id":1,"result":1}', '{"method":"m"}'])
  expect(texts('[1')).toEqual(['[1'])
  expect(texts('{"a":[1]}')).toEqual(['{"a":[1]}'])
})

test('of what goes out is known what the way depends on', () => {
  const line = Buffer.from(
    'xx{"jsonrpc":"2.0","id":"a","method":"resources/read","params":{"uri":"u","_meta":{"io.modelcontextprotocol/protocolVersion":"v"}}}\n',
  )
  expect(readOutgoing(line, 2, line.length - 1)).toMatchObject({
    kind: 'request',
    method: 'resources/read',
    id: 'a',
    idSpelling: '"a"',
    version: 'v',
    uri: 'u',
  })
  expect(readOutgoing(Buffer.from('{"id":1}'), 0, 8)).toBeUndefined()
})
