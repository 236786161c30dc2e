import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readDocument } from './document.ts'
import { agentEntry } from './entry.ts'

const withPackage = (kind: 'npx' | 'uvx', name: string) => ({
  id: 'tool',
  name: 'Tool',
  version: '1.0.0',
  distribution: { [kind]: { package: name } },
})
const accepts = (value: unknown): boolean => agentEntry.safeParse(value).success

describe('an entry', () => {
  it.each(['tool', 'tool@1.0.0', '@scope/tool@1.0.0-beta.1', '@scope/tool@latest', 'tool@^1.2', 'file:/a/b.tgz'])(
    'may have the npm package %s',
    (name) => expect(accepts(withPackage('npx', name))).toBe(true),
  )

  it.each([
    '--global',
    '-g',
    'git+https://x.test/a',
    'https://x.test/a.tgz',
    'a b',
    '../a',
    '/a/b.tgz',
    'file:b.tgz',
    'a;b',
    '',
    'github:a/b',
  ])('may not have the npm package %s', (name) => expect(accepts(withPackage('npx', name))).toBe(false))

  it.each(['tool', 'tool@1.0', 'tool==1.0', 'tool[acp]>=1.0', 'file:///a/b.whl'])(
    'may have the Python package %s',
    (name) => expect(accepts(withPackage('uvx', name))).toBe(true),
  )

  it.each(['--index-url=x', 'git+https://x.test/a', 'tool @ https://x.test/a', 'a b', ''])(
    'may not have the Python package %s',
    (name) => expect(accepts(withPackage('uvx', name))).toBe(false),
  )

  it('may have platforms and keys that nobody knows yet', () => {
    const target = { archive: 'https://x.test/a.tgz', cmd: './a', future: true }
    const distribution = { binary: { 'linux-x86_64': target, 'plan9-mips': 5 }, docker: {} }
    const entry = { ...withPackage('npx', 'a'), distribution, authMethods: [] }
    const result = agentEntry.parse(entry)
    expect(Object.keys(result.distribution.binary ?? {})).toEqual(['linux-x86_64'])
  })

  it('needs a distribution', () => {
    expect(accepts({ ...withPackage('npx', 'a'), distribution: {} })).toBe(false)
    expect(accepts({ ...withPackage('npx', 'a'), distribution: { binary: { 'plan9-mips': {} } } })).toBe(false)
  })
})

describe('a document', () => {
  it('never throws and never loses the good entries, whatever stands between them', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue(), { maxLength: 5 }), (junk) => {
        const agents = [...junk, withPackage('npx', 'tool'), ...junk]
        const document = readDocument(JSON.stringify({ agents }), 'index')
        if ('problem' in document) return expect.unreachable()
        expect(document.agents.map(({ id }) => id)).toEqual(['tool'])
        expect(document.problems).toHaveLength(junk.length * 2)
      }),
    )
  })

  it('never throws for any text', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json()), (text) => void readDocument(text, 'index')))
  })
})
