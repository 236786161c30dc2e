/** How a method refuses: an error with a code and data of its own, which the caller gets as they are. */
import { CODE, type ErrorObject } from '../wire/jsonrpc.ts'

/** The codes of JSON-RPC; any other integer may be given as well. */
export type ErrorCode = (typeof CODE)[keyof typeof CODE] | (number & {})

export class WorkerError extends Error {
  override readonly name = 'WorkerError'
  readonly code: number
  readonly data: unknown

  constructor(code: ErrorCode, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

/** What a caller is told of whatever a method has thrown: the sentence, never where in the program it happened. */
export function errorObjectOf(error: unknown, isCancelled: boolean): ErrorObject {
  if (error instanceof WorkerError) {
    const { code, message, data } = error
    return isSayable(data) ? { code, message, data } : { code, message }
  }
  if (isCancelled) return { code: CODE.requestCancelled, message: 'Request cancelled' }
  return { code: CODE.internalError, message: error instanceof Error ? error.message : String(error) }
}

/** Undefined, a circle or a function is left out: the error itself must arrive. */
function isSayable(data: unknown): boolean {
  try {
    return JSON.stringify(data) !== undefined
  } catch {
    return false
  }
}
