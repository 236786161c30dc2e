/**
 * Finds the bytes of a text at which a string may end: quotes, backslashes and control characters, called stops.
 *
 * They are found 64 bytes at a time, ahead of the walk over the text, which takes them one by one. Whoever walks must take
 * every stop that it passes: it then knows the end of a string without looking at what is inside.
 */
import { BACKSLASH, QUOTE, SPACE } from './characters'

/** Set when a block of the text has bytes above 0x7f, or when such bytes stand right behind it. */
export let wide: bool = false

export let textEnd: usize = 0

let block: usize = 0
/** The stops of the block that are not taken yet, a bit for each byte. */
let stops: u64 = 0

/** A control character must stand at `end`. */
export function openText(start: usize, end: usize): void {
  textEnd = end
  wide = false
  block = start
  stops = findStops(start)
}

// @inline
export function takeStop(): usize {
  if (stops === 0) findMore()
  const left = stops
  stops = left & (left - 1)
  return block + (ctz(left) as usize)
}

/** Takes two stops, the opening quote of a string and what may be its end, and returns the second. */
// @inline
export function takeString(): usize {
  const left = stops & (stops - 1)
  let at: usize
  if (left === 0) at = takeStringAcross()
  else {
    stops = left & (left - 1)
    at = block + (ctz(left) as usize)
  }
  return at
}

function takeStringAcross(): usize {
  takeStop()
  return takeStop()
}

function findMore(): void {
  do {
    block += 64
    stops = findStops(block)
  } while (stops === 0)
}

// @inline
function findStops(at: usize): u64 {
  const a = v128.load(at)
  const b = v128.load(at, 16)
  const c = v128.load(at, 32)
  const d = v128.load(at, 48)
  if (i8x16.bitmask(v128.or(v128.or(a, b), v128.or(c, d))) !== 0) wide = true
  return stopsOf(a) | (stopsOf(b) << 16) | (stopsOf(c) << 32) | (stopsOf(d) << 48)
}

// @inline
function stopsOf(text: v128): u64 {
  const ends = v128.or(i8x16.eq(text, i8x16.splat(QUOTE)), i8x16.eq(text, i8x16.splat(BACKSLASH)))
  const isControl = i8x16.eq(i8x16.min_u(text, i8x16.splat(SPACE - 1)), text)
  return i8x16.bitmask(v128.or(ends, isControl)) as u64
}
