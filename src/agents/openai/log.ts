/**
 * Diagnostics on stderr, one line each.
 *
 * It is never given prompt text, file content or a key; what peers named is flattened and escaped here.
 */
import { toLine } from './redact.ts'

export type Log = (message: string) => void

/** Writes to stderr under the agent's name. */
export const logToStderr: Log = (message) => {
  process.stderr.write(`openai-agent: ${toLine(message, 1000)}\n`)
}
