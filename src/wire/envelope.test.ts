import { describe, expect, it } from 'vitest'
import { Envelope, SHAPE, type Shape } from './envelope.ts'
import { FIELD, type FieldName } from './fields.ts'
import { MAX_TEXT_BYTES } from './layout.ts'

const envelope = new Envelope()

function read(line: string | Buffer): Shape {
  const bytes = Buffer.from(line)
  return envelope.read(bytes, 0, bytes.length)
}

const LONG = 'x'.repeat(1024)

describe('3.5 a message is', () => {
  it.each([
    ['a request', '{"id":1,"method":"m"}', SHAPE.request],
    ['a request with a string id', '{"id":"a","method":"m","params":{}}', SHAPE.request],
    ['a request with an empty id', '{"id":"","method":"m"}', SHAPE.request],
    ['a request with any number as id', '{"id":-1.5e3,"method":"m"}', SHAPE.request],
    ['a request with null as result and error', '{"id":1,"method":"m","result":null,"error":null}', SHAPE.request],
    ['a request whose method is empty', '{"id":1,"method":""}', SHAPE.request],
    ['a request with white space everywhere', ' \t{ "id" : 1 ,\r"method" : "m" } \r', SHAPE.request],
    ['a notification', '{"method":"m"}', SHAPE.notification],
    ['a notification with params of any type', '{"method":"m","params":[{"id":1}]}', SHAPE.notification],
    ['a response with a result', '{"id":1,"result":{}}', SHAPE.response],
    ['a response with null as result', '{"id":1,"result":null}', SHAPE.response],
    ['a response with an error', '{"id":1,"error":{"code":1}}', SHAPE.response],
    ['a response with both', '{"id":1,"result":1,"error":2}', SHAPE.response],
    ['an error response whose id is null', '{"id":null,"error":{}}', SHAPE.response],
    ['a message with fields nobody knows', '{"x":[],"id":1,"y":{"id":2},"method":"m"}', SHAPE.request],
  ])('%s', (_name, line, shape) => {
    expect(read(line)).toBe(shape)
  })
})

describe('4.3 a bad envelope is', () => {
  it.each([
    ['a batch', '[{"id":1,"method":"m"}]', 'object'],
    ['a scalar', '5', 'object'],
    ['a string', '"{}"', 'object'],
    ['null', 'null', 'object'],
    ['an object without method, result and error', '{"id":1}', 'method, a result or an error'],
    ['an empty object', '{}', 'method, a result or an error'],
    ['a method with a result', '{"id":1,"method":"m","result":0}', 'no result'],
    ['a method with an error', '{"id":1,"method":"m","error":{}}', 'no error'],
    ['an id of null in a request', '{"id":null,"method":"m"}', 'id must'],
    ['an id of null in a result', '{"id":null,"result":1}', 'id must'],
    ['an id of null where both result and error are null', '{"id":null,"result":null,"error":null}', 'id must'],
    ['a response without id', '{"result":1}', 'has an id'],
    ['an id that is an object', '{"id":{},"method":"m"}', 'id must'],
    ['an id that is true', '{"id":true,"result":1}', 'id must'],
    ['a method that is no string', '{"id":1,"method":5}', 'method must'],
    ['a method of null', '{"id":1,"method":null,"result":1}', 'method must'],
    ['a session that is no string', '{"method":"m","sessionId":5}', 'sessionId must'],
    ['a session of null', '{"method":"m","sessionId":null}', 'sessionId must'],
    ['a pool that is no string', '{"method":"m","pool":["a"]}', 'pool must'],
    ['an id twice', '{"id":1,"id":1,"method":"m"}', 'id stands twice'],
    ['an id twice, once escaped', '{"id":1,"\\u0069d":1,"method":"m"}', 'id stands twice'],
    ['a method twice', '{"method":"m","method":"m"}', 'method stands twice'],
    ['a session twice', '{"method":"m","sessionId":"a","sessionId":"b"}', 'sessionId stands twice'],
    ['params twice', '{"method":"m","params":{},"params":{}}', 'params stands twice'],
    ['a session in params twice', '{"method":"m","params":{"sessionId":"a","sessionId":"a"}}', 'stands twice'],
  ])('%s', (_name, line, problem) => {
    expect(read(line)).toBe(SHAPE.bad)
    expect(envelope.problem).toContain(problem)
  })
})

describe('4.3 not JSON is', () => {
  it.each([
    ['nothing', ''],
    ['white space', '  \t'],
    ['junk', 'hello'],
    ['half a message', '{"id":1,"method":"m"'],
    ['an open string', '{"id":1,"method":"m'],
    ['two messages', '{"method":"m"}{"method":"m"}'],
    ['a message and junk', '{"method":"m"} x'],
    ['a trailing comma', '{"method":"m",}'],
    ['a trailing comma in a list', '{"method":"m","params":[1,]}'],
    ['a single quote', "{'method':'m'}"],
    ['a bare key', '{method:"m"}'],
    ['a comment', '{"method":"m"/**/}'],
    ['a leading zero', '{"id":01,"method":"m"}'],
    ['a plus', '{"id":+1,"method":"m"}'],
    ['a point without digits', '{"id":1.,"method":"m"}'],
    ['an exponent without digits', '{"id":1e,"method":"m"}'],
    ['NaN', '{"id":NaN,"method":"m"}'],
    ['a literal that goes on', '{"method":"m","params":truey}'],
    ['a literal that is cut', '{"method":"m","params":nul}'],
    ['a wrong bracket', '{"method":"m","params":[1}}'],
    ['a control character in a string', '{"method":"m\u0001"}'],
    ['an unknown escape', '{"method":"\\x41"}'],
    ['a short escape', '{"method":"\\u004"}'],
    ['a byte order mark', '\ufeff{"method":"m"}'],
    ['a space that is none', '{\u00a0"method":"m"}'],
    ['a zero', '{"method":"m"}\u0000'],
  ])('%s', (_name, line) => {
    expect(read(line)).toBe(SHAPE.notJson)
  })

  it.each([
    ['a byte that never occurs', [0xff]],
    ['a continuation alone', [0x80]],
    ['a character that is cut', [0xe2, 0x82]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['an overlong form of three', [0xe0, 0x80, 0x80]],
    ['an overlong form of four', [0xf0, 0x80, 0x80, 0x80]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['what lies beyond Unicode', [0xf4, 0x90, 0x80, 0x80]],
  ])('invalid UTF-8: %s, in a value and in a key, at every offset', (_name, wrong) => {
    for (let before = 0; before < 70; before++) {
      const pad = Buffer.from('a'.repeat(before))
      const parts = (head: string, tail: string) =>
        Buffer.concat([Buffer.from(head), pad, Buffer.from(wrong), Buffer.from(tail)])
      expect(read(parts('{"method":"', '"}'))).toBe(SHAPE.notJson)
      expect(read(parts('{"method":"m","', '":1}'))).toBe(SHAPE.notJson)
      expect(read(parts('{"method":"é","params":[{"a":{"', '":1}}]}'))).toBe(SHAPE.notJson)
    }
  })
})

describe('4.3 the id of a message that is refused', () => {
  it.each([
    ['{"id":7}', '7'],
    ['{"id":1e2,"method":1}', '1e2'],
    ['{"id":"\\u0041é"}', '"\\u0041é"'],
    ['{"id":{}}', 'null'],
    ['{"id":null}', 'null'],
    ['{}', 'null'],
    ['{"id":1,"id":2}', 'null'],
    ['[]', 'null'],
    [`{"id":"${LONG}y"}`, 'null'],
  ])('%s', (line, spelling) => {
    expect(read(line)).toBe(SHAPE.bad)
    expect(envelope.idSpelling()).toBe(spelling)
  })
})

describe('4.2.2 ids and sessions of more than 1 KiB', () => {
  it.each([
    ['one under', 'x'.repeat(1023), false],
    ['at', LONG, false],
    ['one over', `${LONG}x`, true],
  ])('%s the limit', (_name, text, isOver) => {
    expect(read(`{"id":"${text}","method":"m"}`)).toBe(isOver ? SHAPE.bad : SHAPE.request)
    expect(read(`{"id":${text.replaceAll('x', '1')},"method":"m"}`)).toBe(isOver ? SHAPE.bad : SHAPE.request)
    expect(read(`{"id":"${text}","result":1}`)).toBe(isOver ? SHAPE.bad : SHAPE.response)
    expect(read(`{"method":"m","sessionId":"${text}"}`)).toBe(isOver ? SHAPE.bad : SHAPE.notification)
    expect(read(`{"method":"m","params":{"sessionId":"${text}"}}`)).toBe(SHAPE.notification)
    expect(envelope.hasBadParamsSession).toBe(isOver)
  })

  it('a session in params that is no string is seen, one that is absent is not missed', () => {
    read('{"method":"m","params":{"sessionId":null}}')
    expect(envelope.hasBadParamsSession).toBe(true)
    read('{"method":"m","params":{"a":{"sessionId":null}}}')
    expect(envelope.hasBadParamsSession).toBe(false)
  })
})

describe('4.2.2 fields are found', () => {
  const has = (line: string, field: FieldName): boolean => {
    expect(read(line)).toBeGreaterThan(SHAPE.bad)
    return envelope.has(FIELD[field])
  }

  it('by the value of their key', () => {
    expect(has('{"\\u006dethod":"m","sess\\u0069onId":"S\\u0041"}', 'sessionId')).toBe(true)
    expect(envelope.text(FIELD.sessionId)).toBe('SA')
    expect(envelope.text(FIELD.method)).toBe('m')
  })

  it('never inside what is not on their path', () => {
    for (const line of [
      '{"method":"m","x":{"sessionId":"a"},"params":[{"sessionId":"a"}]}',
      '{"method":"\\"sessionId\\":\\"a\\"","params":{"params":{"x":{"sessionId":"a"}},"text":"{\\"sessionId\\":1}"}}',
      '{"method":"m","SessionId":"a","sessionI":"a","sessionIdd":"a","":"a"}',
    ]) {
      for (const field of ['sessionId', 'paramsSessionId', 'innerSessionId'] as const)
        expect(has(line, field)).toBe(false)
    }
  })

  it('below long keys, and below objects that look alike', () => {
    expect(
      has('{"method":"m","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}', 'metaTaskId'),
    ).toBe(true)
    expect(
      has('{"method":"m","params":{"_meta":{"io.modelcontextprotocol/related-tasx":{"taskId":"t"}}}}', 'metaTaskId'),
    ).toBe(false)
    expect(
      has('{"id":1,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":4}}}', 'resultSubscriptionId'),
    ).toBe(true)
    expect(has('{"id":1,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":4}}}', 'metaSubscriptionId')).toBe(
      false,
    )
  })

  it('in the last of two objects only, as every JSON library reads it', () => {
    expect(has('{"method":"m","params":{"_meta":{"progressToken":1},"_meta":{"x":2}}}', 'metaProgressToken')).toBe(
      false,
    )
    expect(has('{"method":"m","params":{"_meta":{"progressToken":1},"_meta":"x"}}', 'metaProgressToken')).toBe(false)
    expect(has('{"method":"m","params":{"update":{"sessionId":"a"},"update":{}}}', 'childSessionId')).toBe(false)
    expect(has('{"method":"m","params":{"_meta":{},"_meta":{"progressToken":1}}}', 'metaProgressToken')).toBe(true)
  })

  it('with their type, their place and their spelling', () => {
    const line = '{"method":"m","params":{"requestId":"7","progressToken":8,"uri":null,"level":[1, 2]},"trace_id":"é"}'
    read(line)
    const types = ['requestId', 'progressToken', 'uri', 'level', 'cursor'] as const
    expect(types.map((name) => envelope.typeOf(FIELD[name]))).toEqual(['string', 'number', 'null', 'other', 'absent'])
    expect(envelope.spelling(FIELD.level).toString()).toBe('[1, 2]')
    expect(envelope.startOf(FIELD.requestId)).toBe(line.indexOf('"7"'))
    expect(envelope.endOf(FIELD.requestId)).toBe(line.indexOf('"7"') + 3)
    expect([envelope.key(FIELD.requestId), envelope.key(FIELD.progressToken)]).toEqual(['7', 8])
    expect([envelope.key(FIELD.uri), envelope.key(FIELD.level), envelope.text(FIELD.level)]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
    expect(envelope.text(FIELD.traceId)).toBe('é')
  })
})

describe('4.2.3 an id that a JSON library may respell', () => {
  it.each([
    ['1', false],
    ['-1', false],
    ['0', false],
    ['999999999999999', false],
    ['"a"', false],
    ['"\\u0041"', false],
    ['"\\ud83d\\ude00"', false],
    ['-0', true],
    ['1.0', true],
    ['1.5', true],
    ['1e2', true],
    ['9007199254740993', true],
    ['"\\ud800"', true],
    ['"a\\udc00b"', true],
  ])('%s: %s', (id, isOdd) => {
    read(`{"id":${id},"method":"m","params":{"requestId":${id}}}`)
    expect(envelope.isOdd(FIELD.id)).toBe(isOdd)
    expect(envelope.isOdd(FIELD.requestId)).toBe(isOdd)
  })
})

describe('a line of any size and depth', () => {
  const DEPTH = 100_000
  it.each([63, 64, 65, 66, DEPTH])('nested %i levels deep', (depth) => {
    const nested = (open: string, close: string) => `${open.repeat(depth)}1${close.repeat(depth)}`
    expect(read(`{"method":"m","params":${nested('[', ']')}}`)).toBe(SHAPE.notification)
    expect(read(`{"method":"m","params":${nested('{"params":', '}')}}`)).toBe(SHAPE.notification)
    expect(read(`{"method":"m","params":${nested('[{"id":', '}]')}}`)).toBe(SHAPE.notification)
    expect(read(`{"method":"m","params":${nested('[', ']').slice(0, -1)}}`)).toBe(SHAPE.notJson)
    expect(read(`{"method":"m","params":${nested('[{"id":', ']}')}}`)).toBe(SHAPE.notJson)
  })

  const MIB = 1024 * 1024
  it.each([63, 64, 65, 127, 128, 129, 4096, 65_536, MIB - 1, MIB, MIB + 1, 3 * MIB])('of %i bytes', (size) => {
    for (const fill of ['x', 'é', '\\n', '\\"']) {
      const room = size - Buffer.byteLength('{"id":5,"text":"","result":1}')
      const count = Math.floor(room / Buffer.byteLength(fill))
      const head = `{"id":5,"text":"${fill.repeat(count)}${'x'.repeat(room - count * Buffer.byteLength(fill))}","result":`
      const line = Buffer.from(`${head}1}`)
      expect(line.length).toBe(size)
      expect(read(line)).toBe(SHAPE.response)
      expect(envelope.key(FIELD.id)).toBe(5)
      expect(envelope.startOf(FIELD.result)).toBe(size - 2)
      expect(read(line.subarray(0, -1))).toBe(SHAPE.notJson)
    }
  })
})

it('two readers do not disturb each other', () => {
  const [a, b] = [new Envelope(), new Envelope()]
  const [one, two] = [Buffer.from('{"id":1,"method":"one"}'), Buffer.from('{"id":"two","result":2}')]
  a.read(one, 0, one.length)
  b.read(two, 0, two.length)
  expect([a.key(FIELD.id), a.text(FIELD.method), a.has(FIELD.result)]).toEqual([1, 'one', false])
  expect([b.key(FIELD.id), b.text(FIELD.method), b.has(FIELD.result)]).toEqual(['two', undefined, true])
  a.read(two, 0, two.length)
  expect([b.key(FIELD.id), b.startOf(FIELD.result), a.key(FIELD.id)]).toEqual(['two', 21, 'two'])
})

it('nor does one that reads a line which only the twin can, after a short one', () => {
  const [a, b] = [new Envelope(), new Envelope()]
  const short = Buffer.from('{"id":1,"method":"one"}')
  const long = Buffer.from(`{"id":2,"method":"two","params":"${'x'.repeat(MAX_TEXT_BYTES)}"}`)
  a.read(short, 0, short.length)
  a.release()
  a.read(long, 0, long.length)
  b.read(short, 0, short.length)
  expect([a.key(FIELD.id), a.text(FIELD.method), b.key(FIELD.id)]).toEqual([2, 'two', 1])
})

it.each([
  ['{"id":1,"method":"m","params":{"name":"a"}}', false],
  ['{"id":1,"method":"m","params":{"name":"a","name":"b"}}', true],
  ['{"id":1,"method":"m","params":{"name":"a","n\\u0061me":"b"}}', true],
  ['{"id":1,"method":"m","params":{"name":"a","inner":{"name":"b"}}}', false],
  ['{"id":1,"method":"m","params":{"uri":"a","uri":"b","name":"c"}}', false],
])('a field that may stand twice is known to: %s', (text, isRepeated) => {
  const envelope = new Envelope()
  expect(envelope.read(Buffer.from(text), 0, Buffer.byteLength(text))).toBe(SHAPE.request)
  expect(envelope.isRepeated(FIELD.name)).toBe(isRepeated)
})
