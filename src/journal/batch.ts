/**
 * Orders on their way to the thread of the store: what was said lies in one piece of memory, so that copying it costs what
 * it is long, and the rest is small.
 */
import type { JournalOrder } from '../kernel/events.ts'
import type { EntryKind } from '../kernel/kept/journal.ts'

/** A run that has so much is followed by another: whoever wants one line reads its whole run. */
const RUN_BYTES = 64 * 1024

/** A kind is told by its digit. */
export const KINDS: readonly EntryKind[] = ['update', 'prompt', 'fleeting', 'event']

export type WriteOrder = Exclude<JournalOrder, { order: 'read' }>
type OtherOrder = Exclude<WriteOrder, { order: 'append' }>
type Note = Extract<OtherOrder, { order: 'note' }>

/** The bytes of a state lie with the others. */
export type PackedOrder =
  | Exclude<OtherOrder, Note>
  | (Omit<Note, 'state'> & {
      readonly state?: { readonly kind: string; readonly seq: number; readonly length: number }
    })

/** Neighbouring lines of one session: a digit for the kind of each, and how long they are together. */
export interface PackedLines {
  readonly key: string
  readonly from: number
  kinds: string
  length: number
  readonly atMs: number
}

/** An order that is no line. */
export interface PackedOther {
  readonly other: PackedOrder
}

export interface PackedBatch {
  readonly items: readonly (PackedLines | PackedOther)[]
  readonly bytes: Uint8Array
}

export function packBatch(orders: readonly WriteOrder[]): PackedBatch {
  const items: (PackedLines | PackedOther)[] = []
  const pieces: Buffer[] = []
  let run: PackedLines | undefined
  for (const order of orders) {
    if (order.order !== 'append') {
      run = undefined
      items.push({ other: packOther(order, pieces) })
      continue
    }
    const { key, seq, kind, bytes, atMs } = order
    if (run === undefined || run.key !== key || run.from + run.kinds.length !== seq || run.length >= RUN_BYTES) {
      run = { key, from: seq, kinds: '', length: 0, atMs }
      items.push(run)
    }
    run.kinds += KINDS.indexOf(kind)
    run.length += bytes.length
    pieces.push(bytes)
  }
  return { items, bytes: joined(pieces) }
}

function packOther(order: OtherOrder, pieces: Buffer[]): PackedOrder {
  if (order.order !== 'note') return order
  const { state, ...rest } = order
  if (state === undefined) return rest
  const { kind, seq, bytes } = state
  pieces.push(bytes)
  return { ...rest, state: { kind, seq, length: bytes.length } }
}

/** In memory of its own: what lies in memory that others use would be copied with all of it. */
function joined(pieces: readonly Buffer[]): Uint8Array {
  const all = Buffer.allocUnsafeSlow(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) at += piece.copy(all, at)
  return all
}
