import { describe, expect, it } from 'vitest'
import { LineSplitter } from './frame.ts'

/** Pushes the chunks one after the other and returns the lines that came out. */
function linesOf(splitter: LineSplitter, ...chunks: string[]): string[] {
  const lines: string[] = []
  for (const chunk of chunks) {
    splitter.push(Buffer.from(chunk), 0, (bytes, start, end) => {
      lines.push(bytes.toString('latin1', start, end))
      return true
    })
  }
  return lines
}

function finish(splitter: LineSplitter): string[] {
  const lines: string[] = []
  splitter.finish((bytes, start, end) => {
    expect(bytes[end]).toBe(10)
    lines.push(bytes.toString('latin1', start, end))
    return true
  })
  return lines
}

describe('lines', () => {
  it('lie in the chunk itself, each with its newline behind it', () => {
    const chunk = Buffer.from('a\nbc\n\nd\n')
    const seen: [number, number][] = []
    new LineSplitter(100).push(chunk, 0, (bytes, start, end) => {
      expect(bytes).toBe(chunk)
      expect(bytes[end]).toBe(10)
      seen.push([start, end])
      return true
    })
    expect(seen).toEqual([
      [0, 1],
      [2, 4],
      [5, 5],
      [6, 7],
    ])
  })

  it('keep their carriage return: bytes are not looked at', () => {
    expect(linesOf(new LineSplitter(100), 'a\r\n\xff\n')).toEqual(['a\r', 'Ã¿'])
  })

  it('are put together from chunks, and the buffer they came in is never filled again', () => {
    const splitter = new LineSplitter(100)
    const kept: { bytes: Buffer; text: string }[] = []
    const take = (bytes: Buffer, start: number, end: number): boolean => {
      kept.push({ bytes: bytes.subarray(start, end), text: bytes.toString('latin1', start, end) })
      return true
    }
    for (const chunk of ['ab', 'c', '\nde', 'f\n', 'g\nh', '\n']) splitter.push(Buffer.from(chunk), 0, take)
    expect(kept.map(({ text }) => text)).toEqual(['abc', 'def', 'g', 'h'])
    for (const { bytes, text } of kept) expect(bytes.toString('latin1')).toBe(text)
  })
})

describe('4.2.1 the end of the stream', () => {
  it('makes a line of what has no newline', () => {
    const splitter = new LineSplitter(100)
    expect(linesOf(splitter, 'a\nb')).toEqual(['a'])
    expect(finish(splitter)).toEqual(['b'])
    expect(finish(splitter)).toEqual([])
  })

  it('makes no line of nothing', () => {
    const splitter = new LineSplitter(100)
    expect(linesOf(splitter, 'a\n')).toEqual(['a'])
    expect(finish(splitter)).toEqual([])
  })

  it('comes as well when the last line is as long as the limit', () => {
    const splitter = new LineSplitter(3)
    expect(linesOf(splitter, 'abc')).toEqual([])
    expect(splitter.overflowed).toBe(false)
    expect(finish(splitter)).toEqual(['abc'])
  })
})

describe('8.2 a line over the limit', () => {
  const LIMIT = 8
  it.each([
    ['one under', 'a'.repeat(LIMIT - 1), false],
    ['at', 'a'.repeat(LIMIT), false],
    ['one over', 'a'.repeat(LIMIT + 1), true],
  ])('%s the limit, in one chunk or byte by byte, with or without its newline', (_name, line, overflows) => {
    for (const chunks of [[`${line}\n`], [...line, '\n'], [line, '\n'], [line.slice(0, 4), `${line.slice(4)}\n`]]) {
      const splitter = new LineSplitter(LIMIT)
      expect(linesOf(splitter, 'ok\n', ...chunks)).toEqual(overflows ? ['ok'] : ['ok', line])
      expect(splitter.overflowed).toBe(overflows)
    }
  })

  it('is noticed before its newline has come', () => {
    const splitter = new LineSplitter(LIMIT)
    linesOf(splitter, 'a'.repeat(LIMIT + 1))
    expect(splitter.overflowed).toBe(true)
  })

  it('leaves its beginning to be looked at, whole or in parts', () => {
    const whole = new LineSplitter(LIMIT)
    linesOf(whole, 'x\n{"id":1,"method"\n')
    expect(whole.head.toString()).toBe('{"id":1,"method"')
    const parts = new LineSplitter(LIMIT)
    linesOf(parts, '{"id":1', ',"method"\n')
    expect(parts.head.toString()).toBe('{"id":1')
  })

  it('is the last of its stream: nothing behind it is taken for a line', () => {
    const splitter = new LineSplitter(LIMIT)
    expect(linesOf(splitter, 'a'.repeat(LIMIT), 'a', 'a\nnext\n', 'rest')).toEqual([])
    expect(finish(splitter)).toEqual([])
  })

  it('takes the rest of the chunk with it', () => {
    const splitter = new LineSplitter(LIMIT)
    const chunk = Buffer.from(`${'a'.repeat(LIMIT + 1)}\nnext\n`)
    expect(splitter.push(chunk, 0, () => true)).toBe(chunk.length)
  })
})

describe('8.3 a sink that wants no more', () => {
  it('stops the splitting behind its line, and the rest is pushed again from there', () => {
    const splitter = new LineSplitter(100)
    const lines: string[] = []
    const takeOne = (bytes: Buffer, start: number, end: number): boolean => {
      lines.push(bytes.toString('latin1', start, end))
      return false
    }
    splitter.push(Buffer.from('he'), 0, takeOne)
    const chunk = Buffer.from('ld\na\nbc\nrest')
    let taken = 0
    const stops: number[] = []
    while (taken < chunk.length) stops.push((taken = splitter.push(chunk, taken, takeOne)))
    expect(lines).toEqual(['held', 'a', 'bc'])
    expect(stops).toEqual([3, 5, 8, 12])
    expect(finish(splitter)).toEqual(['rest'])
  })
})

describe('8.3 what a splitter retains', () => {
  it('is nothing while no line is begun', () => {
    const splitter = new LineSplitter(1 << 20)
    linesOf(splitter, 'a\nb\n')
    expect(splitter.retainedBytes).toBe(0)
    linesOf(splitter, 'c', '\n')
    expect(splitter.retainedBytes).toBe(0)
  })

  it('is bounded by the line and not by the number of its parts', () => {
    const splitter = new LineSplitter(10_000)
    for (let i = 0; i < 10_000; i++) linesOf(splitter, 'x')
    expect(splitter.retainedBytes).toBeLessThanOrEqual(10_001)
    expect(splitter.overflowed).toBe(false)
    expect(finish(splitter)).toEqual(['x'.repeat(10_000)])
  })
})

it('a line that came in several reads may be kept: the next ones leave it as it was', () => {
  const splitter = new LineSplitter(1 << 20)
  const kept: Buffer[] = []
  for (const letter of ['a', 'b', 'c']) {
    for (const part of [letter.repeat(40_000), `${letter.repeat(40_000)}\n`])
      splitter.push(Buffer.from(part), 0, (bytes, start, end) => {
        kept.push(bytes.subarray(start, end))
        return true
      })
  }
  expect(kept.map(String)).toEqual(['a', 'b', 'c'].map((letter) => letter.repeat(80_000)))
})
