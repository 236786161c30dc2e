/**
 * Lets the heap of the bus grow before garbage is collected.
 *
 * The bus keeps few objects and many short-lived chunks. As it is, the runtime collects whenever the chunks outgrow a small
 * heap, up to thirty times a second under long lines, which costs more than all routing. With this factor a collection
 * comes after some sixty megabytes of chunks instead of ten.
 *
 * The room for young objects stays as small as it began: a client that names a hundred thousand sessions makes objects that
 * all stay, and copying sixteen megabytes of them at once would hold up everybody; a small room is copied in little time.
 */
import { setFlagsFromString } from 'node:v8'

const GROWING_PERCENT = 700
const YOUNG_GROWTH_FACTOR = 1

export function letHeapGrow(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`)
  setFlagsFromString(`--semi-space-growth-factor=${YOUNG_GROWTH_FACTOR}`)
}
