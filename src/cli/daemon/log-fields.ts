/** A line of the log as it is written: JSON, told from whatever else ends up in the same file. */
export type LogFields = Readonly<Record<string, unknown>>

/** Undefined: the line is none of the log's own, such as the last words of a program that crashed. */
export function readLogLine(line: string): LogFields | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const fields: unknown = JSON.parse(line)
    return typeof fields === 'object' && fields !== null && 'msg' in fields ? (fields as LogFields) : undefined
  } catch {
    return undefined
  }
}
