import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type DiffLine, diffLines } from './line-diff.ts'

const textOf = (lines: readonly DiffLine[], without: 'added' | 'removed'): string[] =>
  lines.flatMap((line) => (line.kind === 'skipped' || line.kind === without ? [] : [line.text]))

describe('a diff of lines', () => {
  it('shows what changed with two lines around it', () => {
    const before = '1\n2\n3\n4\n5\n6\n7\n8\n9\n'
    expect(diffLines(before, before.replace('5', 'five'))).toEqual([
      { kind: 'skipped', count: 2 },
      { kind: 'same', text: '3' },
      { kind: 'same', text: '4' },
      { kind: 'removed', text: '5' },
      { kind: 'added', text: 'five' },
      { kind: 'same', text: '6' },
      { kind: 'same', text: '7' },
    ])
    expect(diffLines('', 'new\n')).toEqual([{ kind: 'added', text: 'new' }])
    expect(diffLines('same', 'same')).toEqual([])
  })

  it('is one text without what was added and the other without what was removed', () => {
    const text = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(text, text, (before, after) => {
        const lines = diffLines(before.join('\n'), after.join('\n'))
        if (lines.length === 0 || lines.some(({ kind }) => kind === 'skipped')) return
        const isWhole = textOf(lines, 'added').length === before.length
        if (isWhole) expect(textOf(lines, 'added')).toEqual(before)
        if (isWhole) expect(textOf(lines, 'removed')).toEqual(after)
      }),
      { numRuns: 1_000 },
    )
  })

  it('does not compare what is too much: one text for the other', () => {
    const many = (word: string): string => Array.from({ length: 2_000 }, (_, line) => `${word} ${line}`).join('\n')
    const lines = diffLines(many('a'), many('b'))
    expect(lines).toHaveLength(4_000)
    expect(lines[0]).toEqual({ kind: 'removed', text: 'a 0' })
  })
})
