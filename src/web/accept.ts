/** Which of the types that a path can answer with a request accepts (contract 10.5); weights do not matter, wildcards and absence count. */
export function accepts(header: string | undefined, type: string): boolean {
  if (header === undefined || header.trim() === '') return true
  const [family] = type.split('/')
  return header
    .split(',')
    .map((range) => range.split(';')[0]!.trim().toLowerCase())
    .some((range) => range === type || range === '*/*' || range === `${family}/*`)
}

export const JSON_TYPE = 'application/json'
export const STREAM_TYPE = 'text/event-stream'
