/**
 * The leanest worker: answers every request of the layout in line.mjs by overwriting a few bytes of it.
 *
 * One blocking read and one blocking write per chunk, no stream, no allocation, no parsing. The input is taken as a sequence of lines
 * of one length, given as the first argument, the second says what they ask; a byte too many or too few ends the worker loudly, for
 * then the bus has changed a line.
 */
import { readSync, writeSync } from 'node:fs'
import { NEWLINE, PATCH_AT, patchOf } from './line.mjs'

const lineBytes = Number(process.argv[2])
const PATCH = patchOf(process.argv[3])
const chunk = Buffer.allocUnsafe(256 * 1024)

/** Turns the requests in the first `length` bytes into answers; `phase` is how much of the first line came before. */
function answer(length, phase) {
  let start = -phase
  for (; start < length; start += lineBytes) {
    const from = Math.max(0, start + PATCH_AT)
    const to = Math.min(length, start + PATCH_AT + PATCH.length)
    for (let at = from; at < to; at++) chunk[at] = PATCH[at - start - PATCH_AT]
    const end = start + lineBytes - 1
    if (end < length && chunk[end] !== NEWLINE)
      throw new Error(`no newline after ${lineBytes} bytes: the bus changed a line`)
  }
  return start === length ? 0 : length - (start - lineBytes)
}

let phase = 0
for (let length; (length = readSync(0, chunk)) > 0; ) {
  phase = answer(length, phase)
  for (let sent = 0; sent < length; ) sent += writeSync(1, chunk, sent, length - sent)
}
