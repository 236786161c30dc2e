/** What stands in a form before anybody has entered anything: defaults, and what can only be one value. */
import { choicesOf } from './plan.ts'
import { type Document, flatten, listOf, type Schema, typesOf } from './schema.ts'
import { isObject, own, type Properties, Unread } from './value.ts'

const MAX_DEPTH = 8
const MAX_PROPERTIES = 150

/** Of the whole form. */
export function initialValue(schema: unknown): unknown {
  return initialOf(schema, schema, true) ?? {}
}

/** undefined: it is left out. */
export function initialOf(source: unknown, document: Document, isRequired: boolean, depth = 0): unknown {
  const { schema, problem } = flatten(source, document)
  if (schema['default'] !== undefined) return schema['default']
  if (problem !== undefined || !isRequired || depth > MAX_DEPTH) return undefined
  if (Object.hasOwn(schema, 'const')) return schema['const']
  const types = typesOf(schema['type'])
  const choices = choicesOf(schema)
  if (choices !== undefined && schema['enum'] === undefined) return initialOf(choices[0], document, true, depth + 1)
  if (types[0] === 'null') return null
  if (types[0] === 'array') return []
  if (types[0] === 'object' || isObject(schema['properties'])) return initialObject(schema, document, depth)
  return undefined
}

function initialObject(schema: Schema, document: Document, depth: number): Properties {
  const required = new Set(listOf(schema['required']))
  const properties = Object.entries(isObject(schema['properties']) ? schema['properties'] : {})
  return Object.fromEntries(
    properties.slice(0, MAX_PROPERTIES).flatMap(([name, property]) => {
      const value = initialOf(property, document, required.has(name), depth + 1)
      return value === undefined ? [] : [[name, value]]
    }),
  )
}

/** A new item of a list: there, even where nothing is known of it. */
export function initialItem(source: unknown, document: Document): unknown {
  const value = initialOf(source, document, true)
  if (value !== undefined) return value
  return typesOf(flatten(source, document).schema['type'])[0] === 'string' ? '' : new Unread('')
}

/** What stays of a value when another of several schemas is chosen. */
export function rechosen(before: unknown, choice: unknown, document: Document): unknown {
  const fresh = initialOf(choice, document, true)
  const { properties } = flatten(choice, document).schema
  if (!isObject(before) || !isObject(fresh) || !isObject(properties)) return fresh
  const kept = Object.entries(before).filter(
    ([name]) => Object.hasOwn(properties, name) && own(properties[name], 'const') === undefined,
  )
  return Object.fromEntries([...Object.entries(fresh), ...kept])
}
