/** Rows that are found by the bytes of a method, without decoding it; methods are compared by value, like every routing field. */
import type { Envelope } from './envelope.ts'
import { FIELD } from './fields.ts'

interface Entry<Row> {
  readonly method: Buffer
  readonly row: Row
}

export class MethodTable<Row> {
  readonly #byLength: Entry<Row>[][] = []

  constructor(rows: Readonly<Record<string, Row>>) {
    for (const [name, row] of Object.entries(rows)) {
      const method = Buffer.from(name)
      this.#byLength[method.length] ??= []
      this.#byLength[method.length]!.push({ method, row })
    }
  }

  find(line: Envelope): Row | undefined {
    const start = line.startOf(FIELD.method) + 1
    const end = line.endOf(FIELD.method) - 1
    if (line.isPlain(FIELD.method)) return this.#findAt(line.bytes, start, end)
    const method = Buffer.from(line.text(FIELD.method)!)
    return this.#findAt(method, 0, method.length)
  }

  #findAt(bytes: Buffer, start: number, end: number): Row | undefined {
    const candidates = this.#byLength[end - start]
    if (candidates === undefined) return undefined
    for (const { method, row } of candidates) if (isAt(method, bytes, start)) return row
    return undefined
  }
}

function isAt(method: Buffer, bytes: Buffer, start: number): boolean {
  for (let i = 0; i < method.length; i++) if (method[i] !== bytes[start + i]) return false
  return true
}
