/**
 * Tells whether text is UTF-8, sixteen bytes at a time, by the method of Keiser and Lemire ("Validating UTF-8 in less than
 * one instruction per byte"): three small tables, looked up by half bytes, say what is wrong with a pair of neighbours.
 */

// What can be wrong with a pair of bytes. TWO_CONTS is no fault where a third or fourth byte of a character is due.
const TOO_SHORT: u8 = 1 << 0 // a lead, then no continuation
const TOO_LONG: u8 = 1 << 1 // ASCII, then a continuation
const OVERLONG_3: u8 = 1 << 2 // e0 80..9f
const TOO_LARGE: u8 = 1 << 3 // f4 90..bf, f5..ff 80..bf (the latter with TOO_LARGE_1000)
const SURROGATE: u8 = 1 << 4 // ed a0..bf
const OVERLONG_2: u8 = 1 << 5 // c0..c1 80..bf
const TOO_LARGE_1000: u8 = 1 << 6 // f5..ff 80..8f; shared with OVERLONG_4: f0 80..8f
const OVERLONG_4: u8 = 1 << 6
const TWO_CONTS: u8 = 1 << 7
const CARRY: u8 = TOO_SHORT | TOO_LONG | TWO_CONTS
const ANY_LARGE: u8 = TOO_LARGE | TOO_LARGE_1000
const ANY_CONT: u8 = TOO_LONG | OVERLONG_2 | TWO_CONTS

/** By the high half of the first byte, by its low half, and by the high half of the second. */
function faults(first: v128, second: v128): v128 {
  const half = i8x16.splat(0x0f)
  const firstHigh = i8x16(
    TOO_LONG,
    TOO_LONG,
    TOO_LONG,
    TOO_LONG,
    TOO_LONG,
    TOO_LONG,
    TOO_LONG,
    TOO_LONG,
    TWO_CONTS,
    TWO_CONTS,
    TWO_CONTS,
    TWO_CONTS,
    TOO_SHORT | OVERLONG_2,
    TOO_SHORT,
    TOO_SHORT | OVERLONG_3 | SURROGATE,
    TOO_SHORT | ANY_LARGE | OVERLONG_4,
  )
  const firstLow = i8x16(
    CARRY | OVERLONG_2 | OVERLONG_3 | OVERLONG_4,
    CARRY | OVERLONG_2,
    CARRY,
    CARRY,
    CARRY | TOO_LARGE,
    CARRY | ANY_LARGE,
    CARRY | ANY_LARGE,
    CARRY | ANY_LARGE,
    CARRY | ANY_LARGE,
    CARRY | ANY_LARGE,
    CARRY | ANY_LARGE,
    CARRY | ANY_LARGE,
    CARRY | ANY_LARGE,
    CARRY | ANY_LARGE | SURROGATE,
    CARRY | ANY_LARGE,
    CARRY | ANY_LARGE,
  )
  const secondHigh = i8x16(
    TOO_SHORT,
    TOO_SHORT,
    TOO_SHORT,
    TOO_SHORT,
    TOO_SHORT,
    TOO_SHORT,
    TOO_SHORT,
    TOO_SHORT,
    ANY_CONT | OVERLONG_3 | OVERLONG_4 | TOO_LARGE_1000,
    ANY_CONT | OVERLONG_3 | TOO_LARGE,
    ANY_CONT | SURROGATE | TOO_LARGE,
    ANY_CONT | SURROGATE | TOO_LARGE,
    TOO_SHORT,
    TOO_SHORT,
    TOO_SHORT,
    TOO_SHORT,
  )
  const byFirst = v128.and(
    i8x16.swizzle(firstHigh, i8x16.shr_u(first, 4)),
    i8x16.swizzle(firstLow, v128.and(first, half)),
  )
  return v128.and(byFirst, i8x16.swizzle(secondHigh, i8x16.shr_u(second, 4)))
}

/** `at` must stand behind three bytes of ASCII; what goes wrong from `end` on does not count. */
export function isUtf8(at: usize, end: usize): bool {
  for (let i = at; i < end; i += 16) {
    const text = v128.load(i)
    const third = v128.load(i - 3)
    if (i8x16.bitmask(v128.or(text, third)) === 0) continue
    // Two bytes behind a lead of three, and three behind one of four, a continuation is due.
    const behindThree = i8x16.sub_sat_u(v128.load(i - 2), i8x16.splat(0x60))
    const behindFour = i8x16.sub_sat_u(third, i8x16.splat(0x70))
    const due = v128.and(v128.or(behindThree, behindFour), i8x16.splat(-128))
    const wrong = i8x16.ne(v128.xor(due, faults(v128.load(i - 1), text)), i8x16.splat(0))
    const where = i8x16.bitmask(wrong)
    if (where !== 0) return i + ctz(where) >= end
  }
  return true
}

export function isAscii(at: usize, end: usize): bool {
  for (let i = at; i < end; i++) if (load<u8>(i) > 0x7f) return false
  return true
}
