/**
 * A trace as AIO JSON: the document that `bus::traces.get` answers with, which both texts of the protocol can read.
 */
import type { TraceDocument } from './document.ts'

export function exportAio(trace: TraceDocument): TraceDocument {
  return trace
}
