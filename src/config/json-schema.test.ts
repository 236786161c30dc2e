import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { jsonSchema, type SchemaNode } from './json-schema.ts'

const committed = new URL('../../schema/stdio-bus.schema.json', import.meta.url)
const docs = new URL('../../docs/config.md', import.meta.url)

/** Every key of the file as a path, with its node. */
function keysOf(node: SchemaNode, path = ''): { path: string; key: string; node: SchemaNode }[] {
  const own = Object.entries(node.properties ?? {}).flatMap(([key, child]) => [
    { path: `${path}.${key}`, key, node: child },
    ...keysOf(child, `${path}.${key}`),
  ])
  const further = [...(node.anyOf ?? []), ...(node.items ? [node.items] : [])]
  return [...own, ...further.flatMap((child) => keysOf(child, path))]
}

describe('the JSON Schema for editors', () => {
  it('the committed file is the one that the source makes (npm run build writes it)', async () => {
    expect(JSON.parse(await readFile(committed, 'utf8'))).toEqual(JSON.parse(JSON.stringify(jsonSchema())))
  })

  it('explains every key', () => {
    const keys = keysOf(jsonSchema())
    expect(keys.length).toBeGreaterThan(60)
    expect(keys.filter(({ node }) => !node.description).map(({ path }) => path)).toEqual([])
  })

  it('knows comments, $schema and the ways to say what a pool is made of', () => {
    const { properties, patternProperties, additionalProperties } = jsonSchema()
    expect(additionalProperties).toBe(false)
    expect(Object.keys(patternProperties ?? {}).map((pattern) => new RegExp(pattern).test('_note'))).toEqual([true])
    expect(properties).toHaveProperty('$schema')
    expect(properties?.['pools']?.items?.oneOf).toEqual([
      { required: ['command'] },
      { required: ['agent'] },
      { required: ['registry'] },
      { required: ['url'] },
      { required: ['members'] },
    ])
  })

  it('every key is in docs/config.md', async () => {
    const text = await readFile(docs, 'utf8')
    const missing = keysOf(jsonSchema()).filter(({ key }) => key !== '$schema' && !text.includes(`\`${key}\``))
    expect(missing.map(({ path }) => path)).toEqual([])
  })
})
