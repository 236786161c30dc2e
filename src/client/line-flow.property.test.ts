import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Verdict } from './crossing.ts'
import { LineFlow } from './line-flow.ts'

/** Lines are marked with what shall become of them. */
function verdictOf(bytes: Buffer, start: number, end: number): Verdict {
  const line = bytes.toString('latin1', start, end)
  if (line.startsWith('s')) return 'swallow'
  if (line.startsWith('o')) return { on: Buffer.from(`O${line.slice(1)}\n`) }
  return line.startsWith('b') ? { back: Buffer.from(`B${line.slice(1)}\n`) } : 'pass'
}

const lines = fc.array(fc.stringMatching(/^[psob][a-z ]{0,12}$/), { maxLength: 30 })

test('however the bytes arrive, what leaves is what was judged, in order', () => {
  fc.assert(
    fc.property(lines, fc.array(fc.integer({ min: 1, max: 40 })), fc.boolean(), (all, sizes, endsWithNewline) => {
      const bytes = Buffer.from(all.join('\n') + (endsWithNewline && all.length > 0 ? '\n' : ''))
      let on = ''
      let back = ''
      const flow = new LineFlow(1_000, {
        judge: verdictOf,
        on: (run) => (on += run.toString()),
        back: (line) => (back += line.toString()),
      })
      let at = 0
      for (const size of [...sizes, bytes.length]) {
        expect(flow.push(bytes.subarray(at, at + size))).toBe(true)
        at += size
      }
      flow.finish()
      const expected = (from: string, to: string) =>
        all.filter((line) => from.includes(line[0]!)).map((line) => `${line.replace(/^[ob]/, to)}\n`)
      expect(on).toBe(expected('po', 'O').join(''))
      expect(back).toBe(expected('b', 'B').join(''))
    }),
  )
})

test('neighbours that pass leave as one slice of what came', () => {
  const runs: Buffer[] = []
  const flow = new LineFlow(1_000, { judge: () => 'pass', on: (run) => runs.push(run), back: () => {} })
  const chunk = Buffer.from('a\nb\nc\nd')
  flow.push(chunk)
  expect(runs.map(String)).toEqual(['a\nb\nc\n'])
  expect(runs[0]!.buffer).toBe(chunk.buffer)
})

test.each([
  [9, true],
  [10, true],
  [11, false],
])('a line of %i bytes with a limit of 10: %s', (length, fits) => {
  const flow = new LineFlow(10, { judge: () => 'pass', on: () => {}, back: () => {} })
  expect(flow.push(Buffer.from(`${'x'.repeat(length)}\n`))).toBe(fits)
})
