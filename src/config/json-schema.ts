/**
 * The JSON Schema of the configuration file, for editors. It is made from `schema.ts`, never written by hand.
 *
 * It adds what a file may hold beside its keys: comment keys everywhere, `$schema`, and the ways to say what a pool is made of.
 */
import { z } from 'zod'
import { configFile } from './schema.ts'

export interface SchemaNode {
  type?: string
  description?: string
  default?: unknown
  enum?: unknown[]
  properties?: Record<string, SchemaNode>
  patternProperties?: Record<string, SchemaNode>
  required?: string[]
  oneOf?: { required: string[] }[]
  anyOf?: SchemaNode[]
  items?: SchemaNode
  minItems?: number
  maxItems?: number
  minimum?: number
  maximum?: number
  pattern?: string
  propertyNames?: SchemaNode
  additionalProperties?: boolean | SchemaNode
  [keyword: string]: unknown
}

export const WAYS_TO_NAME_A_PROGRAM = ['command', 'agent', 'registry', 'url', 'members'] as const

/** The schema as published: draft 7, which every editor knows. */
export function jsonSchema(): SchemaNode {
  const schema = rawSchema()
  allowComments(schema)
  const pool = schema.properties?.['pools']?.items
  if (pool === undefined) throw new Error('the schema has no pools')
  pool.oneOf = WAYS_TO_NAME_A_PROGRAM.map((key) => ({ required: [key] }))
  const $schema = { type: 'string', description: 'The schema of this file, for editors.' }
  schema.properties = { $schema, ...schema.properties }
  return { ...schema, title: 'stdio Bus', allowComments: true, allowTrailingCommas: true }
}

/** The schema of the keys alone, which problems are explained with. */
export function rawSchema(): SchemaNode {
  return z.toJSONSchema(configFile, { io: 'input', target: 'draft-7' }) as SchemaNode
}

function allowComments(node: SchemaNode): void {
  const children = [...Object.values(node.properties ?? {}), ...(node.anyOf ?? []), ...(node.items ? [node.items] : [])]
  for (const child of children) allowComments(child)
  if (node.additionalProperties !== false) return
  node.patternProperties = { '^(_|\\$schema$)': { description: 'A comment.' } }
}
