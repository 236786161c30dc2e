import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { DIAGNOSTIC_LIMITS, DiagnosticLines } from './diagnostics.ts'

const { maxLineBytes, maxLinesPerSecond } = DIAGNOSTIC_LIMITS
let told: string[]
let lines: DiagnosticLines

beforeEach(() => {
  vi.useFakeTimers()
  told = []
  lines = new DiagnosticLines((line) => told.push(line))
})
afterEach(() => {
  vi.useRealTimers()
})

const say = (text: string) => lines.push(Buffer.from(text))

describe('5.3 stderr as lines', () => {
  it('whatever the split of the bytes, the lines are the same', () => {
    vi.useRealTimers()
    const chunks = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 12 })
    const run = (parts: readonly Uint8Array[]) => {
      const heard: string[] = []
      const reader = new DiagnosticLines((line) => heard.push(line), { maxLineBytes: 16, maxLinesPerSecond: 10_000 })
      for (const part of parts) reader.push(Buffer.from(part))
      reader.end()
      return heard
    }
    fc.assert(
      fc.property(chunks, (parts) => {
        expect(run(parts)).toEqual(run([Buffer.concat(parts)]))
      }),
    )
  })

  it('empty lines say nothing, carriage returns before a newline neither', () => {
    say('one\r\n\n\r\ntwo\n')
    expect(told).toEqual(['one', 'two'])
  })

  it('a last line without newline counts', () => {
    say('last words')
    expect(told).toEqual([])
    lines.end()
    expect(told).toEqual(['last words'])
  })

  it.each([
    [maxLineBytes - 1, ''],
    [maxLineBytes, ''],
    [maxLineBytes + 1, '... (1 more bytes)'],
    [maxLineBytes * 100, `... (${maxLineBytes * 99} more bytes)`],
  ])('a line of %i bytes', (bytes, end) => {
    say(`${'x'.repeat(bytes)}\n`)
    expect(told).toEqual([`${'x'.repeat(Math.min(bytes, maxLineBytes))}${end}`])
  })

  it('control characters are shown, not obeyed', () => {
    say('\x1b[2Jred\x07 \x9b \u202eevil \u2028 ünï\tcode\n')
    expect(told).toEqual(['\\u001b[2Jred\\u0007 \\u009b \\u202eevil \\u2028 ünï\\u0009code'])
  })
})

describe('5.3 the rate', () => {
  const flood = (count: number) => say('line\n'.repeat(count))

  it.each([maxLinesPerSecond - 1, maxLinesPerSecond])('%i lines in a second all come through', (count) => {
    flood(count)
    vi.advanceTimersByTime(5_000)
    expect(told).toHaveLength(count)
  })

  it('one more is counted, and the count is told when the second is over', () => {
    flood(maxLinesPerSecond + 1)
    expect(told).toHaveLength(maxLinesPerSecond)
    vi.advanceTimersByTime(1_000)
    expect(told.slice(maxLinesPerSecond)).toEqual(['1 lines suppressed'])
  })

  it('the next second has room again', () => {
    flood(maxLinesPerSecond + 50)
    vi.advanceTimersByTime(1_000)
    flood(maxLinesPerSecond)
    expect(told).toHaveLength(2 * maxLinesPerSecond + 1)
  })

  it('at the end the count is told at once', () => {
    flood(maxLinesPerSecond + 7)
    lines.end()
    expect(told.at(-1)).toBe('7 lines suppressed')
  })
})
