import { describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import type { Rights } from '../../kernel/rights.ts'
import { type Holder, namesToolTwice, permissionsOf } from './permissions.ts'

const RIGHTS: Rights = {
  role: 'user',
  pools: ['coder', 'tools-*'],
  tools: { allow: ['read_*', 'git::*'], deny: ['*_secret'] },
}

const HOLDER: Holder = { principal: 'dev/sue', names: () => ['coder', 'tools-1', 'safe'] }

describe('the rights of a principal, as the gateway asks for them', () => {
  it('9.18 patterns of pools are patterns of agents; an observer may use none', () => {
    const { mayUseAgent } = permissionsOf(RIGHTS, HOLDER)
    expect(['coder', 'tools-1', 'Coder', 'tools', 'bus'].map(mayUseAgent)).toEqual([true, true, false, false, false])
    expect(permissionsOf({ ...RIGHTS, role: 'observer' }, HOLDER).mayUseAgent('coder')).toBe(false)
    expect(permissionsOf({ ...RIGHTS, role: 'admin' }, HOLDER).mayUseAgent('coder')).toBe(true)
  })

  it('9.19 tools are judged where there are rules for them', () => {
    const { mayUseTool, areToolsJudged } = permissionsOf(RIGHTS, HOLDER)
    expect(areToolsJudged).toBe(true)
    expect([mayUseTool('x', 'read_a'), mayUseTool('git', 'push'), mayUseTool('x', 'push')]).toEqual([true, true, false])
    expect(mayUseTool('git', 'read_secret')).toBe(false)
    expect(permissionsOf({ role: 'user', pools: [] }, HOLDER).areToolsJudged).toBe(false)
  })

  it.each([
    ['user', { only_caller: 'dev/sue' }],
    ['observer', { only_agents: ['coder', 'tools-1'] }],
    ['admin', {}],
  ] as const)('9.6 the traces that a principal sees, as %s: %j', (role, scope) => {
    verifies('9.6-traces')
    expect(permissionsOf({ ...RIGHTS, role }, HOLDER).traceScope).toEqual(scope)
    expect(permissionsOf({ ...RIGHTS, role }, { ...HOLDER, principal: undefined })).not.toHaveProperty('traceScope')
  })

  it.each([
    ['{"method":"a::tools.call","params":{"name":"x","name":"y"}}', true],
    ['{"params" : { "tool":"x" , "to\\u006fl":"y"},"method":"a::tools.call"}', true],
    ['{"method":"a::tools.call","params":{"name":"x","args":{"name":"y"}},"name":"z"}', false],
    ['{"method":"a::tools.call","params":{"name":"x","tool":"x"}}', false],
    ['{"method":"a::tools.call","params":["name","name"]}', false],
    ['{"method":"a::tools.call"}', false],
  ])('9.19 whether %s names its tool twice: %s', (line, isTwice) => {
    verifies('9.19-twice')
    expect(namesToolTwice(Buffer.from(line))).toBe(isTwice)
  })
})
