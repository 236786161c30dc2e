// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file itself spells its references so
import { expect, test } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { effectiveValues } from './effective.ts'
import { parseSource } from './source.ts'

test('15.14 every value with its origin, and no secret', () => {
  verifies('15.14-values')
  const text = `{
    "pools": [{ "id": "a", "command": "cat",
      "env": { "KEY": "s3cret", "OTHER": "\${OTHER}", "MIXED": "x\${OTHER}" } }]
  }`
  const values = new Map(effectiveValues(parseSource('bus.json', text)).map(({ path, ...rest }) => [path, rest]))
  expect(values.get('pools[0].command')).toEqual({ value: 'cat', origin: 'bus.json:2' })
  expect(values.get('pools[0].instances')).toEqual({ value: 1, origin: 'default' })
  expect(values.get('limits.drain_timeout_sec')).toEqual({ value: 30, origin: 'default' })
  expect(values.get('pools[0].env.KEY')).toEqual({ value: '(masked)', origin: 'bus.json:3' })
  expect(values.get('pools[0].env.OTHER')!.value).toBe('${OTHER}')
  expect(values.get('pools[0].env.MIXED')!.value).toBe('(masked)')
  expect(JSON.stringify([...values])).not.toContain('s3cret')
})

test.each([
  ['https://me:s3cret@host/x', 'https://(masked)@host/x'],
  ['https://s3cret@host', 'https://(masked)@host'],
  ['https://me:s3c@ret@host/a@b', 'https://(masked)@host/a@b'],
  ['https://host/x?model=a&api_key=s3cret&n=1#end', 'https://host/x?model=a&api_key=(masked)&n=1#end'],
  ['https://${USER}:${PASSWORD}@host/x?key=${KEY}', 'https://${USER}:${PASSWORD}@host/x?key=${KEY}'],
  ['https://host/me@there?page=2', 'https://host/me@there?page=2'],
])('15.14 of an address no credential: %s', (endpoint, shown) => {
  verifies('15.14-values')
  const text = JSON.stringify({ pools: [{ id: 'a', command: 'cat' }], agents: [{ name: 'w', type: 'http', endpoint }] })
  const values = new Map(effectiveValues(parseSource('bus.json', text)).map(({ path, value }) => [path, value]))
  expect(values.get('agents[0].endpoint')).toBe(shown)
})

test('a file with mistakes has none', () => {
  expect(effectiveValues(parseSource('bus.json', '{ "pools": 1 }'))).toEqual([])
})
