/**
 * Lines for the kernel out of the output of a worker that prints its answers over several lines.
 *
 * An object that is too long becomes a line that is too long: the kernel ends the worker for it, as for any other.
 */
import { JsonObjectSplitter } from '../../aio/json-framing.ts'
import type { Framing } from './worker-link.ts'

const NEWLINE = Buffer.from('\n')
const SPACE = 0x20

export function jsonFraming(maxObjectBytes: number): Framing {
  const splitter = new JsonObjectSplitter(maxObjectBytes)
  return (chunk) => {
    const lines: Buffer[] = []
    splitter.push(chunk, (object) => lines.push(object, NEWLINE))
    if (splitter.overflowed) lines.push(Buffer.alloc(maxObjectBytes + 1, SPACE))
    return Buffer.concat(lines)
  }
}
