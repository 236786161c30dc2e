/** The last lines of the log: 5,000 or 4 MiB (contract 15.13). */
import { expect, test } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { RecentLines } from './recent-lines.ts'

test('15.13 of more than five thousand lines the oldest go, and numbers go on', () => {
  verifies('15.13-kept')
  const recent = new RecentLines()
  for (let number = 1; number <= 12_000; number++) recent.push(`line ${number}`)
  expect(recent.all()).toHaveLength(5_000)
  expect(recent.all()[0]).toBe(`line ${recent.firstNumber}`)
  expect(recent.all().at(-1)).toBe('line 12000')
})

test('15.13 of more than 4 MiB too', () => {
  verifies('15.13-kept')
  const recent = new RecentLines()
  for (let number = 1; number <= 10; number++) recent.push(`${number}`.padEnd(1024 * 1024))
  expect(recent.all().map(Number)).toEqual([7, 8, 9, 10])
})
