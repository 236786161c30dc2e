/**
 * The two tools of an aggregate in search mode (contract 13.13): one that finds tools, one that calls what was found.
 *
 * Only what the caller may see is looked through, so that nothing hidden shows by its rank or its name.
 */
import { CALL_TOOL, type Entry, FIND_TOOLS, toolFields } from './catalogue.ts'
import { nearestNames, SearchIndex } from './search.ts'
import type { OwnTool, View } from './view.ts'

const DEFAULT_COUNT = 8
const MOST = 25
const MAX_TEXT_BYTES = 64 * 1024
const MAX_CURSOR_QUERY = 256
const NEAREST = 3
/** Characters, of which each takes six bytes at most: 25 such tools fit. */
const CUT_TITLE = 80
const CUT_DESCRIPTION = 300

const FIND = {
  name: FIND_TOOLS,
  title: 'Find tools',
  description:
    'Finds tools by what they do. Describe the task in a few words; the best matches come first, each with its input schema. Then run one with call_tool. An empty query lists all tools by name.',
  inputSchema: {
    type: 'object',
    properties: {
      query: { type: 'string', description: 'What the tool shall do, or its name.' },
      limit: { type: 'integer', minimum: 1, maximum: MOST, default: DEFAULT_COUNT, description: 'How many to give.' },
      cursor: { type: 'string', description: 'next_cursor of the answer before, for more.' },
    },
    required: ['query'],
  },
  outputSchema: {
    type: 'object',
    properties: {
      tools: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } },
      total: { type: 'integer' },
      next_cursor: { type: 'string' },
    },
    required: ['tools', 'total'],
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
}
const CALL = {
  name: CALL_TOOL,
  title: 'Call a tool',
  description: 'Runs a tool that find_tools has found, with arguments that fit its input schema.',
  inputSchema: {
    type: 'object',
    properties: {
      name: { type: 'string', description: 'The name of the tool, as find_tools gave it.' },
      arguments: { type: 'object', description: 'Its arguments.', additionalProperties: true },
    },
    required: ['name'],
  },
}

export const SEARCH_TOOLS: readonly OwnTool[] = [FIND, CALL].map((tool) => ({
  name: tool.name,
  text: Buffer.from(JSON.stringify(tool)),
}))

export type Found = { readonly result: string } | { readonly fault: 'bad_cursor' }

const indexes = new WeakMap<View, SearchIndex>()
/** What is told of a tool that was found: with its schema, without, and cut. */
const FORMS = ['whole', 'brief', 'cut'] as const
type Told = Readonly<Record<(typeof FORMS)[number], string>>
const told = new WeakMap<Entry, Told>()

/** The members of the result, as JSON. */
export function findTools(view: View, args: Readonly<Record<string, unknown>>): Found {
  const { query = '', limit = DEFAULT_COUNT, cursor } = args
  if (typeof query !== 'string') return { result: failure('query must be a string') }
  if (!Number.isInteger(limit) || (limit as number) < 1)
    return { result: failure('limit must be a number from 1 to 25') }
  const from = cursor === undefined ? 0 : placeOf(cursor, query, view)
  if (from === undefined) return { fault: 'bad_cursor' }
  const count = Math.min(limit as number, MOST)
  const { names, total } = indexOf(view).find(query, from, count)
  const entries = names.flatMap((name) => view.tool(name) ?? [])
  const next = from + count < total ? cursorAt(from + count, query, view) : undefined
  const text = page(entries, total, next)
  return { result: `"content":[{"type":"text","text":${JSON.stringify(text)}}],"structuredContent":${text}` }
}

/** In the first form that fits; the last always does. */
function page(entries: readonly Entry[], total: number, next: string | undefined): string {
  const rest = `"total":${total}${next === undefined ? '' : `,"next_cursor":"${next}"`}`
  let text = ''
  for (const form of FORMS) {
    text = `{"tools":[${entries.map((entry) => tellOf(entry)[form]).join(',')}],${rest}}`
    if (Buffer.byteLength(text) <= MAX_TEXT_BYTES) break
  }
  return text
}

function tellOf(entry: Entry): Told {
  const known = told.get(entry)
  if (known !== undefined) return known
  const { title, description, inputSchema } = toolFields(entry)
  const brief = { name: entry.listed, title, description }
  const cut = {
    name: entry.listed,
    title: textOf(title).slice(0, CUT_TITLE),
    description: textOf(description).slice(0, CUT_DESCRIPTION),
  }
  const tellings = {
    whole: JSON.stringify({ ...brief, inputSchema }),
    brief: JSON.stringify(brief),
    cut: JSON.stringify(cut),
  }
  told.set(entry, tellings)
  return tellings
}

function indexOf(view: View): SearchIndex {
  const known = indexes.get(view)
  if (known !== undefined) return known
  const index = new SearchIndex(view.tools.map(documentOf))
  indexes.set(view, index)
  return index
}

function documentOf(entry: Entry): ConstructorParameters<typeof SearchIndex>[0][number] {
  const { title, description, inputSchema } = toolFields(entry)
  return {
    name: entry.listed,
    title: textOf(title),
    description: textOf(description),
    parameters: parametersOf(inputSchema),
  }
}

function parametersOf(schema: unknown): string[] {
  const properties = (schema as { properties?: unknown } | null | undefined)?.properties
  if (typeof properties !== 'object' || properties === null) return []
  return Object.entries(properties).flatMap(([name, property]) => [
    name,
    textOf((property as { description?: unknown } | null)?.description),
  ])
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A cursor holds for the list and the query that it was given for. */
function cursorAt(from: number, query: string, view: View): string {
  return Buffer.from(`${from} ${view.catalogue.version} ${query.slice(0, MAX_CURSOR_QUERY)}`).toString('base64url')
}

function placeOf(cursor: unknown, query: string, view: View): number | undefined {
  if (typeof cursor !== 'string') return undefined
  const from = Number.parseInt(Buffer.from(cursor, 'base64url').toString(), 10)
  return Number.isSafeInteger(from) && from > 0 && cursor === cursorAt(from, query, view) ? from : undefined
}

/** A name that nobody has: the nearest are told. */
export function unknownTool(view: View, name: unknown): string {
  if (typeof name !== 'string') return failure('name must be the name of a tool, as find_tools gives it')
  const names = nearestNames(
    name,
    view.tools.map(({ listed }) => listed),
    NEAREST,
  )
  const hint = names.length === 0 ? '' : ` The nearest names are: ${names.join(', ')}.`
  return failure(`No tool is named ${JSON.stringify(name.slice(0, 256))}.${hint} find_tools finds others.`)
}

function failure(text: string): string {
  return `"content":[{"type":"text","text":${JSON.stringify(text)}}],"isError":true`
}
