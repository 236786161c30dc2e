import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Envelope, SHAPE } from './envelope.ts'
import { FIELD } from './fields.ts'
import { LineSplitter } from './frame.ts'
import { makeReadMemory } from './scanner.ts'

const bytes = fc
  .array(fc.oneof({ weight: 5, arbitrary: fc.nat(255) }, { weight: 1, arbitrary: fc.constant(10) }), { maxLength: 200 })
  .map((list) => Buffer.from(list))
const cuts = fc.array(fc.nat(200), { maxLength: 12 })

function chunksOf(stream: Buffer, at: readonly number[]): Buffer[] {
  const inside = at.map((cut) => Math.min(cut, stream.length)).sort((a, b) => a - b)
  return [0, ...inside].map((start, i) => Buffer.from(stream.subarray(start, inside[i] ?? stream.length)))
}

/** Splits the stream as it comes; `pauses` tells at which lines the sink asks for a pause, in turn. */
function linesOf(splitter: LineSplitter, chunks: readonly Buffer[], pauses: readonly boolean[]): string[] {
  const lines: string[] = []
  const sink = (line: Buffer, start: number, end: number): boolean => {
    expect(line[end]).toBe(10)
    lines.push(line.toString('latin1', start, end))
    return pauses.length === 0 || !pauses[lines.length % pauses.length]
  }
  for (const chunk of chunks) {
    let taken = splitter.push(chunk, 0, sink)
    while (taken < chunk.length) taken = splitter.push(chunk, taken, sink)
    chunk.fill(0x7a)
  }
  splitter.finish(sink)
  return lines
}

it('any split of the bytes, with any pauses, gives the same lines', () => {
  fc.assert(
    fc.property(bytes, cuts, fc.array(fc.boolean(), { maxLength: 5 }), (stream, at, pauses) => {
      const expected = stream.toString('latin1').split('\n')
      if (expected.at(-1) === '') expected.pop()
      expect(linesOf(new LineSplitter(1000), chunksOf(stream, at), pauses)).toEqual(expected)
    }),
  )
})

it('8.2 lines up to the limit come, the first one over it ends the stream, however the bytes are split', () => {
  fc.assert(
    fc.property(bytes, cuts, fc.integer({ min: 1, max: 30 }), (stream, at, limit) => {
      const all = stream.toString('latin1').split('\n')
      const over = all.findIndex((line) => line.length > limit)
      const expected = over === -1 ? all : all.slice(0, over)
      if (over === -1 && expected.at(-1) === '') expected.pop()
      const splitter = new LineSplitter(limit)
      const lines: string[] = []
      const sink = (line: Buffer, start: number, end: number): boolean =>
        lines.push(line.toString('latin1', start, end)) > 0
      for (const chunk of chunksOf(stream, at)) splitter.push(chunk, 0, sink)
      splitter.finish(sink)
      expect(splitter.overflowed).toBe(over !== -1)
      expect(lines).toEqual(expected)
    }),
  )
})

it('what is read of a line is what it holds, in a stream of chunks that all come in the same buffer', () => {
  const sessions = fc.array(fc.string({ unit: 'binary', maxLength: 200 }), { minLength: 1, maxLength: 12 })
  fc.assert(
    fc.property(sessions, fc.integer({ min: 30, max: 4000 }), (names, size) => {
      const stream = Buffer.from(
        names.map((name, id) => `${JSON.stringify({ id, method: 'm', sessionId: name })}\n`).join(''),
      )
      const envelope = new Envelope()
      const splitter = new LineSplitter(1 << 20)
      const buffer = Buffer.alloc(size)
      const seen: unknown[] = []
      const sink = (line: Buffer, start: number, end: number): boolean => {
        expect(envelope.read(line, start, end)).toBe(SHAPE.request)
        seen.push([envelope.key(FIELD.id), envelope.text(FIELD.sessionId)])
        return true
      }
      for (let at = 0; at < stream.length; at += size) {
        buffer.fill(0x0a)
        stream.copy(buffer, 0, at)
        splitter.push(buffer.subarray(0, Math.min(size, stream.length - at)), 0, sink)
      }
      expect(seen).toEqual(names.map((name, id) => [id, name]))
    }),
  )
})

it('lines that are read or split in between do not pass for lines of the chunk', () => {
  const names = fc.array(fc.string({ maxLength: 60 }), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(
      names,
      fc.array(fc.constantFrom('nothing', 'read', 'split'), { minLength: 1, maxLength: 4 }),
      (all, between) => {
        const chunk = (prefix: string) =>
          Buffer.from(
            all.map((name, id) => `${JSON.stringify({ id, method: 'm', sessionId: prefix + name })}\n`).join(''),
          )
        const envelope = new Envelope()
        const seen: unknown[] = []
        const take = (line: Buffer, start: number, end: number): boolean => {
          expect(envelope.read(line, start, end)).toBe(SHAPE.request)
          seen.push([envelope.key(FIELD.id), envelope.text(FIELD.sessionId)])
          return true
        }
        const other = chunk('other ')
        new LineSplitter(1 << 20).push(chunk('a '), 0, (line, start, end) => {
          const what = between[seen.length % between.length]
          if (what === 'read') new Envelope().read(other, 0, other.indexOf(10))
          if (what === 'split')
            new LineSplitter(1 << 20).push(other, 0, (bytes, at, behind) => new Envelope().read(bytes, at, behind) > 0)
          return take(line, start, end)
        })
        expect(seen).toEqual(all.map((name, id) => [id, `a ${name}`]))
      },
    ),
  )
})

it('lines that are read ahead are the lines there are, and say what they say', () => {
  const id = fc.oneof(fc.integer(), fc.string({ maxLength: 5 }))
  const message = fc.record({ id, method: fc.constantFrom('m', 'é'), sessionId: fc.string({ unit: 'binary' }) })
  const text = fc.oneof(
    { weight: 4, arbitrary: message.map((value) => JSON.stringify(value)) },
    // An end of line where there may be white space parts a message in two that are none.
    message.map((value) => JSON.stringify(value, null, 1)),
    message.map((value) => `${JSON.stringify(value)} \t`),
    message.map((value) => ` ${JSON.stringify(value)}`),
    message.map((value) => `${JSON.stringify(value)}\r`),
    fc.tuple(message, fc.nat(40)).map(([value, cut]) => JSON.stringify(value).slice(0, cut)),
    message.map((value) => JSON.stringify({ ...value, params: 'x'.repeat(5000) })),
    fc.constantFrom('', '[]', '{}', '{}{}', '{"id":1,"\\u006dethod":"m"}', '\r'),
  )
  fc.assert(
    fc.property(fc.array(text, { maxLength: 30 }), fc.integer({ min: 30, max: 40_000 }), (lines, size) => {
      const stream = Buffer.from(`${lines.join('\n')}\n`)
      const memory = makeReadMemory()
      const read = (isRouted: boolean): unknown[] => {
        const seen: unknown[] = []
        const splitter = new LineSplitter(1 << 20, isRouted)
        const envelope = new Envelope()
        for (let at = 0; at < stream.length; at += size) {
          const chunk = memory.subarray(0, stream.copy(memory, 0, at, at + size))
          splitter.push(chunk, 0, (bytes, start, end) => {
            const shape = envelope.read(bytes, start, end)
            const isMessage = shape === SHAPE.request || shape === SHAPE.notification
            const said = isMessage ? [envelope.key(FIELD.id), envelope.text(FIELD.sessionId)] : []
            envelope.release()
            seen.push([bytes.utf8Slice(start, end), shape, ...said])
            return true
          })
        }
        return seen
      }
      const seen = read(true)
      expect(seen.map((row) => (row as unknown[])[0])).toEqual(stream.toString().split('\n').slice(0, -1))
      expect(seen).toEqual(read(false))
    }),
  )
})
