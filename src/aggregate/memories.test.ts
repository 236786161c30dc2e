import { expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { Envelope } from '../wire/envelope.ts'
import { Memories } from './memories.ts'

function learn(memories: Memories, result: object, pool = 'm'): void {
  const bytes = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
  const line = new Envelope()
  line.read(bytes, 0, bytes.length)
  memories.learn(line, pool)
}

const link = (uri: string) => ({ type: 'resource_link', uri, name: 'l' })

test('URIs of contents, links, embedded resources and messages are remembered', () => {
  verifies('13.7-remembered')
  const memories = new Memories()
  learn(memories, { contents: [{ uri: 'a:1', text: '' }] })
  learn(memories, { content: [link('a:2'), { type: 'resource', resource: { uri: 'a:3', text: '' } }] })
  learn(memories, { messages: [{ role: 'user', content: link('a:4') }] }, 'other')
  expect(['a:1', 'a:2', 'a:3', 'a:4', 'a:5'].map((uri) => memories.uris.find(uri))).toEqual([
    'm',
    'm',
    'm',
    'other',
    undefined,
  ])
})

test('the newest 4,096, and none that is longer than a URI is', () => {
  verifies('13.7-remembered')
  const memories = new Memories()
  for (let n = 0; n < 5; n++)
    learn(memories, { content: Array.from({ length: 1_000 }, (_, k) => link(`r:${n * 1_000 + k}`)) })
  expect(memories.uris.find('r:903')).toBeUndefined()
  expect(memories.uris.find('r:904')).toBe('m')
  learn(memories, { content: [link(`r:${'x'.repeat(10_000)}`)] })
  expect(memories.uris.find(`r:${'x'.repeat(10_000)}`)).toBeUndefined()
  expect(memories.uris.find('r:904')).toBe('m')
})
