/**
 * The fields of an item, by the types that the protocol gives them (contract 13.8).
 *
 * Hosts refuse a whole list for one field that they cannot read, so one member would cost them all the others. Such a field
 * is left out; a tool without a usable `inputSchema` takes any object. Only types are looked at: what a field says is its
 * member's.
 */
type Fields = Readonly<Record<string, unknown>>
type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string'
const isFlag: Check = (value) => typeof value === 'boolean'
const isNumber: Check = (value) => typeof value === 'number'
const isShare: Check = (value) => typeof value === 'number' && value >= 0 && value <= 1
const isMoment: Check = (value) =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(value)
const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const oneOf =
  (...words: readonly string[]): Check =>
  (value) =>
    words.includes(value as string)
const listOf =
  (isOne: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(isOne)
const objectWith =
  (checks: Readonly<Record<string, Check>>, ...required: readonly string[]): Check =>
  (value) =>
    isObject(value) && unsoundIn(value, checks).length === 0 && required.every((key) => Object.hasOwn(value, key))

const isProperties: Check = (value) =>
  isObject(value) && Object.values(value).every((property) => typeof property === 'object' && property !== null)
const isSchema = objectWith({ type: oneOf('object'), properties: isProperties, required: listOf(isText) }, 'type')
const isIcon = objectWith(
  { src: isText, mimeType: isText, sizes: listOf(isText), theme: oneOf('light', 'dark') },
  'src',
)
const isArgument = objectWith({ name: isText, description: isText, required: isFlag }, 'name')
const isHints = objectWith({
  title: isText,
  readOnlyHint: isFlag,
  destructiveHint: isFlag,
  idempotentHint: isFlag,
  openWorldHint: isFlag,
})
const isMarks = objectWith({ audience: listOf(oneOf('user', 'assistant')), priority: isShare, lastModified: isMoment })
const isExecution = objectWith({ taskSupport: oneOf('required', 'optional', 'forbidden') })

const TOLD = { title: isText, description: isText, icons: listOf(isIcon) }
const RESOURCE = { ...TOLD, mimeType: isText, size: isNumber, annotations: isMarks }
/** By the key of the list. */
const CHECKS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  tools: { ...TOLD, inputSchema: isSchema, outputSchema: isSchema, annotations: isHints, execution: isExecution },
  prompts: { ...TOLD, arguments: listOf(isArgument) },
  resources: RESOURCE,
  resourceTemplates: RESOURCE,
}

/** The item with what hosts can read of it; undefined: that is all of it. */
export function mended(list: string, fields: Fields): Fields | undefined {
  const unsound = new Set(unsoundIn(fields, CHECKS[list] ?? {}))
  const needsSchema = list === 'tools' && (unsound.has('inputSchema') || !Object.hasOwn(fields, 'inputSchema'))
  if (unsound.size === 0 && !needsSchema) return undefined
  const kept = Object.fromEntries(Object.entries(fields).filter(([key]) => !unsound.has(key)))
  return needsSchema ? { ...kept, inputSchema: schemaFrom(fields['inputSchema']) } : kept
}

/** As much of it as can be one. */
function schemaFrom(given: unknown): Fields {
  const schema = { ...(isObject(given) ? given : {}), type: 'object' }
  return isSchema(schema) ? schema : { type: 'object' }
}

function unsoundIn(fields: Fields, checks: Readonly<Record<string, Check>>): readonly string[] {
  return Object.keys(checks).filter((key) => Object.hasOwn(fields, key) && !checks[key]!(fields[key]))
}
