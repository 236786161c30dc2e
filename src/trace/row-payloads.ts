/**
 * Makes the payloads of one call fit to be kept or shown; the same for the database and for the memory of recent calls.
 */
import type { KeptPayload } from './payload.ts'
import type { CallRow } from './row.ts'
import { FLAG } from './schema.ts'

export type Keep = (text: string) => KeptPayload

export function keepPayloads(row: CallRow, keep: Keep): Pick<CallRow, 'input' | 'output' | 'error' | 'flags'> {
  const input = row.input === null ? undefined : keep(row.input)
  const output = row.output === null ? undefined : keep(row.output)
  const cuts = (input?.truncated ? FLAG.inputCut : 0) | (output?.truncated ? FLAG.outputCut : 0)
  const error = row.error === null ? null : keepError(row.error, keep)
  return { input: input?.text ?? null, output: output?.text ?? null, error, flags: row.flags | cuts }
}

/** The message stays readable even when the data is cut: only `data` is held to the payload limit. */
function keepError(text: string, keep: Keep): string {
  const { data, ...rest } = JSON.parse(text) as Record<string, unknown>
  if (data === undefined) return text
  return `${JSON.stringify(rest).slice(0, -1)},"data":${keep(JSON.stringify(data)).text}}`
}
