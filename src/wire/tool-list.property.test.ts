import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { Envelope } from './envelope.ts'
import { splice } from './splice.ts'
import { BAD_LIST, hideTools } from './tool-list.ts'

const isShown = (name: string): boolean => !name.startsWith('h')

/** What is left of a line once the tools that begin with h are hidden. */
function shownOf(line: string): string {
  const bytes = Buffer.from(line)
  const edits = hideTools(bytes, 0, bytes.length, isShown)
  if (edits === BAD_LIST) return BAD_LIST
  const envelope = new Envelope()
  envelope.read(bytes, 0, bytes.length)
  return splice(envelope, edits).toString().slice(0, -1)
}

const space = fc.stringMatching(/^[ \t]{0,3}$/)

/** A string in one of the ways in which it can be spelled: any character may be escaped. */
function spelled(text: string): fc.Arbitrary<string> {
  return fc.array(fc.boolean(), { minLength: text.length, maxLength: text.length }).map((isEscaped) => {
    const units = [...Array(text.length).keys()].map((at) => {
      const unit = text[at]!
      const escaped = `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`
      const isPlain = !isEscaped[at] && /^[\x20-\x7e]$/.test(unit) && unit !== '"' && unit !== '\\'
      return isPlain ? unit : escaped
    })
    return `"${units.join('')}"`
  })
}

const anyName = fc.oneof(
  fc.constantFrom('h', 'hidden', 'shown', 'push', '', '"', 'a"b\\', '],', 'name'),
  fc.string({ maxLength: 6 }),
)
const anyValue = fc.json({ maxDepth: 3 })

interface Entry {
  readonly text: string
  readonly isShown: boolean
}

const member = fc.tuple(fc.constantFrom('title', 'inputSchema', 'Name', 'nam'), anyValue, space)

function entryWith(names: readonly { readonly text: string }[], isEntryShown: boolean): fc.Arbitrary<Entry> {
  return fc.tuple(fc.array(member, { maxLength: 3 }), space, fc.nat(3)).chain(([others, gap, at]) => {
    const members = others.map(([key, value, pad]) => `"${key}"${pad}:${pad}${value}`)
    return spelled('name').map((key) => {
      members.splice(at, 0, ...names.map(({ text }) => `${key}${gap}:${gap}${text}`))
      return { text: `{${gap}${members.join(`${gap},`)}${gap}}`, isShown: isEntryShown }
    })
  })
}

const named = anyName.chain((name) => spelled(name).chain((text) => entryWith([{ text }], isShown(name))))
const nameless = fc.oneof(
  entryWith([], false),
  entryWith([{ text: '"shown"' }, { text: '"shown"' }], false),
  fc.constantFrom('null', '1', '["shown"]', '{"name":["shown"]}').chain((text) => entryWith([{ text }], false)),
  fc.constantFrom('null', '7', '"shown"', '[{"name":"shown"}]', '{"_meta":{"name":"shown"}}').map((text) => ({
    text,
    isShown: false,
  })),
)
const entries = fc.array(fc.oneof({ weight: 3, arbitrary: named }, { weight: 1, arbitrary: nameless }), {
  maxLength: 8,
})

describe('the tools of a list', () => {
  it('9.20 those that are hidden go, whatever the spelling; what is left is what JSON.parse would leave, byte for byte', () => {
    verifies('9.20-hidden', '9.20-bytes', '9.20-nameless')
    fc.assert(
      fc.property(entries, fc.array(space, { minLength: 16, maxLength: 16 }), spelled('tools'), (list, pads, key) => {
        const before = `{"jsonrpc":"2.0",${pads[0]}"id":1,"result":{"_meta":{"tools":[{"name":"h"}]},${key}:`
        const array = list.map(({ text }, at) => `${pads[at]}${text}${pads[at + 8]}`).join(',')
        const after = `,"nextCursor":"h]"},"tools":[{"name":"h"}]${pads[2]}}`
        const shown = shownOf(`${before}[${array}]${after}`)
        const kept = list.filter((entry) => entry.isShown).map(({ text }) => text)
        expect(shown.startsWith(`${before}[`)).toBe(true)
        expect(shown.endsWith(`]${after}`)).toBe(true)
        expect(JSON.parse(shown).result.tools).toEqual(kept.map((text) => JSON.parse(text)))
        let at = before.length
        for (const text of kept) {
          expect(shown.indexOf(text, at)).not.toBe(-1)
          at = shown.indexOf(text, at) + text.length
        }
      }),
      { numRuns: 500 },
    )
  })

  it.each([
    ['none', '[{"name":"a"} , {"name":"b"}]', '[{"name":"a"} , {"name":"b"}]'],
    ['the first', '[ {"name":"h"} , {"name":"b"} ]', '[  {"name":"b"} ]'],
    ['one between', '[{"name":"a"}, {"name":"h"}, {"name":"b"}]', '[{"name":"a"},  {"name":"b"}]'],
    ['the last', '[{"name":"a"} , {"name":"h"} ]', '[{"name":"a"}  ]'],
    ['several last ones', '[{"name":"a"}, {"name":"h"}, {"name":"h2"}]', '[{"name":"a"}]'],
    ['all', '[ {"name":"h"}, {"name":"h"} ]', '[  ]'],
    ['all of none', '[ ]', '[ ]'],
  ])('9.20 commas are right when %s goes', (_which, list, left) => {
    expect(shownOf(`{"id":1,"result":{"tools":${list}}}`)).toBe(`{"id":1,"result":{"tools":${left}}}`)
  })

  it('9.20 a name is judged by its value', () => {
    const list = String.raw`{"id":1,"result":{"tools":[{"name":"\u0068idden"},{"n\u0061me":"h"},{"name":"pu\u0073h"}]}}`
    expect(shownOf(list)).toBe(String.raw`{"id":1,"result":{"tools":[{"name":"pu\u0073h"}]}}`)
  })

  it('9.20 a public list becomes a private one, whatever the spelling, and nothing nested is touched', () => {
    verifies('9.20-cache-scope')
    const scoped = (scope: string): string =>
      `{"id":1,"result":{"cacheScope" : ${scope},"tools":[{"name":"a","cacheScope":"public"}],"_meta":{"cacheScope":"public"}}}`
    const isPrivate = scoped('"private"')
    for (const scope of ['"public"', '"pu\\u0062lic"', '"private"']) expect(shownOf(scoped(scope))).toBe(isPrivate)
    expect(shownOf(scoped('null'))).toBe(scoped('null'))
    expect(shownOf('{"result":{"tools":[],"cacheScope":"public","cacheScope":"public"},"id":1}')).toBe(
      '{"result":{"tools":[],"cacheScope":"private","cacheScope":"private"},"id":1}',
    )
  })

  it.each([
    '{"id":1,"result":{}}',
    '{"id":1,"result":null}',
    '{"id":1,"result":[{"name":"a"}]}',
    '{"id":1,"result":{"tools":{"name":"a"}}}',
    '{"id":1,"result":{"tools":null}}',
    '{"id":1,"result":{"tools":[{"name":"a"}],"tools":[{"name":"h"}]}}',
    '{"id":1,"result":{"tools":[{"name":"a"}],"t\\u006fols":[{"name":"h"}]}}',
    '{"id":1,"result":{"tools":[{"name":"a"}]},"result":{"tools":[{"name":"h"}]}}',
    '{"id":1,"result":{"content":[]},"error":{"code":1,"message":""}}',
    '[{"id":1,"result":{"tools":[{"name":"a"}]}}]',
    '"tools"',
  ])('9.20 %s is no list', (line) => {
    verifies('9.20-bad-list')
    expect(shownOf(line)).toBe(BAD_LIST)
  })

  it('9.20 an error passes as it is; one that brings a list all the same hides as much', () => {
    const error = '"error":{"code":-32601,"message":"h","data":{"tools":[{"name":"h"}]}}'
    expect(shownOf(`{"id":1,${error}}`)).toBe(`{"id":1,${error}}`)
    expect(shownOf(`{"id":1,${error},"result":null}`)).toBe(`{"id":1,${error},"result":null}`)
    expect(shownOf(`{"id":1,${error},"result":{"tools":[{"name":"h"}]}}`)).toBe(
      `{"id":1,${error},"result":{"tools":[]}}`,
    )
  })

  it('9.20 neither depth nor length breaks it', () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
    expect(shownOf(`{"id":1,"result":{"tools":[{"inputSchema":${deep},"name":"h"},${deep},{"name":"a"}]}}`)).toBe(
      '{"id":1,"result":{"tools":[{"name":"a"}]}}',
    )
    const many = [...Array(100_000).keys()].map((n) => `{"name":"${n % 2 === 0 ? 'h' : 's'}${n}"}`)
    const shown = JSON.parse(shownOf(`{"id":1,"result":{"tools":[${many.join(',')}]}}`)).result.tools
    expect(shown).toHaveLength(50_000)
    expect(shown.at(-1)).toEqual({ name: 's99999' })
  })
})
