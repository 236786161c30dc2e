import { describe, expect, it } from 'vitest'
import { meetsEngine, pinNpmPackage } from './npx.ts'
import { pinPythonPackage } from './uvx.ts'

describe('pinning', () => {
  it.each([
    ['tool', 'tool@1.2.3'],
    ['@scope/tool', '@scope/tool@1.2.3'],
    ['tool@0.9.0', 'tool@0.9.0'],
    ['@scope/tool@latest', '@scope/tool@latest'],
    ['file:/a/b@c.tgz', 'file:/a/b@c.tgz'],
  ])('npm %s is %s', (spec, pinned) => expect(pinNpmPackage(spec, '1.2.3')).toBe(pinned))

  it.each([
    ['tool', 'tool==1.2.3'],
    ['tool@0.9.0', 'tool==0.9.0'],
    ['tool[acp]@0.9.0', 'tool[acp]==0.9.0'],
    ['tool==0.9.0', 'tool==0.9.0'],
    ['tool>=0.9', 'tool>=0.9'],
    ['tool@latest', 'tool'],
    ['file:/a/tool.whl', '/a/tool.whl'],
    ['file:///a/tool.whl', '/a/tool.whl'],
  ])('Python %s is %s', (spec, pinned) => expect(pinPythonPackage(spec, '1.2.3')).toBe(pinned))
})

describe('the Node that a package asks for', () => {
  it.each([
    ['>=20', '20.19.0', true],
    ['>=22', '20.19.0', false],
    ['>= 20.19.1', '20.19.0', false],
    ['>=20.19', '20.19.0', true],
    ['>=18.99.0', '20.0.0', true],
    ['^18 || >=20', '4.0.0', true],
    [undefined, '4.0.0', true],
  ])('%s and %s: %s', (range, node, met) => expect(meetsEngine(range, node)).toBe(met))
})
