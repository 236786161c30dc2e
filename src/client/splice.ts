/** Puts other words into a line, copying the rest byte for byte. */
export function spliced(
  bytes: Buffer,
  start: number,
  end: number,
  from: number,
  to: number,
  replacement: string,
): Buffer {
  return Buffer.concat([bytes.subarray(start, from), Buffer.from(replacement), bytes.subarray(to, end)])
}
