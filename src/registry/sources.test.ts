import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../test/conformance/verifies.ts'
import { chooseSources, DEFAULT_INDEX } from './sources.ts'

describe('where the launcher looks', () => {
  it('has defaults for everything that has one', () => {
    expect(chooseSources({}, {}, {})).toEqual({
      index: DEFAULT_INDEX,
      cacheDir: join(homedir(), '.stdio-bus', 'registry'),
      ttlMs: 10_800_000,
      agentsFile: undefined,
      credentialsFile: undefined,
    })
  })

  it.each([
    ['index', 'STDIO_BUS_REGISTRY', 'ACP_REGISTRY_URL'],
    ['agentsFile', 'STDIO_BUS_AGENTS', 'ACP_CUSTOM_AGENTS_PATH'],
    ['credentialsFile', 'STDIO_BUS_CREDENTIALS', 'ACP_API_KEYS_PATH'],
  ] as const)('%s: flag over our variable over the other launcher’s over the configuration', (name, ours, theirs) => {
    verifies('R1-precedence')
    const flags = { [name]: '/flag' }
    const env = { [ours]: '/ours', [theirs]: '/theirs' }
    const config = { [name]: '/config' }
    expect(chooseSources(flags, env, config)[name]).toBe('/flag')
    expect(chooseSources({}, env, config)[name]).toBe('/ours')
    expect(chooseSources({}, { [ours]: '', [theirs]: '/theirs' }, config)[name]).toBe('/theirs')
    expect(chooseSources({}, {}, config)[name]).toBe('/config')
  })

  it('makes paths absolute and leaves addresses alone', () => {
    expect(chooseSources({ index: 'a/index.json' }, {}, {}).index).toBe(resolve('a/index.json'))
    expect(chooseSources({ index: 'file:///a/index.json' }, {}, {}).index).toBe('/a/index.json')
    expect(chooseSources({ index: 'https://x.test/i.json' }, {}, {}).index).toBe('https://x.test/i.json')
    expect(chooseSources({ agentsFile: 'mine.json' }, {}, {}).agentsFile).toBe(resolve('mine.json'))
  })
})
