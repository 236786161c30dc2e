import { expect, it } from 'vitest'
import { SessionNames } from './session-names.ts'

it('gives an id as it is while it is free, and another name when it is not', () => {
  const names = new SessionNames(() => 0.5)
  expect(names.nameOf('a', 's')).toBe('s')
  expect(names.nameOf('a', 's')).toBe('s')
  const other = names.nameOf('b', 's')
  expect(other).not.toBe('s')
  expect(names.find(other)).toEqual({ name: other, pool: 'b', id: 's' })
})

it('a name of its own is never one that an agent has chosen', () => {
  const names = new SessionNames(() => 0.5)
  names.nameOf('a', 's')
  const made = names.nameOf('b', 's')
  const other = new SessionNames(() => 0.5)
  other.nameOf('c', made)
  other.nameOf('a', 's')
  expect(other.nameOf('b', 's')).not.toBe(made)
})

it('a claim for another agent takes the name over', () => {
  const names = new SessionNames(() => 0.5)
  names.nameOf('a', 's')
  expect(names.claim('b', 's')).toBe('s')
  expect(names.find('s')?.pool).toBe('b')
  expect(names.nameOf('a', 's')).not.toBe('s')
})

it.each([
  [2, true],
  [3, true],
  [4, false],
])('of 3 names at most, after %i the first is remembered: %s', (count, isRemembered) => {
  const names = new SessionNames(() => 0.5, 3)
  for (let i = 0; i < count; i++) names.nameOf('a', `s${i}`)
  expect(names.find('s0') !== undefined).toBe(isRemembered)
})
