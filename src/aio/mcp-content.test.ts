import { describe, expect, it } from 'vitest'
import { readContent, resourceType } from './mcp-content.ts'

describe('MCP content as outputs', () => {
  it.each([
    [
      { type: 'text', text: 'a' },
      { type: 'text', value: 'a' },
    ],
    [
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
      { type: 'image', value: 'aGk=', mimeType: 'image/png' },
    ],
    [
      { type: 'audio', data: 'aGk=', mimeType: 'audio/mpeg' },
      { type: 'audio', value: 'aGk=', mimeType: 'audio/mpeg' },
    ],
    [
      { type: 'resource', resource: { uri: 'a:', text: 'a' } },
      { type: 'text', value: 'a' },
    ],
    [
      { type: 'resource', resource: { uri: 'a:', blob: 'aGk=', mimeType: 'application/zip' } },
      { type: 'file', value: 'aGk=', mimeType: 'application/zip' },
    ],
    [
      { type: 'resource_link', uri: 'https://a.test/b' },
      { type: 'file', value: 'https://a.test/b' },
    ],
  ])('%j', (block, output) => {
    expect(readContent([block])).toEqual([output])
    expect(readContent(block)).toEqual([output])
  })

  it.each([[undefined], [null], ['text'], [[{ type: 'hologram' }, 5, null]], [[{ type: 'resource' }]]])(
    'has no outputs in %j',
    (content) => {
      expect(readContent(content)).toEqual([])
    },
  )
})

it.each([
  ['application/pdf', 'pdf'],
  ['image/png', 'image'],
  ['audio/mpeg', 'audio'],
  ['video/mp4', 'video'],
  ['text/markdown; charset=utf-8', 'text'],
  ['application/json', 'json'],
  ['application/ld+json', 'json'],
  ['application/zip', 'file'],
  [undefined, 'file'],
])('a resource of %s has the type %s', (mime, type) => {
  expect(resourceType(mime)).toBe(type)
})
