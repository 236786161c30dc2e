/**
 * Arguments of tools that a server of the stateless era wants as headers too (`Mcp-Param-*`), learnt from its lists.
 *
 * A tool says so by `x-mcp-header` beside a property of its input. Only what the server may ask for is made: texts, whole
 * numbers and truth values that lie in objects. Bounded: the oldest tools are forgotten.
 */
const MAX_TOOLS = 10_000
const MAX_PARAMETERS = 64
const MAX_DEPTH = 16
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean', 'number'])

interface Parameter {
  readonly header: string
  readonly path: readonly string[]
}

type Json = Readonly<Record<string, unknown>>

export class ToolHeaders {
  readonly #tools = new Map<string, readonly Parameter[]>()

  /** A list of tools has come. */
  learn(tools: unknown): void {
    if (!Array.isArray(tools)) return
    for (const tool of tools) {
      const { name, inputSchema } = asObject(tool)
      if (typeof name !== 'string') continue
      this.#tools.delete(name)
      const parameters = parametersOf(asObject(inputSchema), [])
      if (parameters.length > 0) this.#tools.set(name, parameters.slice(0, MAX_PARAMETERS))
    }
    for (const name of this.#tools.keys()) {
      if (this.#tools.size <= MAX_TOOLS) break
      this.#tools.delete(name)
    }
  }

  headersFor(name: unknown, args: unknown): Record<string, string> {
    const headers: Record<string, string> = {}
    for (const { header, path } of this.#tools.get(String(name)) ?? []) {
      const text = textOf(valueAt(args, path))
      if (text !== undefined) headers[`mcp-param-${header.toLowerCase()}`] = fieldValue(text)
    }
    return headers
  }
}

function parametersOf(schema: Json, path: readonly string[]): Parameter[] {
  const header = schema['x-mcp-header']
  const isOne = path.length > 0 && typeof header === 'string' && TOKEN.test(header) && TYPES.has(schema['type'])
  const own = isOne ? [{ header, path }] : []
  if (path.length >= MAX_DEPTH) return own
  const below = Object.entries(asObject(schema['properties'])).flatMap(([key, inner]) =>
    parametersOf(asObject(inner), [...path, key]),
  )
  return [...own, ...below]
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  let at = value
  for (const key of path) at = Object.hasOwn(asObject(at), key) ? asObject(at)[key] : undefined
  return at
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value)
}

const PLAIN = /^[\t\x20-\x7e]+$/
const ENCODED = /^=\?base64\?.*\?=$/

/** A text as the value of a header: as it is, or in the base64 form where it could not be sent or read so. */
export function fieldValue(text: string): string {
  const isPlain = PLAIN.test(text) && text === text.trim() && !ENCODED.test(text)
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}

export function asObject(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}
}
