/**
 * From a schema and what was entered so far to the fields of a form (contract 15.10): pure, and drawn by somebody else.
 *
 * Only what is there or must be there is planned, so a schema that contains itself ends where nobody has entered anything. What
 * cannot be drawn is a field for JSON. A form has no more fields than a page can draw.
 */
import { type Chosen, seemsToFit } from './check.ts'
import { allows, type Document, flatten, listOf, type Schema, typesOf } from './schema.ts'
import { canonical, isObject, own, type Path, type Properties, pointerOf, typeOf } from './value.ts'

export type Kind = 'text' | 'number' | 'boolean' | 'null' | 'values' | 'list' | 'object' | 'choice' | 'json'

export interface Field {
  readonly path: Path
  readonly depth: number
  readonly pointer: string
  readonly kind: Kind
  /** The property, or the number of an item. */
  readonly name: string
  readonly title: string | undefined
  readonly description: string | undefined
  readonly isRequired: boolean
  readonly value: unknown
  readonly schema: Schema
  /** What one can choose from. */
  readonly options: readonly Option[]
  /** Which of them it is; -1: none. */
  readonly chosen: number
  /** Of an object its properties, of a list its items, of a choice what was chosen. */
  readonly fields: readonly Field[]
  /** So many more would be there: they are in the JSON alone. */
  readonly leftOff: number
  /** Why it is a field for JSON. */
  readonly note: string | undefined
}

export interface Option {
  readonly label: string
  readonly value: unknown
}

export interface Entered {
  readonly value: unknown
  readonly chosen: Chosen
}

const MAX_FIELDS = 500
const MAX_PROPERTIES = 150
const MAX_ITEMS = 100
const MAX_OPTIONS = 500
const MAX_CHOICES = 50
const MAX_DEPTH = 16
const MAX_GUESSES = 300

interface Plan {
  readonly document: Document
  readonly chosen: Chosen
  readonly budget: { fields: number; guesses: number }
}

interface Place {
  readonly path: Path
  readonly name: string
  readonly isRequired: boolean
  /** Choices of choices go deeper too, and stay where they are. */
  readonly depth: number
}

export function planForm(schema: unknown, { value, chosen }: Entered): Field {
  const plan = { document: schema, chosen, budget: { fields: MAX_FIELDS, guesses: MAX_GUESSES } }
  return planField(schema, value, { path: [], name: '', isRequired: true, depth: 0 }, plan)
}

function planField(source: unknown, value: unknown, place: Place, plan: Plan): Field {
  plan.budget.fields--
  const { schema, problem } = flatten(source, plan.document)
  const base = {
    ...place,
    pointer: pointerOf(place.path),
    title: wordsOf(schema['title']),
    description: wordsOf(schema['description']),
    value,
    schema,
    options: [],
    chosen: -1,
    fields: [],
    leftOff: 0,
    note: problem,
  } as const
  const asJson = (note: string | undefined): Field => ({ ...base, kind: 'json', note })
  if (problem !== undefined) return asJson(problem)
  if (place.depth > MAX_DEPTH) return asJson('it lies too deep')
  if (plan.budget.fields < 0) return asJson('the form is too long')
  const kind = kindOf(schema)
  // What was entered as JSON and is of another kind stays as it was entered.
  if (!isDrawable(kind, value)) return asJson(undefined)
  if (kind === 'values') return withOptions(base, valuesOf(schema)!)
  if (kind === 'choice') return planChoice(base, schema, plan)
  if (kind === 'object') return planObject(base, schema, plan)
  if (kind === 'list') return planList(base, schema, plan)
  return { ...base, kind }
}

const HOLDERS: Readonly<Record<string, string>> = { object: 'object', list: 'array' }

function isDrawable(kind: Kind, value: unknown): boolean {
  const holder = HOLDERS[kind]
  return holder === undefined || value === undefined || typeOf(value) === holder
}

const KINDS: Readonly<Record<string, Kind>> = {
  string: 'text',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
  null: 'null',
  array: 'list',
  object: 'object',
}

function kindOf(schema: Schema): Kind {
  if (valuesOf(schema) !== undefined) return 'values'
  const types = typesOf(schema['type'])
  if (choicesOf(schema) !== undefined) return 'choice'
  const [type] = types.length > 0 ? types : [impliedType(schema)]
  const kind = type === undefined ? undefined : KINDS[type]
  if (kind === 'object' && !isObject(schema['properties']) && !isObject(schema['additionalProperties'])) return 'json'
  if (kind === 'list' && !isObject(schema['items']) && !Array.isArray(schema['prefixItems'])) return 'json'
  return kind ?? 'json'
}

/** What a schema must mean that says no type. */
const IMPLIED: Readonly<Record<string, string>> = {
  properties: 'object',
  items: 'array',
  prefixItems: 'array',
  pattern: 'string',
  minLength: 'string',
  maxLength: 'string',
  format: 'string',
  minimum: 'number',
  maximum: 'number',
}

function impliedType(schema: Schema): string | undefined {
  const key = Object.keys(IMPLIED).find((each) => Object.hasOwn(schema, each))
  return key === undefined ? undefined : IMPLIED[key]
}

// ---- one of some values ----

/** The values it may have, if they are told one by one; names too, where choices are nothing else. */
export function valuesOf(schema: Schema): Option[] | undefined {
  if (Object.hasOwn(schema, 'const')) return [optionOf(schema['const'])]
  const values = schema['enum']
  const names = listOf(schema['enumNames'])
  if (Array.isArray(values) && values.length > 0 && values.length <= MAX_OPTIONS)
    return values.map((value, index) => optionOf(value, names[index]))
  const named = listOf(schema['oneOf'] ?? schema['anyOf'])
  if (named.length === 0 || named.length > MAX_OPTIONS) return undefined
  if (!named.every((option) => isObject(option) && Object.hasOwn(option, 'const'))) return undefined
  return named.map((option) => optionOf(own(option, 'const'), own(option, 'title')))
}

function optionOf(value: unknown, title?: unknown): Option {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return { label: typeof title === 'string' && title !== text ? `${text} (${title})` : text, value }
}

type Base = Omit<Field, 'kind'>

function withOptions(base: Base, options: readonly Option[]): Field {
  const spelt = canonical(base.value)
  const chosen = base.value === undefined ? -1 : options.findIndex(({ value }) => canonical(value) === spelt)
  return { ...base, kind: 'values', options, chosen }
}

// ---- one of some schemas ----

/** The schemas that one chooses from, each with what holds beside it. */
export function choicesOf(schema: Schema): readonly unknown[] | undefined {
  for (const kind of ['oneOf', 'anyOf']) {
    const options = schema[kind]
    if (!Array.isArray(options) || options.length === 0) continue
    const { [kind]: _options, title: _title, description: _description, default: _default, ...beside } = schema
    return options.slice(0, MAX_CHOICES).map((option) => ({ allOf: [option, beside] }))
  }
  const types = typesOf(schema['type'])
  if (types.length < 2) return undefined
  const { title: _title, description: _description, ...rest } = schema
  return types.map((type) => ({ ...rest, type }))
}

function planChoice(base: Base, schema: Schema, plan: Plan): Field {
  const choices = choicesOf(schema)!
  const flats = choices.map((choice) => flatten(choice, plan.document).schema)
  const options = flats.map((flat, index) => ({ label: choiceLabel(flat, index), value: index }))
  const chosen = Math.min(
    choices.length - 1,
    plan.chosen.get(base.pointer) ?? guessChoice(base.value, choices, flats, plan),
  )
  const field = planField(choices[chosen], base.value, { ...base, depth: base.depth + 2 }, plan)
  // Who has chosen something has to be told of it once.
  const fields = [{ ...field, title: undefined, description: field.description ?? undefined }]
  return { ...base, kind: 'choice', options, chosen, fields }
}

function choiceLabel(flat: Schema, index: number): string {
  const told = wordsOf(flat['title'])
  if (told !== undefined) return told
  const values = valuesOf(flat)
  if (values !== undefined && values.length === 1) return values[0]!.label
  const tag = tagOf(flat)
  if (tag !== undefined) return tag
  const [type] = typesOf(flat['type'])
  const required = listOf(flat['required']).filter((name) => typeof name === 'string')
  if (type === 'object' && required.length > 0) return required.slice(0, 3).join(', ')
  return type ?? `choice ${index + 1}`
}

/** What tells an object from its siblings. */
function tagOf(flat: Schema): string | undefined {
  for (const property of Object.values(isObject(flat['properties']) ? flat['properties'] : {}).slice(
    0,
    MAX_PROPERTIES,
  )) {
    const value = own(property, 'const')
    if (typeof value === 'string') return value
  }
  return undefined
}

function guessChoice(
  value: unknown,
  choices: readonly unknown[],
  flats: readonly Schema[],
  { document, budget }: Plan,
): number {
  if (value === undefined) return 0
  const fits = choices.findIndex((choice) => --budget.guesses >= 0 && seemsToFit(value, choice, document))
  if (fits >= 0) return fits
  const type = typeOf(value)
  const tagged = flats.findIndex((flat) => type === 'object' && hasTagsOf(flat, value as Properties))
  const typed = flats.findIndex((flat) => allows(typesOf(flat['type']), type))
  return Math.max(0, tagged >= 0 ? tagged : typed)
}

function hasTagsOf(flat: Schema, value: Properties): boolean {
  const tags = Object.entries(isObject(flat['properties']) ? flat['properties'] : {}).filter(
    ([, property]) => own(property, 'const') !== undefined,
  )
  return tags.length > 0 && tags.every(([name, property]) => own(value, name) === own(property, 'const'))
}

// ---- objects and lists ----

function planObject(base: Base, schema: Schema, plan: Plan): Field {
  if (base.value === undefined && !base.isRequired) return { ...base, kind: 'object' }
  const properties = Object.entries(isObject(schema['properties']) ? schema['properties'] : {})
  const required = new Set(listOf(schema['required']))
  const drawn = properties.slice(0, Math.min(MAX_PROPERTIES, Math.max(0, plan.budget.fields)))
  const fields = drawn.map(([name, property]) =>
    planField(
      property,
      own(base.value, name),
      { path: [...base.path, name], name, isRequired: required.has(name), depth: base.depth + 1 },
      plan,
    ),
  )
  const known = new Set(properties.map(([name]) => name))
  const others = Object.keys(isObject(base.value) ? base.value : {}).filter((name) => !known.has(name))
  const more = others
    .slice(0, MAX_ITEMS)
    .map((name) =>
      planField(
        schema['additionalProperties'],
        own(base.value, name),
        { path: [...base.path, name], name, isRequired: false, depth: base.depth + 1 },
        plan,
      ),
    )
  return { ...base, kind: 'object', fields: [...fields, ...more], leftOff: properties.length - drawn.length }
}

function planList(base: Base, schema: Schema, plan: Plan): Field {
  const items = Array.isArray(base.value) ? base.value : []
  const drawn = items.slice(0, Math.min(MAX_ITEMS, Math.max(0, plan.budget.fields)))
  const fields = drawn.map((item, index) =>
    planField(
      itemSchema(schema, index),
      item,
      { path: [...base.path, index], name: String(index + 1), isRequired: true, depth: base.depth + 1 },
      plan,
    ),
  )
  return { ...base, kind: 'list', fields, leftOff: items.length - drawn.length }
}

export function itemSchema(schema: Schema, index: number): unknown {
  const first = listOf(schema['prefixItems'])
  return index < first.length ? first[index] : schema['items']
}

function wordsOf(text: unknown): string | undefined {
  return typeof text === 'string' && text.trim() !== '' ? text : undefined
}
