/**
 * The scanner in WebAssembly (its source is in assembly/), and the copying of lines into its memory.
 *
 * Sockets are read into this memory: a little that was read and is lent is scanned where it lies. Every other line is copied
 * in, and when it lies in a chunk that was lent, the lines around it come along, so that a chunk of many lines is copied
 * once. What was copied is believed only while the chunk is lent; nobody may change its bytes meanwhile. Without
 * WebAssembly or its vectors there is no scanner, and the twin does its work.
 */
import { FIELD_NAMES, FIELD_TREE, ONCE_BELOW } from './fields.ts'
import {
  MARGIN_BYTES,
  MAX_FIELDS,
  MAX_TEXT_BYTES,
  NOTE_COUNT,
  NOTES,
  NOWHERE,
  ONCE_BELOW_CELL,
  READ_BYTES,
  READS,
  TEXT,
  TREE,
  VERDICT_UNSURE,
} from './layout.ts'
import { SCANNER_WASM } from './scanner-wasm.ts'
import { writeTree } from './tree-image.ts'

type Scan = (start: number, end: number, shift: number) => number

interface Scanner {
  readonly memory: Uint8Array
  readonly notes: Int32Array
  readonly scan: Scan
  readonly scanAhead: Scan
}

/** So much of a chunk is copied at once; it stays in the nearest cache while its lines are read. */
const WINDOW_BYTES = 16_384
/** More than this is copied all the same: then it is near when its lines are read one by one. */
const MAX_IN_PLACE_BYTES = 2048
const ELSEWHERE = -1

/** Memory for reads, so that what was read need not be copied to be scanned; whoever fills it again has lent it before. */
export function makeReadMemory(): Buffer {
  if (scanner === undefined) return Buffer.allocUnsafeSlow(READ_BYTES)
  return Buffer.from(scanner.memory.buffer as ArrayBuffer, READS, READ_BYTES)
}

function start(): Scanner | undefined {
  const code = Buffer.from(SCANNER_WASM, 'base64')
  if (typeof WebAssembly === 'undefined' || !WebAssembly.validate(code)) return undefined
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(code))
  const { buffer } = exports['memory'] as { buffer: ArrayBuffer }
  if (buffer.byteLength < READS + READ_BYTES + MARGIN_BYTES) throw new Error('the scanner has too little memory')
  if (FIELD_NAMES.length > MAX_FIELDS) throw new Error('the scanner has no room for so many fields')
  const memory = new Uint8Array(buffer)
  new Int32Array(buffer)[ONCE_BELOW_CELL / 4] = ONCE_BELOW
  writeTree(FIELD_TREE, new DataView(buffer), TREE)
  const notes = new Int32Array(buffer, NOTES, NOTE_COUNT)
  return { memory, notes, scan: exports['scan'] as Scan, scanAhead: exports['scanAhead'] as Scan }
}

export const scanner: Scanner | undefined = start()

/** The chunk whose bytes stay as they are for now. */
let lent: Buffer | undefined
/** Its address, if it lies in the memory of the scanner. */
let lentAt = ELSEWHERE
/** The lent chunk, when it is a part of it that lies at TEXT: `[from, to)`. */
let loaded: Buffer | undefined
let from = 0
let to = 0

/** Where the message ends of which the notes tell, if it was scanned before anybody asked for it, and where it begins. */
let aheadEnd = NOWHERE
let aheadStart = 0

/** Until something else is lent, or nothing, the bytes of `chunk` stay as they are; returns what was lent before. */
export function lend(chunk: Buffer | undefined): Buffer | undefined {
  const before = lent
  lent = chunk
  const isInPlace = chunk !== undefined && chunk.length <= MAX_IN_PLACE_BYTES && chunk.buffer === scanner?.memory.buffer
  lentAt = isInPlace ? chunk.byteOffset : ELSEWHERE
  loaded = undefined
  aheadEnd = NOWHERE
  return before
}

/** The bytes lie in memory that somebody else will fill again: whoever keeps them copies them. */
export function isLent(bytes: Buffer): boolean {
  return bytes === lent
}

/**
 * Scans the message that begins at `start` of the lent chunk, and returns where its line ends. NOWHERE: there is none, or it
 * is to be found in another way. The notes must be nobody's.
 */
export function scanAhead({ memory, scanAhead: scan }: Scanner, bytes: Buffer, start: number): number {
  if (bytes !== lent) return NOWHERE
  aheadStart = start
  if (lentAt !== ELSEWHERE) aheadEnd = scan(lentAt + start, lentAt + bytes.length, -lentAt)
  else {
    if (loaded === undefined || start < from || start >= to) load(memory, bytes, start, start)
    aheadEnd = scan(TEXT + start - from, TEXT + to - from, from - TEXT)
  }
  return aheadEnd
}

/** The notes tell of this line already. */
export function isScanned(bytes: Buffer, start: number, end: number): boolean {
  return aheadEnd === end && aheadStart === start && bytes === lent
}

/** Scans a line and returns the verdict; the rest is in the notes of the scanner. A line of more than MAX_TEXT_BYTES is unsure. */
export function scanFast({ memory, scan }: Scanner, bytes: Buffer, start: number, end: number): number {
  aheadEnd = NOWHERE
  if (end - start > MAX_TEXT_BYTES) return VERDICT_UNSURE
  if (bytes === lent && lentAt !== ELSEWHERE) return scan(lentAt + start, lentAt + end, -lentAt)
  if (bytes !== loaded || start < from || end > to) load(memory, bytes, start, end)
  return scan(TEXT + start - from, TEXT + end - from, from - TEXT)
}

function load(memory: Uint8Array, bytes: Buffer, start: number, end: number): void {
  const isLent = bytes === lent
  loaded = isLent ? bytes : undefined
  from = start
  to = isLent ? Math.min(bytes.length, Math.max(end, start + WINDOW_BYTES)) : end
  memory.set(new Uint8Array(bytes.buffer, bytes.byteOffset + start, to - start), TEXT)
}
