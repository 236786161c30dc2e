/**
 * Tells the runtime what kind of program the bus is: few objects, many short-lived chunks, one way that every message takes.
 *
 * The heap may grow before garbage is collected. As it is, the runtime collects whenever the chunks outgrow a small heap, up
 * to thirty times a second under long lines, which costs more than all routing. With this factor a collection comes after
 * some sixty megabytes of chunks instead of ten. The room for young objects stays as small as it began: a client that names
 * a hundred thousand sessions makes objects that all stay, and copying sixteen megabytes of them at once would hold up
 * everybody; a small room is copied in little time.
 *
 * The way of a message is many small functions. Compiled, they are joined to one as far as a budget goes, and with twice what
 * it is by itself a line costs less. A function is compiled somewhat later, so that fewer are that are joined to others soon
 * after.
 */
import { setFlagsFromString } from 'node:v8'

const FLAGS = [
  '--heap-growing-percent=700',
  '--semi-space-growth-factor=1',
  '--max-inlined-bytecode-size-cumulative=2000',
]
/** The unit of this one is another in later versions. */
const FLAGS_OF_V8_11 = ['--interrupt-budget=200000']

export function tuneRuntime(): void {
  const isV8Of11 = process.versions.v8.startsWith('11.')
  for (const flag of isV8Of11 ? [...FLAGS, ...FLAGS_OF_V8_11] : FLAGS) setFlagsFromString(flag)
}
