import { expect, test } from 'vitest'
import { Notices } from './notices.ts'

test('an upstream that gives cause for very many is told of a few times, and the rest is counted', () => {
  const told: string[] = []
  const notices = new Notices((sentence) => told.push(sentence))
  for (let i = 0; i < 1_000; i++) notices.add('junk', 1_000)
  expect(told).toHaveLength(20)
  notices.add('junk', 11_000)
  expect(told.at(-1)).toBe('junk (and 980 more before)')
  notices.add('junk', 11_001)
  expect(told.at(-1)).toBe('junk')
})
