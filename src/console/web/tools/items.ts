/** What an MCP server offers, by kind: how it is listed, how it is called, and which form that takes. */
import { isObject, type Properties } from '../schema/value.ts'
import { expandTemplate, variablesOf } from './uri-template.ts'

export type ItemKind = 'tool' | 'resource' | 'template' | 'prompt'

export interface Item {
  readonly kind: ItemKind
  /** What it is called by: a name, a URI, a template of URIs. */
  readonly name: string
  readonly title: string | undefined
  readonly description: string
  /** As the server told it. */
  readonly told: Properties
}

interface KindRow {
  readonly heading: string
  readonly capability: string
  readonly list: string
  readonly key: string
  readonly identifier: string
  readonly method: string
  readonly schemaOf: (item: Item) => unknown
  readonly paramsOf: (item: Item, entered: Properties) => Properties
}

const NOTHING = { type: 'object', properties: {} }

export const ITEM_KINDS: Readonly<Record<ItemKind, KindRow>> = {
  tool: {
    heading: 'Tools',
    capability: 'tools',
    list: 'tools/list',
    key: 'tools',
    identifier: 'name',
    method: 'tools/call',
    schemaOf: ({ told }) => told['inputSchema'] ?? NOTHING,
    paramsOf: ({ name }, entered) => ({ name, arguments: entered }),
  },
  resource: {
    heading: 'Resources',
    capability: 'resources',
    list: 'resources/list',
    key: 'resources',
    identifier: 'uri',
    method: 'resources/read',
    schemaOf: () => NOTHING,
    paramsOf: ({ name }) => ({ uri: name }),
  },
  template: {
    heading: 'Resource templates',
    capability: 'resources',
    list: 'resources/templates/list',
    key: 'resourceTemplates',
    identifier: 'uriTemplate',
    method: 'resources/read',
    schemaOf: ({ name }) => ({
      type: 'object',
      properties: Object.fromEntries(variablesOf(name).map((variable) => [variable, { type: 'string' }])),
    }),
    paramsOf: ({ name }, entered) => ({ uri: expandTemplate(name, entered) }),
  },
  prompt: {
    heading: 'Prompts',
    capability: 'prompts',
    list: 'prompts/list',
    key: 'prompts',
    identifier: 'name',
    method: 'prompts/get',
    schemaOf: ({ told }) => promptSchema(told['arguments']),
    paramsOf: ({ name }, entered) => ({ name, ...(Object.keys(entered).length > 0 && { arguments: entered }) }),
  },
}

const MAX_NAME_CHARS = 2_000

/** What stands in one page of a list; what has no name is none. */
export function itemsOf(kind: ItemKind, result: unknown): Item[] {
  const { key, identifier } = ITEM_KINDS[kind]
  const list = isObject(result) ? result[key] : undefined
  return (Array.isArray(list) ? list : []).flatMap((told): Item[] => {
    const name = isObject(told) ? told[identifier] : undefined
    if (typeof name !== 'string' || name === '' || name.length > MAX_NAME_CHARS) return []
    const annotations = isObject(told['annotations']) ? told['annotations'] : {}
    const title = [told['title'], annotations['title'], identifier === 'name' ? undefined : told['name']].find(
      (each) => typeof each === 'string' && each !== '' && each !== name,
    )
    const description = typeof told['description'] === 'string' ? told['description'] : ''
    return [{ kind, name, title, description, told }]
  })
}

/** The arguments of a prompt are texts. */
function promptSchema(told: unknown): unknown {
  const named = (Array.isArray(told) ? told : []).filter((each) => isObject(each) && typeof each['name'] === 'string')
  return {
    type: 'object',
    properties: Object.fromEntries(
      named.map(({ name, title, description }) => [name, { type: 'string', title, description }]),
    ),
    required: named.filter(({ required }) => required === true).map(({ name }) => name),
  }
}
