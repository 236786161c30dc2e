/** The tool that a call names, beside a plain reading of the same text; and what is remembered of tools that were judged. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Envelope } from '../wire/envelope.ts'
import { FIXED } from './limits.ts'
import { toolNamedBy } from './permission.ts'
import type { Pool } from './pools.ts'
import { PrincipalRow } from './principals.ts'
import type { Rights } from './rights.ts'

function toolOf(params: string): string | undefined {
  const bytes = Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`)
  const line = new Envelope()
  line.read(bytes, 0, bytes.length)
  return toolNamedBy(line)
}

describe('9.19 the tool that is named', () => {
  it.each([
    ['plain', '{"name":"push","arguments":{"name":"x"}}', 'push'],
    ['behind its arguments', '{"arguments":{"a":[1,{"name":2}]} , "name" : "push" }', 'push'],
    ['with an escape in its value', '{"name":"pu\\u0073h"}', 'push'],
    ['with an escape in its key', '{"n\\u0061me":"push"}', 'push'],
    ['in other letters than ASCII', '{"name":"größe"}', 'größe'],
    ['empty', '{"name":""}', ''],
    ['in a key of another value', '{"nam\\u0066":"push"}', undefined],
    ['twice', '{"name":"read","name":"push"}', undefined],
    ['twice, once in disguise', '{"name":"read","\\u006eame":"push"}', undefined],
    ['as no string', '{"name":["push"]}', undefined],
    ['nowhere', '{"title":"push"}', undefined],
    ['in no object', '["name","push"]', undefined],
  ])('%s', (_, params, tool) => {
    expect(toolOf(params)).toBe(tool)
  })

  it('is what a parser reads, whatever else there is', () => {
    const key = fc.oneof(fc.constantFrom('names', 'nam', 'Name', 'arguments', '_meta'), fc.string({ unit: 'binary' }))
    const other = fc.dictionary(
      key.filter((name) => name !== 'name'),
      fc.jsonValue(),
      { maxKeys: 4 },
    )
    fc.assert(
      fc.property(other, fc.string({ unit: 'grapheme' }), fc.boolean(), (rest, name, isFirst) => {
        expect(toolOf(JSON.stringify(isFirst ? { name, ...rest } : { ...rest, name }))).toBe(name)
      }),
    )
  })
})

describe('9.19 a tool that was judged before', () => {
  const pool = (id: string): Pool => ({ spec: { id } }) as unknown as Pool
  const alice = (rights: Rights): PrincipalRow =>
    new PrincipalRow({ principal: 'alice', name: 'alice', via: 'token', rights }, 0)
  const rightsTo = (...allow: string[]): Rights => ({ role: 'user', pools: ['*'], tools: { allow } })

  it('is judged by pool, and anew when the rights have changed', () => {
    const [git, web] = [pool('git'), pool('web')]
    const row = alice(rightsTo('git::push'))
    for (let times = 0; times < 2; times++) {
      expect(row.mayCall(git, 'push')).toBe(true)
      expect(row.mayCall(web, 'push')).toBe(false)
    }
    row.adopt(rightsTo('web::push'), 0)
    expect(row.mayCall(git, 'push')).toBe(false)
    expect(row.mayCall(web, 'push')).toBe(true)
  })

  it('is judged right however many there are', () => {
    const git = pool('git')
    const row = alice(rightsTo('read_*'))
    for (let round = 0; round < 2; round++)
      for (let n = 0; n < 3 * FIXED.maxToolVerdicts; n++) {
        expect(row.mayCall(git, `read_${n}`)).toBe(true)
        expect(row.mayCall(git, `push_${n}`)).toBe(false)
      }
  })
})
