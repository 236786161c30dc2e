/**
 * Finds the bytes of a text at which a string may end: quotes, backslashes and control characters, called stops.
 *
 * They are found for 64 bytes at once and kept as bits, so that a short string costs a shift and no look at its bytes.
 */
import { BACKSLASH, QUOTE, SPACE } from './characters'

const BLOCK_BYTES: usize = 64

/** Set when a block that holds part of a string has bytes above 0x7f; they may also stand behind the text. */
export let wide: bool = false

export let block: usize = 0
/** The stops in the block, a bit for each byte. */
let stops: u64 = 0

export function openText(start: usize): void {
  wide = false
  findStops(start)
}

/** The first stop from `at` on; there must be one, so a control character must stand behind the text. */
// @inline
export function findStop(at: usize): usize {
  const offset = at - block
  let stop: usize
  if (offset >= BLOCK_BYTES) stop = findStopBeyond(at)
  else {
    const left = stops >> (offset as u64)
    if (left === 0) stop = findStopBeyond(at)
    else stop = at + (ctz(left) as usize)
  }
  return stop
}

function findStopBeyond(at: usize): usize {
  const found = findStopsFrom(at)
  return block + (ctz(found) as usize)
}

/**
 * The stops of the first block from `at` on that has any. A block begins where a string does: lists of like objects are
 * then cut alike, which the processor learns to foresee.
 */
export function findStopsFrom(at: usize): u64 {
  findStops(at)
  while (stops === 0) findStops(block + BLOCK_BYTES)
  return stops
}

function findStops(at: usize): void {
  const a = v128.load(at)
  const b = v128.load(at, 16)
  const c = v128.load(at, 32)
  const d = v128.load(at, 48)
  if (i8x16.bitmask(v128.or(v128.or(a, b), v128.or(c, d))) !== 0) wide = true
  block = at
  stops = stopsOf(a) | (stopsOf(b) << 16) | (stopsOf(c) << 32) | (stopsOf(d) << 48)
}

// @inline
function stopsOf(text: v128): u64 {
  const ends = v128.or(i8x16.eq(text, i8x16.splat(QUOTE)), i8x16.eq(text, i8x16.splat(BACKSLASH)))
  const isControl = i8x16.eq(i8x16.min_u(text, i8x16.splat(SPACE - 1)), text)
  return i8x16.bitmask(v128.or(ends, isControl)) as u64
}
