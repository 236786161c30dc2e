import { describe, expect, it } from 'vitest'
import { ITEM_KINDS, itemsOf } from './items.ts'

describe('what a server offers', () => {
  it('takes what has a name, and leaves what has none', () => {
    const tools = [{ name: 'a', title: 'A tool' }, { name: '' }, { name: 7 }, null, 'x', { name: 'n'.repeat(3_000) }]
    expect(itemsOf('tool', { tools }).map(({ name, title }) => [name, title])).toEqual([['a', 'A tool']])
    expect(itemsOf('tool', { tools: {} })).toEqual([])
    expect(itemsOf('tool', null)).toEqual([])
  })

  it('names a resource by its URI', () => {
    const [item] = itemsOf('resource', { resources: [{ uri: 'memo://1', name: 'a memo' }] })
    expect(item).toMatchObject({ name: 'memo://1', title: 'a memo' })
    expect(ITEM_KINDS.resource.paramsOf(item!, {})).toEqual({ uri: 'memo://1' })
  })

  it('makes a form of the arguments of a prompt and of the variables of a template', () => {
    const [prompt] = itemsOf('prompt', { prompts: [{ name: 'p', arguments: [{ name: 'a', required: true }, {}, 1] }] })
    expect(ITEM_KINDS.prompt.schemaOf(prompt!)).toMatchObject({
      properties: { a: { type: 'string' } },
      required: ['a'],
    })
    expect(ITEM_KINDS.prompt.paramsOf(prompt!, {})).toEqual({ name: 'p' })
    const [template] = itemsOf('template', { resourceTemplates: [{ uriTemplate: 'm://{x}' }] })
    expect(ITEM_KINDS.template.schemaOf(template!)).toMatchObject({ properties: { x: { type: 'string' } } })
    expect(ITEM_KINDS.template.paramsOf(template!, { x: '1' })).toEqual({ uri: 'm://1' })
  })

  it('sends the arguments of a tool as they were entered', () => {
    const [tool] = itemsOf('tool', { tools: [{ name: 't' }] })
    expect(ITEM_KINDS.tool.schemaOf(tool!)).toEqual({ type: 'object', properties: {} })
    expect(ITEM_KINDS.tool.paramsOf(tool!, { a: 1 })).toEqual({ name: 't', arguments: { a: 1 } })
  })
})
