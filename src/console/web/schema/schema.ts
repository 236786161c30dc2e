/**
 * A place of a JSON Schema 2020-12 as one flat schema: references followed, `allOf` put together (contract 15.10).
 *
 * Schemas come from servers that nobody trusts. They are looked at where something is drawn or checked and nowhere else, so one that
 * is huge or contains itself costs what is looked at; every way through them has a bound.
 */
import { canonical, isObject, own, type Properties } from './value.ts'

export type Schema = Properties

const MAX_MERGES = 200
const MAX_SEARCHED = 5_000

export interface Flat {
  readonly schema: Schema
  /** Why it cannot be drawn. */
  readonly problem?: string
}

class Beyond extends Error {}

/** The whole schema, in which references are looked up. */
export type Document = unknown

export function flatten(schema: unknown, document: Document): Flat {
  const budget = { left: MAX_MERGES }
  try {
    return { schema: flat(schema, document, budget) }
  } catch (error) {
    if (!(error instanceof Beyond)) throw error
    return { schema: isObject(schema) ? wordsOf(schema) : {}, problem: error.message }
  }
}

interface Budget {
  left: number
}

function flat(schema: unknown, document: Document, budget: Budget): Schema {
  if (--budget.left < 0) throw new Beyond('its schema leads in circles or goes too deep')
  if (!isObject(schema)) return {}
  const { $ref, $dynamicRef, allOf, ...rest } = schema
  let merged: Schema = rest
  for (const reference of [$ref, $dynamicRef])
    if (typeof reference === 'string') merged = merge(merged, flat(resolve(reference, document), document, budget))
  for (const part of Array.isArray(allOf) ? allOf : []) merged = merge(merged, flat(part, document, budget))
  return merged
}

/** What a reference of the same document leads to. */
export function resolve(reference: string, document: Document): unknown {
  if (!reference.startsWith('#')) throw new Beyond('its schema refers to another document')
  const fragment = decode(reference.slice(1))
  const found =
    fragment === '' || fragment.startsWith('/')
      ? fragment
          .split('/')
          .slice(1)
          .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
          .reduce<unknown>((at, key) => own(at, Array.isArray(at) ? Number(key) : key), document)
      : anchored(fragment, document)
  if (found === undefined) throw new Beyond('its schema refers to something that is not there')
  return found
}

export function isBeyond(error: unknown): error is Error {
  return error instanceof Beyond
}

function anchored(name: string, document: Document): unknown {
  const open: unknown[] = [document]
  for (let seen = 0; open.length > 0 && seen < MAX_SEARCHED; seen++) {
    const at = open.shift()
    if (own(at, '$anchor') === name || own(at, '$dynamicAnchor') === name) return at
    if (typeof at === 'object' && at !== null && open.length < MAX_SEARCHED)
      open.push(...Object.values(at).slice(0, MAX_SEARCHED))
  }
  return undefined
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

type Rule = (one: unknown, other: unknown) => unknown

const larger: Rule = (one, other) => (Number(other) > Number(one) ? other : one)
const smaller: Rule = (one, other) => (Number(other) < Number(one) ? other : one)
const both: Rule = (one, other) => ({ allOf: [one, other] })

/** How two schemas that both hold are one; what is not named here is said by the outer one. */
const RULES: Readonly<Record<string, Rule>> = {
  properties: (one, other) => {
    const merged = new Map(Object.entries(isObject(one) ? one : {}))
    for (const [name, schema] of Object.entries(isObject(other) ? other : {}))
      merged.set(name, merged.has(name) ? both(merged.get(name), schema) : schema)
    return Object.fromEntries(merged)
  },
  $defs: (one, other) => ({ ...(other as object), ...(one as object) }),
  required: (one, other) => [...new Set([...listOf(one), ...listOf(other)])],
  type: (one, other) => typesOf(one).filter((type) => allows(typesOf(other), type)),
  enum: (one, other) => {
    const known = new Set(listOf(other).map(canonical))
    return listOf(one).filter((value) => known.has(canonical(value)))
  },
  items: both,
  additionalProperties: both,
  propertyNames: both,
  minimum: larger,
  exclusiveMinimum: larger,
  minLength: larger,
  minItems: larger,
  minProperties: larger,
  maximum: smaller,
  exclusiveMaximum: smaller,
  maxLength: smaller,
  maxItems: smaller,
  maxProperties: smaller,
  anyOf: () => {
    throw new Beyond('its schema has choices within choices')
  },
  oneOf: () => {
    throw new Beyond('its schema has choices within choices')
  },
}

function merge(outer: Schema, inner: Schema): Schema {
  const merged = new Map(Object.entries(inner))
  for (const [key, value] of Object.entries(outer)) {
    const rule = merged.has(key) && Object.hasOwn(RULES, key) ? RULES[key] : undefined
    merged.set(key, rule === undefined ? value : rule(value, merged.get(key)))
  }
  return Object.fromEntries(merged)
}

export function typesOf(type: unknown): string[] {
  return (Array.isArray(type) ? type : [type]).filter((each) => typeof each === 'string')
}

export function allows(types: readonly string[], type: string): boolean {
  return types.length === 0 || types.includes(type) || (type === 'integer' && types.includes('number'))
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** What people are told, of a schema that cannot be drawn. */
function wordsOf({ title, description, default: value }: Schema): Schema {
  return {
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(value !== undefined && { default: value }),
  }
}
