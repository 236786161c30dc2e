/**
 * The little of JSON-RPC 2.0 that both ends of a pipe must agree on: codes, and how an error line is spelled.
 *
 * Lines made here end with their newline and never hold one inside.
 */
import { JsonText } from './ready-json.ts'

export const CODE = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  sessionNotFound: -32002,
  requestCancelled: -32800,
} as const

export interface ErrorObject {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** `idSpelling` is JSON: the id as its sender wrote it, so that it finds its own request again. */
export function errorLine(idSpelling: string, error: ErrorObject): Buffer {
  return Buffer.from(`{"jsonrpc":"2.0","id":${idSpelling},"error":${JSON.stringify(error)}}\n`)
}

/** `result` may be ready-made JSON. */
export function resultLine(idSpelling: string, result: unknown): Buffer {
  const text = result instanceof JsonText ? result.text : JSON.stringify(result)
  return Buffer.from(`{"jsonrpc":"2.0","id":${idSpelling},"result":${text}}\n`)
}

export function notificationLine(method: string, params: unknown): Buffer {
  return Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`)
}
