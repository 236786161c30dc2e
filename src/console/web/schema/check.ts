/**
 * What is wrong with a value, each at the place where it is (contract 15.10): nothing invalid is sent.
 *
 * It says the truth about what it looks at. What it cannot tell (an expression it does not know, a reference elsewhere, a schema
 * that is too large) it leaves to the server.
 */
import { isRawNumber } from '../exact.ts'
import { formatOf } from './formats.ts'
import { type Effort, fitsPattern, MAX_EFFORT } from './pattern.ts'
import { allows, type Document, isBeyond, listOf, resolve, type Schema, typesOf } from './schema.ts'
import { canonical, isNumber, isObject, own, type Path, pointerOf, typeOf, Unread } from './value.ts'

export interface Problem {
  readonly path: Path
  readonly message: string
}

/** Which of several choices somebody has chosen, by the pointer of the place. */
export type Chosen = ReadonlyMap<string, number>

const MAX_STEPS = 20_000
const MAX_DEPTH = 100
const MAX_PROBLEMS = 100
const MAX_NAMED = 8

interface Look {
  readonly document: Document
  readonly chosen: Chosen
  readonly budget: { steps: number }
  readonly effort: Effort
  readonly depth: number
}

export function check(value: unknown, schema: unknown, document: Document, chosen: Chosen = new Map()): Problem[] {
  const look = { document, chosen, budget: { steps: MAX_STEPS }, effort: { steps: MAX_EFFORT }, depth: 0 }
  return find(value, schema, [], look).slice(0, MAX_PROBLEMS)
}

/** Whether nothing is wrong that is found soon. */
export function seemsToFit(value: unknown, schema: unknown, document: Document): boolean {
  const budget = { steps: MAX_STEPS / 20 }
  return (
    find(value, schema, [], { document, chosen: new Map(), budget, effort: { steps: MAX_EFFORT / 100 }, depth: 0 })
      .length === 0
  )
}

function find(value: unknown, schema: unknown, path: Path, look: Look): Problem[] {
  if (--look.budget.steps < 0 || look.depth > MAX_DEPTH) return []
  if (value instanceof Unread) return [{ path, message: value.text.trim() === '' ? 'is required' : 'is not JSON' }]
  if (schema === false) return [{ path, message: 'is not allowed here' }]
  if (!isObject(schema)) return []
  const deeper = { ...look, depth: look.depth + 1 }
  const own = ofItself(value, schema, path, look.effort)
  // What has the wrong type has nothing else to be told.
  if (own.length > 0) return own
  return [...ofParts(value, schema, path, deeper), ...ofOthers(value, schema, path, deeper)]
}

/** Rules that need no other schema. */
function ofItself(value: unknown, schema: Schema, path: Path, effort: Effort): Problem[] {
  const types = typesOf(schema['type'])
  if (types.length > 0 && !types.some((type) => isOfType(value, type)))
    return [{ path, message: `must be ${types.map((type) => NAMES[type] ?? type).join(' or ')}` }]
  const messages = [...ofValues(value, schema)]
  if (isNumber(value)) messages.push(...ofNumber(value, schema))
  if (typeof value === 'string') messages.push(...ofString(value, schema, effort))
  if (Array.isArray(value)) messages.push(...ofSize(value.length, schema, 'Items'))
  if (Array.isArray(value) && schema['uniqueItems'] === true && hasEqual(value))
    messages.push('must have no item twice')
  if (isObject(value)) messages.push(...ofSize(Object.keys(value).length, schema, 'Properties'))
  return messages.map((message) => ({ path, message }))
}

const NAMES: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  null: 'null',
  array: 'a list',
  object: 'an object',
}

function isOfType(value: unknown, type: string): boolean {
  if (type !== 'integer') return typeOf(value) === type
  if (isRawNumber(value)) return /^-?\d+$/.test(value.rawJSON) || Number.isInteger(Number(value.rawJSON))
  return Number.isInteger(value)
}

function ofValues(value: unknown, schema: Schema): string[] {
  if (Object.hasOwn(schema, 'const') && canonical(value) !== canonical(schema['const']))
    return [`must be ${JSON.stringify(schema['const'])}`]
  const values = schema['enum']
  if (!Array.isArray(values) || values.some((each) => canonical(each) === canonical(value))) return []
  const named = values.slice(0, MAX_NAMED).map((each) => JSON.stringify(each))
  return [`must be one of ${named.join(', ')}${values.length > MAX_NAMED ? ', …' : ''}`]
}

function figureOf(value: unknown): number {
  return isRawNumber(value) ? Number(value.rawJSON) : Number(value)
}

type Bound = readonly [key: string, isBroken: (figure: number, bound: number) => boolean, words: string]

const BOUNDS: readonly Bound[] = [
  ['minimum', (figure, bound) => figure < bound, 'must be at least'],
  ['maximum', (figure, bound) => figure > bound, 'must be at most'],
  ['exclusiveMinimum', (figure, bound) => figure <= bound, 'must be more than'],
  ['exclusiveMaximum', (figure, bound) => figure >= bound, 'must be less than'],
]

function ofNumber(value: unknown, schema: Schema): string[] {
  const figure = figureOf(value)
  const broken = BOUNDS.filter(([key, isBroken]) => isNumber(schema[key]) && isBroken(figure, figureOf(schema[key])))
  const messages = broken.map(([key, , words]) => `${words} ${figureOf(schema[key])}`)
  const step = schema['multipleOf']
  if (typeof step === 'number' && step > 0 && !isMultiple(figure, step)) messages.push(`must be a multiple of ${step}`)
  return messages
}

/** 0.3 is a multiple of 0.1, whatever its bits say. */
function isMultiple(figure: number, step: number): boolean {
  const times = figure / step
  return Math.abs(times - Math.round(times)) <= 1e-9 * Math.max(1, Math.abs(times))
}

function ofString(value: string, schema: Schema, effort: Effort): string[] {
  const messages = ofSize([...value].length, schema, 'Length')
  const format = formatOf(schema['format'])
  if (format !== undefined && !format.fits(value))
    messages.push(`must be of the format ${schema['format']}, such as ${format.example}`)
  const pattern = schema['pattern']
  if (typeof pattern === 'string' && fitsPattern(value, pattern, effort) === false) messages.push(`must fit ${pattern}`)
  return messages
}

const UNITS: Readonly<Record<string, string>> = { Items: 'items', Properties: 'properties', Length: 'characters' }

function ofSize(size: number, schema: Schema, what: string): string[] {
  const [least, most] = [schema[`min${what}`], schema[`max${what}`]]
  if (typeof least === 'number' && size < least) return [`must have at least ${least} ${UNITS[what]}, has ${size}`]
  if (typeof most === 'number' && size > most) return [`must have at most ${most} ${UNITS[what]}, has ${size}`]
  return []
}

function hasEqual(values: readonly unknown[]): boolean {
  return new Set(values.map(canonical)).size < values.length
}

// ---- what a value is made of ----

function ofParts(value: unknown, schema: Schema, path: Path, look: Look): Problem[] {
  if (Array.isArray(value)) return ofItems(value, schema, path, look)
  return isObject(value) ? ofProperties(value, schema, path, look) : []
}

function ofItems(value: readonly unknown[], schema: Schema, path: Path, look: Look): Problem[] {
  const first = listOf(schema['prefixItems'])
  return value.flatMap((item, index) =>
    find(item, index < first.length ? first[index] : schema['items'], [...path, index], look),
  )
}

function ofProperties(value: Readonly<Record<string, unknown>>, schema: Schema, path: Path, look: Look): Problem[] {
  const required = listOf(schema['required']).filter((name) => typeof name === 'string')
  const dependent = Object.entries(isObject(schema['dependentRequired']) ? schema['dependentRequired'] : {})
    .filter(([name]) => Object.hasOwn(value, name))
    .flatMap(([, names]) => listOf(names).filter((name) => typeof name === 'string'))
  const missing = [...new Set([...required, ...dependent])].filter((name) => !Object.hasOwn(value, name))
  return [
    ...missing.slice(0, MAX_PROBLEMS).map((name) => ({ path: [...path, name], message: 'is required' })),
    ...Object.entries(value).flatMap(([name, each]) => ofProperty(name, each, schema, [...path, name], look)),
  ]
}

function ofProperty(name: string, value: unknown, schema: Schema, path: Path, look: Look): Problem[] {
  const named = own(schema['properties'], name)
  const patterned = Object.entries(isObject(schema['patternProperties']) ? schema['patternProperties'] : {})
    .filter(([pattern]) => fitsPattern(name, pattern, look.effort) !== false)
    .map(([, each]) => each)
  const found = [...(named === undefined ? [] : [named]), ...patterned]
  const schemas = found.length > 0 ? found : [schema['additionalProperties']]
  const names = schema['propertyNames']
  return [
    ...(names === undefined ? [] : find(name, names, path, look)),
    ...schemas.flatMap((each) => find(value, each, path, look)),
  ]
}

// ---- schemas that hold beside this one ----

function ofOthers(value: unknown, schema: Schema, path: Path, look: Look): Problem[] {
  const { $ref, $dynamicRef, allOf, not } = schema
  return [
    ...[$ref, $dynamicRef].flatMap((reference) => ofReference(value, reference, path, look)),
    ...listOf(allOf).flatMap((each) => find(value, each, path, look)),
    ...ofChoices(value, schema, path, look),
    ...(not !== undefined && find(value, not, path, look).length === 0
      ? [{ path, message: 'is what its schema forbids' }]
      : []),
    ...ofCondition(value, schema, path, look),
  ]
}

function ofReference(value: unknown, reference: unknown, path: Path, look: Look): Problem[] {
  if (typeof reference !== 'string') return []
  try {
    return find(value, resolve(reference, look.document), path, look)
  } catch (error) {
    if (isBeyond(error)) return []
    throw error
  }
}

function ofCondition(value: unknown, schema: Schema, path: Path, look: Look): Problem[] {
  if (schema['if'] === undefined) return []
  const branch = find(value, schema['if'], path, look).length === 0 ? 'then' : 'else'
  return schema[branch] === undefined ? [] : find(value, schema[branch], path, look)
}

function ofChoices(value: unknown, schema: Schema, path: Path, look: Look): Problem[] {
  for (const kind of ['anyOf', 'oneOf']) {
    const options = listOf(schema[kind])
    if (options.length === 0) continue
    const found = options.map((option) => find(value, option, path, look))
    const fitting = found.filter((problems) => problems.length === 0).length
    if (fitting === 0) return found[nearest(options, value, look.chosen.get(pointerOf(path)))]!
    if (kind === 'oneOf' && fitting > 1 && look.budget.steps > 0)
      return [{ path, message: `fits ${fitting} of the choices, of which only one may hold` }]
  }
  return []
}

/** What was chosen, else the one that was meant. */
function nearest(options: readonly unknown[], value: unknown, chosen: number | undefined): number {
  if (chosen !== undefined && chosen < options.length) return chosen
  const type = typeOf(value)
  return Math.max(
    0,
    options.findIndex((option) => allows(typesOf(own(option, 'type')), type)),
  )
}
