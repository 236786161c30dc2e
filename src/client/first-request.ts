/**
 * Tells a host why there is no bus for it in the only place that every host reads: the answer to its first request.
 *
 * Many hosts never show what a program says on stderr (contract 6.10). It waits a moment for that request and answers
 * what came with it; notifications get no answer. Invariant: it ends, also when the host says nothing or has gone.
 */
import { Envelope, SHAPE } from '../wire/envelope.ts'
import { LineSplitter } from '../wire/frame.ts'
import { CODE, type ErrorObject, errorLine } from '../wire/jsonrpc.ts'
import { BusRefused, BusUnavailable } from './errors.ts'
import type { ShimStreams } from './stdio-shim.ts'

const FIRST_REQUEST_TIMEOUT_MS = 3_000
const MAX_LINE_BYTES = 16 * 1024 * 1024

/** Resolves once the host has its answer, or will not get any. */
export function refuseFirstRequest(error: Error, { stdin, stdout }: Omit<ShimStreams, 'say'>): Promise<void> {
  const splitter = new LineSplitter(MAX_LINE_BYTES)
  const envelope = new Envelope()
  const answers: Buffer[] = []
  const take = (bytes: Buffer, start: number, end: number): boolean => {
    if (envelope.read(bytes, start, end) === SHAPE.request) {
      answers.push(errorLine(envelope.idSpelling(), explain(error)))
    }
    return true
  }
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, FIRST_REQUEST_TIMEOUT_MS)
    const finish = (): void => {
      clearTimeout(timer)
      stdin.pause()
      if (answers.length === 0) resolve()
      else stdout.write(Buffer.concat(answers), () => resolve())
    }
    stdout.on('error', () => resolve())
    stdin.on('data', (chunk: Buffer) => {
      splitter.push(chunk, 0, take)
      if (answers.length > 0 || splitter.overflowed) finish()
    })
    stdin.once('error', finish)
    stdin.once('end', () => {
      splitter.finish(take)
      finish()
    })
  })
}

/** What the bus itself said where it said something, else that there is none. */
function explain(error: Error): ErrorObject {
  const { message } = error
  if (error instanceof BusRefused && error.answer !== undefined) return { ...error.answer, message }
  const retryable = error instanceof BusUnavailable ? { retryable: true } : {}
  return { code: CODE.internalError, message, data: { reason: 'bus_unavailable', ...retryable } }
}
