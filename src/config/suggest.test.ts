import { describe, expect, it } from 'vitest'
import { suggest } from './suggest.ts'

const KEYS = ['max_input_buffer', 'max_output_queue', 'sharing', 'instances', 'max_instances', 'env', 'era']

describe('suggest', () => {
  it.each([
    ['maxInputBuffer', 'max_input_buffer'],
    ['max-output-queue', 'max_output_queue'],
    ['shraing', 'sharing'],
    ['instance', 'instances'],
    ['ENV', 'env'],
  ])('%s means %s', (word, meant) => expect(suggest(word, KEYS)).toBe(meant))

  it.each(['', 'zzz', 'completely_different', 'x'.repeat(10_000)])('nothing is near %.20s', (word) =>
    expect(suggest(word, KEYS)).toBeUndefined(),
  )

  it('two swapped neighbours are one edit, so a short word is still found', () => {
    expect(suggest('evn', ['env', 'x'])).toBe('env')
    expect(suggest('nv', ['env'])).toBe('env')
    expect(suggest('xyz', ['env'])).toBeUndefined()
  })
})
