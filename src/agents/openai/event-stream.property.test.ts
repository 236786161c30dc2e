import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { type Body, EndpointLost, maxEventChars, readEvents, readText } from './event-stream.ts'
import { Watch } from './watch.ts'

const runs = { numRuns: 200 }

function bodyOf(chunks: readonly Uint8Array[], endsWith?: Error): Body {
  const rest = [...chunks]
  return {
    getReader: () => ({
      read: async () => {
        const value = rest.shift()
        if (value === undefined && endsWith) throw endsWith
        return value === undefined ? { done: true } : { done: false, value }
      },
    }),
  }
}

function splitAt(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end))
}

async function eventsOf(body: Body): Promise<string[]> {
  const watch = new Watch(new AbortController().signal, 60_000)
  const events: string[] = []
  for await (const batch of readEvents(body, watch)) events.push(...batch)
  return events
}

const bytes = (text: string) => new TextEncoder().encode(text)
const eventsIn = (text: string) => eventsOf(bodyOf([bytes(text)]))

describe('event stream', () => {
  it.each([
    ['with a space', 'data: a\n\n', ['a']],
    ['without a space', 'data:a\n\n', ['a']],
    ['with carriage returns', 'data: a\r\n\r\ndata: b\r\n\r\n', ['a', 'b']],
    ['with data in several lines', 'data: {"a":\ndata: 1}\n\n', ['{"a":\n1}']],
    ['with comments and other fields', ': hello\n\nevent: x\nid: 7\nretry: 5\ndata: a\n\n: bye\n\n', ['a']],
    ['with a byte order mark', '\ufeffdata: a\n\n', ['a']],
    ['without a blank line at its end', 'data: a\n\ndata: b\n', ['a', 'b']],
    ['without a newline at its end', 'data: a\n\ndata: b', ['a', 'b']],
    ['with a lone carriage return at its end', 'data: a\r', ['a']],
    ['with nothing in it', '', []],
    ['with comments only', ': a\n\n: b\n', []],
  ])('is read %s', async (_, text, events) => {
    expect(await eventsIn(text)).toEqual(events)
  })

  it('is read alike wherever it is cut, also inside a character', async () => {
    verifies('O7-cut')
    const data = fc.string({ unit: 'grapheme' }).map((value) => value.replace(/[\r\n]/g, ' '))
    const newline = fc.constantFrom('\n', '\r\n')
    const cuts = fc.array(fc.nat())
    await fc.assert(
      fc.asyncProperty(fc.array(data), newline, fc.boolean(), cuts, async (events, end, closed, places) => {
        const whole = events.map((event) => `data: ${event}${end}${end}`).join(`: alive${end}`)
        const text = closed ? whole : whole.trimEnd()
        expect(await eventsOf(bodyOf(splitAt(bytes(text), places)))).toEqual(await eventsIn(text))
        if (closed) expect(await eventsIn(text)).toEqual(events)
      }),
      runs,
    )
  })

  it('takes an event of a megabyte in small pieces', async () => {
    const text = 'x'.repeat(1024 * 1024)
    const whole = bytes(`data: ${text}\n\n`)
    const pieces = splitAt(
      whole,
      Array.from({ length: 300 }, (_, index) => index * 3500),
    )
    expect(await eventsOf(bodyOf(pieces))).toEqual([text])
  })

  it('gives up on an event without an end', async () => {
    const piece = new Uint8Array(1024 * 1024).fill(97)
    const pieces = [bytes('data: '), ...Array.from({ length: maxEventChars / piece.length + 4 }, () => piece)]
    await expect(eventsOf(bodyOf(pieces))).rejects.toThrow(EndpointLost)
  })

  it('says why a connection broke', async () => {
    const broken = bodyOf([bytes('data: a\n\n')], new Error('reset by peer'))
    await expect(eventsOf(broken)).rejects.toMatchObject({ name: 'EndpointLost', cause: { message: 'reset by peer' } })
  })
})

describe('whole text', () => {
  it('is read up to its bound and no further', async () => {
    const watch = () => new Watch(new AbortController().signal, 60_000)
    expect(await readText(bodyOf([bytes('ab'), bytes('cd')]), 100, watch())).toBe('abcd')
    expect(await readText(bodyOf([bytes('ab'), bytes('cd')]), 3, watch())).toBe('abc')
    expect(await readText(null, 3, watch())).toBe('')
  })
})
