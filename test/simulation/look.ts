/**
 * A look at the state of a bus, which shows it to nobody: for the invariants, read only.
 *
 * A core asks itself for its longest line whenever a client opens; whoever asks is the core of the bus at hand.
 */
import { Core } from '../../src/kernel/core.ts'

let seen: Core | undefined
const property = Object.getOwnPropertyDescriptor(Core.prototype, 'maxClientLineBytes')!

Object.defineProperty(Core.prototype, 'maxClientLineBytes', {
  ...property,
  get(this: Core): number {
    seen = this
    return property.get!.call(this) as number
  },
})

/** The core of the bus that a client has just opened. */
export function coreSeen(): Core {
  if (seen === undefined) throw new Error('no client has opened yet')
  return seen
}
