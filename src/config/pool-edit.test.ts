import { describe, expect, test } from 'vitest'
import { addPool, poolNames, removePool } from './pool-edit.ts'
import { parseConfig } from './read.ts'
import { writeStarter } from './starter.ts'

const STARTER = writeStarter({ schema: './schema.json' })
const FILES = { id: 'files', command: 'npx', args: ['-y', 'server', '.'], env: { KEY: `\${KEY}` } }

const contentOf = (text: string): unknown => {
  const reading = parseConfig('x.json', text, { environment: { KEY: 'k' } })
  expect(reading).toMatchObject({ ok: true })
  return reading.ok && reading.source.value
}

describe('the starter', () => {
  test('keeps every comment when a pool comes, and is as it was when it goes', () => {
    const { text, notes } = addPool(STARTER, FILES)
    expect(contentOf(text)).toMatchObject({ pools: [{ id: 'echo' }, FILES], default_pool: 'echo' })
    for (const line of STARTER.split('\n')) expect(text).toContain(line)
    expect(notes).toEqual([])
    expect(removePool(text, 'files').text).toBe(STARTER)
  })

  test('that loses its default pool says so', () => {
    const { text, notes } = removePool(addPool(STARTER, FILES).text, 'echo')
    expect(contentOf(text)).toMatchObject({ pools: [FILES] })
    expect(text).not.toContain('"default_pool"')
    expect(notes).toHaveLength(1)
  })
})

describe('other files', () => {
  test.each([
    ['one line', '{"pools":[{"id":"a","agent":"echo"}]}'],
    ['a trailing comma', '{\n  "pools": [\n    { "id": "a", "agent": "echo" }, // mine\n  ],\n}\n'],
    ['Windows lines', '{\r\n  "pools": [\r\n    { "id": "a", "agent": "echo" }\r\n  ]\r\n}\r\n'],
    ['tabs', '{\n\t"pools": [\n\t\t{\n\t\t\t"id": "a",\n\t\t\t"agent": "echo"\n\t\t}\n\t]\n}\n'],
  ])('%s: the second pool makes the first the default, in words that stay readable', (_, before) => {
    const { text, notes } = addPool(before, FILES)
    expect(contentOf(text)).toMatchObject({ pools: [{ id: 'a' }, FILES], default_pool: 'a' })
    expect(notes[0]).toContain('default_pool is now "a"')
    expect(poolNames(text)).toEqual(['a', 'files'])
    expect(text.includes('// mine')).toBe(before.includes('// mine'))
  })

  test('pools that have no name are counted all the same', () => {
    const text = '{ "pools": [ { "agent": "echo" }, { "id": "b", "agent": "echo" } ] }'
    expect(poolNames(text)).toEqual(['b'])
    expect(removePool(text, 'b').text).toBe('{ "pools": [ { "agent": "echo" } ] }')
  })
})
