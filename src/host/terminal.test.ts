import { afterEach, describe, expect, test } from 'vitest'
import { canMoveCursor, showClock, showTime, wantsColor } from './terminal.ts'

const terminal = { isTTY: true }
const pipe = {}

describe('colour', () => {
  test.each([
    ['a terminal', terminal, {}, true],
    ['a pipe', pipe, {}, false],
    ['a pipe in CI', pipe, { CI: '1' }, false],
    ['NO_COLOR', terminal, { NO_COLOR: '1' }, false],
    ['an empty NO_COLOR, which is none', terminal, { NO_COLOR: '' }, true],
    ['TERM=dumb', terminal, { TERM: 'dumb' }, false],
    ['FORCE_COLOR on a pipe', pipe, { FORCE_COLOR: '1' }, true],
    ['FORCE_COLOR=0', terminal, { FORCE_COLOR: '0' }, false],
    ['both', terminal, { FORCE_COLOR: '1', NO_COLOR: '1' }, false],
  ])('%s', (_, stream, environment, expected) => {
    expect(wantsColor(stream, environment)).toBe(expected)
  })

  test('a cursor moves on a terminal without colours, and not on a dumb one', () => {
    expect(canMoveCursor(terminal, { NO_COLOR: '1' })).toBe(true)
    expect(canMoveCursor(terminal, { TERM: 'dumb' })).toBe(false)
    expect(canMoveCursor(pipe, {})).toBe(false)
  })
})

describe('a time', () => {
  const zone = process.env['TZ']
  afterEach(() => {
    if (zone === undefined) delete process.env['TZ']
    else process.env['TZ'] = zone
  })

  test.each([
    ['UTC', '12:00:01.002+00:00', '2026-07-01 12:00:01+00:00'],
    ['Asia/Kolkata', '17:30:01.002+05:30', '2026-07-01 17:30:01+05:30'],
    ['America/St_Johns', '09:30:01.002-02:30', '2026-07-01 09:30:01-02:30'],
  ])('in %s says which clock it is', (name, clock, time) => {
    process.env['TZ'] = name
    const atMs = Date.UTC(2026, 6, 1, 12, 0, 1, 2)
    expect([showClock(atMs), showTime(atMs)]).toEqual([clock, time])
  })
})
