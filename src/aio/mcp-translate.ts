/**
 * The MCP modules of the seed as native MCP: one row per method, its parameters one way and its result the other.
 *
 * Only names are changed. Native results are kept as they are, with the seed's fields beside them, so that both kinds of
 * client find theirs. Sampling has no native request towards a server and lives in `sampling.ts`.
 */
import { type Refusal, refuse } from './faults.ts'
import { isObject, type JsonObject, objectOr } from './json-object.ts'
import { readContent, readResource, readText, resourceType } from './mcp-content.ts'
import type { CallError } from './port.ts'

export type Module = 'resources' | 'prompts' | 'tools'

export interface NativeRequest {
  readonly method: string
  readonly params: JsonObject
  /** What is called: a tool or a prompt. */
  readonly target?: string
}

interface Translation {
  readonly module: Module
  readonly request: (params: JsonObject) => NativeRequest | Refusal
  readonly result: (result: JsonObject) => JsonObject
}

/** The first of the spellings that is present. */
function pick(params: JsonObject, keys: readonly string[]): unknown {
  return keys.map((key) => params[key]).find((value) => value !== undefined)
}

const listRequest =
  (method: string) =>
  (params: JsonObject): NativeRequest | Refusal => {
    const { cursor } = params
    if (cursor === undefined || cursor === null) return { method, params: {} }
    if (typeof cursor !== 'string') return refuse('invalid_param', { param: 'cursor', expected: 'a string' })
    return { method, params: { cursor } }
  }

/** A call by name with optional arguments, both in the seed's or in MCP's spelling. */
const namedRequest =
  (method: string, nameKeys: readonly string[]) =>
  (params: JsonObject): NativeRequest | Refusal => {
    const name = pick(params, nameKeys)
    if (name === undefined)
      return refuse('missing_param', { param: nameKeys[0], expected: [`"${nameKeys.join('" or "')}"`] })
    if (typeof name !== 'string') return refuse('invalid_param', { param: nameKeys[0], expected: 'a string' })
    const args = pick(params, ['args', 'arguments'])
    if (args !== undefined && !isObject(args)) return refuse('invalid_param', { param: 'args', expected: 'an object' })
    return { method, params: { name, ...(args === undefined ? {} : { arguments: args }) }, target: name }
  }

function readRequest(params: JsonObject): NativeRequest | Refusal {
  const uri = pick(params, ['id', 'uri'])
  if (uri === undefined) return refuse('missing_param', { param: 'id', expected: ['"id" or "uri"'] })
  if (typeof uri !== 'string') return refuse('invalid_param', { param: 'id', expected: 'a string' })
  return { method: 'resources/read', params: { uri } }
}

/** Prompt arguments are strings in MCP. */
function promptRequest(params: JsonObject): NativeRequest | Refusal {
  const request = namedRequest('prompts/get', ['id', 'name'])(params)
  if ('fault' in request) return request
  const given = objectOr(request.params['arguments'])
  const spelled = Object.entries(given).map(([key, value]) => [
    key,
    typeof value === 'string' ? value : JSON.stringify(value),
  ])
  return {
    ...request,
    params: { ...request.params, ...(spelled.length > 0 ? { arguments: Object.fromEntries(spelled) } : {}) },
  }
}

const listed =
  (key: string, describe: (item: JsonObject) => JsonObject) =>
  (result: JsonObject): JsonObject => {
    const items = result[key]
    return Array.isArray(items)
      ? { ...result, [key]: items.map((item) => (isObject(item) ? describe(item) : item)) }
      : result
  }

const titled = (item: JsonObject): JsonObject => ({ ...item, id: item['name'], title: item['title'] ?? item['name'] })

/** How the tool of a call may be spelled. */
export const TOOL_KEYS: readonly string[] = ['tool', 'name']

const TRANSLATIONS: ReadonlyMap<string, Translation> = new Map<string, Translation>([
  [
    'resources.list',
    {
      module: 'resources',
      request: listRequest('resources/list'),
      result: listed('resources', (item) => ({
        ...item,
        id: item['uri'],
        title: item['title'] ?? item['name'],
        type: resourceType(item['mimeType']),
      })),
    },
  ],
  [
    'resources.get',
    {
      module: 'resources',
      request: readRequest,
      result: (result) => {
        const contents = Array.isArray(result['contents']) ? result['contents'] : []
        return { ...result, outputs: contents.flatMap((item) => readResource(item) ?? []) }
      },
    },
  ],
  ['prompts.list', { module: 'prompts', request: listRequest('prompts/list'), result: listed('prompts', titled) }],
  [
    'prompts.get',
    {
      module: 'prompts',
      request: promptRequest,
      result: (result) => {
        const messages = Array.isArray(result['messages']) ? result['messages'] : []
        return { ...result, outputs: messages.flatMap((item) => readContent(objectOr(item)['content'])) }
      },
    },
  ],
  ['tools.list', { module: 'tools', request: listRequest('tools/list'), result: listed('tools', titled) }],
  [
    'tools.call',
    {
      module: 'tools',
      request: namedRequest('tools/call', TOOL_KEYS),
      result: (result) => ({ ...result, outputs: readContent(result['content']) }),
    },
  ],
])

export const SAMPLING_METHODS = ['sampling.start', 'sampling.step'] as const
export const MCP_METHODS: readonly string[] = [...TRANSLATIONS.keys(), ...SAMPLING_METHODS]

export function translationOf(method: string): Translation | undefined {
  return TRANSLATIONS.get(method)
}

const TOOL_ERROR_CHARACTERS = 1_000

/** A tool that failed answers with a result all the same; the trace counts it as an error. */
export function toolError(result: JsonObject): CallError | undefined {
  if (result['isError'] !== true) return undefined
  const text = readText(result['content']).slice(0, TOOL_ERROR_CHARACTERS)
  return { type: 'tool_error', message: text === '' ? 'The tool reports an error' : text }
}

/** What a server offers: from its capabilities the modules, from the configuration whether it samples. */
export function offeredModules(handshake: JsonObject | undefined, samples: boolean): Readonly<Record<string, boolean>> {
  const capabilities = objectOr(handshake?.['capabilities'])
  const offers = (module: Module): boolean => isObject(capabilities[module])
  return { resources: offers('resources'), prompts: offers('prompts'), tools: offers('tools'), sampling: samples }
}

/** The methods of the modules that are on, and `help`. */
export function offeredMethods(modules: Readonly<Record<string, boolean>>): readonly string[] {
  return [...MCP_METHODS.filter((method) => modules[method.split('.')[0]!] === true), 'help']
}
