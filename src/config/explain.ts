/**
 * Turns what the schema library says into findings that people understand: what was found, what is allowed, what was
 * probably meant. The words come from the schema itself, so they cannot fall behind it.
 */
import type { z } from 'zod'
import { rawSchema, type SchemaNode } from './json-schema.ts'
import { LIMIT_NAMES } from './limit-keys.ts'
import { type Finding, listOf, type Path, quote, showPath, showValue } from './problem.ts'
import { suggest } from './suggest.ts'

type Issue = z.core.$ZodIssue

/** Keys that people bring along from other programs' files. */
const FOREIGN_KEYS: Record<string, string> = {
  transport: 'listen',
  workers: 'pools',
  agent_servers: 'pools',
  name: 'id',
  cmd: 'command',
  environment: 'env',
  count: 'instances',
  replicas: 'instances',
  size: 'instances',
  working_directory: 'cwd',
  url: 'endpoint',
}

/** Made when the first file with a problem comes, and kept: making it takes longer than reading a file. */
let schemaOfKeys: SchemaNode | undefined

/** Every finding behind `issues`; `value` is the file they were found in, `of` its schema where it is not the configuration's. */
export function explainIssues(issues: readonly Issue[], value: unknown, of?: SchemaNode): Finding[] {
  const schema = of ?? (schemaOfKeys ??= rawSchema())
  return issues.flatMap((issue) => explain(issue, [], { schema, value }))
}

interface Context {
  readonly schema: SchemaNode
  readonly value: unknown
}

function explain(issue: Issue, prefix: Path, context: Context): Finding[] {
  const path = [...prefix, ...(issue.path as (string | number)[])]
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(key, path, context))
  if (issue.code === 'invalid_union') return explainUnion(issue, path, context)
  if (issue.code === 'invalid_key')
    return [{ ...wrongValue(issue.issues[0] ?? issue, path, context), at: 'key', found: quote(String(path.at(-1))) }]
  return [wrongValue(issue, path, context)]
}

/** Only the branch that fits the kind of value can say what is wrong inside it. */
function explainUnion(issue: z.core.$ZodIssueInvalidUnion, path: Path, context: Context): Finding[] {
  const fitting = issue.errors.find(
    (errors) => !errors.some((it) => it.code === 'invalid_type' && it.path.length === 0),
  )
  if (fitting === undefined) return [wrongValue(issue, path, context)]
  return fitting.flatMap((inner) => explain(inner, path, context))
}

function wrongValue(issue: Issue, path: Path, { schema, value }: Context): Finding {
  const found = valueAt(value, path)
  const node = nodesAt(schema, path)
  const isWorded = issue.code === 'invalid_format' || issue.code === 'custom'
  const finding: Finding = {
    path,
    found: showValue(found, path),
    allowed: isWorded ? issue.message : describeNodes(node),
  }
  const suggestion = suggestValue(found, node, path)
  return suggestion === undefined ? finding : { ...finding, suggestion }
}

function suggestValue(found: unknown, nodes: readonly SchemaNode[], path: Path): string | undefined {
  if (found === undefined) return `add ${quote(String(path.at(-1)))}`
  if (typeof found !== 'string') return undefined
  const meant = suggest(found, wordsOf(nodes))
  if (meant !== undefined) return `did you mean ${quote(meant)}?`
  const isQuoted = nodes.some(({ type }) => UNQUOTED[type ?? '']?.test(found))
  return isQuoted ? 'write it without the quotes' : undefined
}

/** Texts that would be right without their quotes. */
const UNQUOTED: Record<string, RegExp> = { integer: /^-?\d+$/, boolean: /^(true|false)$/ }

function unknownKey(key: string, parent: Path, { schema }: Context): Finding {
  const known = nodesAt(schema, parent).flatMap((node) => Object.keys(node.properties ?? {}))
  const suggestion = suggestKey(key, known, parent, schema)
  return {
    path: [...parent, key],
    at: 'key',
    found: `the unknown key ${quote(key)}`,
    allowed: known.length === 0 ? 'no keys here' : listOf(known),
    suggestion: suggestion ?? 'remove it, or begin its name with "_" to keep it as a comment',
  }
}

/** As other programs call their lists of servers. */
const SERVERS_OF_OTHERS = /^(?:mcp_?servers|context_servers|servers|mcp)$/i
const IMPORT =
  'servers of another program become pools: keep them in a file of their own and run "stdio-bus import FILE"'

function suggestKey(key: string, known: readonly string[], parent: Path, schema: SchemaNode): string | undefined {
  const hasLimits = schema.properties?.['limits'] !== undefined
  if (hasLimits && (LIMIT_NAMES as readonly string[]).includes(key)) {
    return parent.at(-1) === 'limits'
      ? `${quote(key)} holds for the whole bus: move it to the limits at the top`
      : 'put it into "limits"'
  }
  if (parent.length === 0 && SERVERS_OF_OTHERS.test(key)) return IMPORT
  const foreign = FOREIGN_KEYS[key]
  const meant = suggest(key, known) ?? (foreign !== undefined && known.includes(foreign) ? foreign : undefined)
  if (meant !== undefined) return `did you mean ${quote(meant)}?`
  const home = parent.length === 0 ? placeIn(schema, key) : undefined
  return home === undefined ? undefined : `it belongs into ${home}`
}

/** A key at the top that is known one level further down. */
function placeIn(schema: SchemaNode, key: string): string | undefined {
  const homes: Path[] = [['pools', 0], ['listen'], ['aio'], ['registry']]
  const home = homes.find((path) => nodesAt(schema, path).some((node) => node.properties?.[key] !== undefined))
  return home === undefined ? undefined : showPath(home).replace('[0]', '[]')
}

/** The schema at a path: several nodes where the file has a choice. */
function nodesAt(schema: SchemaNode, path: Path): SchemaNode[] {
  let nodes = [schema]
  for (const step of path) nodes = nodes.flatMap(branchesOf).flatMap((node) => childOf(node, step))
  return nodes.flatMap(branchesOf)
}

function branchesOf(node: SchemaNode): SchemaNode[] {
  return node.anyOf === undefined ? [node] : node.anyOf.flatMap(branchesOf)
}

function childOf(node: SchemaNode, step: string | number): SchemaNode[] {
  const further = typeof node.additionalProperties === 'object' ? node.additionalProperties : undefined
  const child = typeof step === 'number' ? node.items : (node.properties?.[step] ?? further)
  return child === undefined ? [] : [child]
}

function valueAt(value: unknown, path: Path): unknown {
  let current = value
  for (const step of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, step)) return undefined
    current = (current as Record<string | number, unknown>)[step]
  }
  return current
}

function wordsOf(nodes: readonly SchemaNode[]): string[] {
  return nodes.flatMap((node) => node.enum ?? []).map(String)
}

function describeNodes(nodes: readonly SchemaNode[]): string {
  return listOf([...new Set(nodes.map(describeNode))])
}

const KINDS: Record<string, (node: SchemaNode) => string> = {
  string: () => 'a string',
  boolean: () => 'true or false',
  object: () => 'an object',
  array: ({ minItems, maxItems }) =>
    `a list${minItems === undefined ? '' : ' that is not empty'}${maxItems === undefined ? '' : ` of at most ${maxItems}`}`,
  integer: ({ minimum, maximum }) => `a whole number from ${minimum} to ${maximum}`,
}

function describeNode(node: SchemaNode): string {
  if (node['const'] !== undefined) return String(node['const'])
  if (node.enum !== undefined) return listOf(node.enum.map((word) => quote(String(word))))
  return KINDS[node.type ?? '']?.(node) ?? 'something else'
}
