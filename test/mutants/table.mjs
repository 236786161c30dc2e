/**
 * One-line breakages of the bus: which clause each breaks, and the tests that must notice.
 *
 * A row is data: the file, the text to be found in it exactly once, what it becomes, and the conformance files that are
 * run, of which only the tests whose titles begin with the clause count. A row whose text is not found any more is stale
 * and fails the run: it is to be rewritten, not removed.
 */
import { EDGES } from './edges.mjs'
import { KERNEL_BOUNDS } from './kernel-bounds.mjs'
import { KERNEL_ROUTING } from './kernel-routing.mjs'

export const MUTANTS = [...EDGES, ...KERNEL_ROUTING, ...KERNEL_BOUNDS]
