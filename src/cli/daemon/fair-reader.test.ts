import { PassThrough } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { FairReader } from './fair-reader.ts'

const LINES = Array.from({ length: 4_000 }, (_, n) => `{"id":${n}}\n`).join('')

/** Longer than a turn. */
function work(): void {
  for (const endMs = performance.now() + 2; performance.now() < endMs; );
}

function read(take: () => void): { stream: PassThrough; told: string[]; reader: FairReader } {
  const stream = new PassThrough({ highWaterMark: 1024 * 1024 })
  const told: string[] = []
  const reader = new FairReader(stream, (bytes) => {
    told.push(bytes.toString())
    take()
  })
  reader.resume()
  return { stream, told, reader }
}

test('what costs too much is told in portions of whole lines, one in a turn, in order', async () => {
  const { stream, told } = read(work)
  stream.write(LINES)
  for (let turn = 0; told.join('').length < LINES.length && turn < 1_000; turn++) await nextTurn()
  expect(told.join('')).toBe(LINES)
  expect(told.length).toBeGreaterThan(2)
  for (const portion of told) expect(portion.endsWith('\n')).toBe(true)
})

test('a stream that hands over what it read in smaller chunks has its turns too', async () => {
  const { stream, told } = read(work)
  const chunk = `${'x'.repeat(16 * 1024 - 1)}\n`
  for (let n = 0; n < 20; n++) stream.write(chunk)
  while (told.length === 0) await nextTurn()
  expect(told.length).toBeLessThan(5)
  while (told.length < 20) await nextTurn()
  expect(told.join('')).toBe(chunk.repeat(20))
})

test('what waits at the end is told in its turns, and the end after it', async () => {
  const { stream, told, reader } = read(work)
  stream.write(LINES)
  while (told.length === 0) await nextTurn()
  const before = told.length
  const ends: string[] = []
  for (const end of ['ended', 'closed']) reader.finish(() => ends.push(`${end} after ${told.join('').length}`))
  expect([told.length, ends]).toEqual([before, []])
  while (ends.length === 0) await nextTurn()
  expect(ends).toEqual([`ended after ${LINES.length}`, `closed after ${LINES.length}`])
  expect(told.length).toBeGreaterThan(before + 1)
  reader.finish(() => ends.push('at once'))
  expect(ends.at(-1)).toBe('at once')
})

test('who is paused in the middle stays paused when its turn comes, and loses nothing', async () => {
  const { stream, told, reader } = read(work)
  stream.write(LINES)
  while (told.length === 0) await nextTurn()
  reader.pause()
  stream.write('{"last":true}\n')
  for (let turn = 0; turn < 200; turn++) await nextTurn()
  expect(told.join('')).toBe(LINES)
  reader.resume()
  for (let turn = 0; turn < 10; turn++) await nextTurn()
  expect(told.join('')).toBe(`${LINES}{"last":true}\n`)
})

test('whoever takes a part of a read is told that more of it follows, and of a record that more may', async () => {
  const told: [number, boolean][] = []
  const take = (bytes: Buffer, hasMore: boolean): number => told.push([bytes.length, hasMore])
  const plain = new PassThrough({ highWaterMark: 1024 * 1024 })
  new FairReader(plain, take).resume()
  plain.write('{"id":1}\n')
  plain.write(LINES)
  while (told.reduce((bytes, [length]) => bytes + length, 0) < LINES.length) await nextTurn()
  expect(told[0]).toEqual([9, false])
  expect(told.slice(1, -1).every(([, hasMore]) => hasMore)).toBe(true)
  expect(told.length).toBeGreaterThan(2)
  expect(told.at(-1)![1]).toBe(false)
  const secured = Object.assign(new PassThrough(), { encrypted: true })
  new FairReader(secured, take).resume()
  secured.write('{"id":1}\n')
  await nextTurn()
  expect(told.at(-1)).toEqual([9, true])
})
