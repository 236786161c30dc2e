/** What the name of a method says, read where it lies: whether it is the bus's own, names an agent, or asks for help. */
import type { Envelope } from './envelope.ts'
import { FIELD } from './fields.ts'

const BUS_PREFIX = Buffer.from('"bus::')
const COLON = 0x3a
const BACKSLASH = 0x5c
const HELP = Buffer.from('help')

export function isForBus(line: Envelope): boolean {
  const { bytes } = line
  const at = line.startOf(FIELD.method)
  for (let i = 0; i < BUS_PREFIX.length; i++) {
    if (bytes[at + i] === BUS_PREFIX[i]) continue
    return bytes[at + i] === BACKSLASH && line.text(FIELD.method)!.startsWith('bus::')
  }
  return true
}

export function hasNamespace(envelope: Envelope): boolean {
  const { bytes } = envelope
  const end = envelope.endOf(FIELD.method) - 1
  for (let i = envelope.startOf(FIELD.method) + 1; i < end; i++) {
    if (bytes[i] === BACKSLASH) return envelope.text(FIELD.method)!.includes('::')
    if (bytes[i] === COLON && bytes[i + 1] === COLON) return true
  }
  return false
}

export function isHelp(envelope: Envelope): boolean {
  const start = envelope.startOf(FIELD.method) + 1
  const length = envelope.endOf(FIELD.method) - 1 - start
  if (length < HELP.length) return false
  // A spelling with escapes is longer.
  if (length > HELP.length) return length <= 6 * HELP.length && envelope.text(FIELD.method) === 'help'
  return HELP.every((byte, index) => envelope.bytes[start + index] === byte)
}
