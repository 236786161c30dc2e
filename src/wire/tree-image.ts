/** Writes the tree of fields into the memory of the scanner, in the form that layout.ts describes. */
import type { FieldNode } from './fields.ts'
import {
  FIELD_BELOW,
  FIELD_KEY,
  FIELD_LENGTH,
  FIELD_MASK,
  FIELD_NEXT,
  FIELD_SLOT,
  FIELD_TABLE,
  HASH_LENGTH,
  HASHES,
  TEXT,
  VECTOR_BYTES,
} from './layout.ts'

const TABLE_BYTES = 4 * HASHES
const QUOTE = 0x22

/** Writes the table of `node` at `at` and everything below it behind; returns the address behind all of it. */
export function writeTree(node: FieldNode, memory: DataView, at: number): number {
  let free = at + TABLE_BYTES
  for (const child of node.byLength.flat()) {
    if (child === undefined) continue
    const cell = at + 4 * ((child.key[0]! + child.key.length * HASH_LENGTH) % HASHES)
    const field = free
    free = writeField(child, memory.getUint32(cell, true), memory, field)
    memory.setUint32(cell, field, true)
  }
  return free
}

function writeField(node: FieldNode, next: number, memory: DataView, at: number): number {
  const quoted = [...node.key, QUOTE]
  const table = at + FIELD_KEY + Math.ceil(quoted.length / VECTOR_BYTES) * VECTOR_BYTES
  // The last bytes before the text stay zero: the scanner looks back from its first one.
  if (table + TABLE_BYTES > TEXT - VECTOR_BYTES) throw new Error('the scanner has no room for so many fields')
  memory.setUint32(at + FIELD_NEXT, next, true)
  memory.setInt32(at + FIELD_SLOT, node.slot, true)
  memory.setUint32(at + FIELD_TABLE, node.hasChildren ? table : 0, true)
  memory.setUint32(at + FIELD_LENGTH, node.key.length, true)
  memory.setBigUint64(at + FIELD_BELOW, setOf(node.below), true)
  for (const [index, byte] of quoted.entries()) {
    memory.setUint8(at + FIELD_KEY + index, byte)
    if (index < VECTOR_BYTES) memory.setUint8(at + FIELD_MASK + index, 0xff)
  }
  return node.hasChildren ? writeTree(node, memory, table) : table
}

function setOf(slots: readonly number[]): bigint {
  return slots.reduce((set, slot) => set | (1n << BigInt(slot)), 0n)
}
