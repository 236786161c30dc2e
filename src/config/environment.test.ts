// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the file itself spells its references so
import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AGENT_VARIABLES, escapeReferences, expandReferences, workerEnvironment } from './environment.ts'

const DAEMON = { PATH: '/bin', HOME: '/h', LC_ALL: 'C', OPENAI_API_KEY: 'secret', NODE_OPTIONS: '--x', GONE: undefined }

describe('5.4 the environment of a worker', () => {
  it('is small and safe, with what the pool adds', () => {
    const env = workerEnvironment({ env: { A: '1', HOME: '/other' }, inheritEnv: false }, DAEMON)
    expect(env).toEqual({ PATH: '/bin', HOME: '/other', LC_ALL: 'C', A: '1' })
  })

  it('is everything with inherit_env', () => {
    const env = workerEnvironment({ env: {}, inheritEnv: true }, DAEMON)
    expect(env).toEqual({ PATH: '/bin', HOME: '/h', LC_ALL: 'C', OPENAI_API_KEY: 'secret', NODE_OPTIONS: '--x' })
  })

  it('has the variables that the agent is documented to read, unless the pool sets them', () => {
    const daemon = { ...DAEMON, OPENAI_MODEL: 'm', https_proxy: 'http://p', OPENAI_OTHER: 'x' }
    const options = { env: { OPENAI_MODEL: 'mine' }, inheritEnv: false }
    const safe = { PATH: '/bin', HOME: '/h', LC_ALL: 'C' }
    expect(workerEnvironment({ ...options, agent: 'openai' }, daemon)).toEqual({
      ...{ ...safe, OPENAI_API_KEY: 'secret', OPENAI_MODEL: 'mine', https_proxy: 'http://p' },
    })
    expect(workerEnvironment({ ...options, agent: 'echo' }, daemon)).toEqual({ ...safe, OPENAI_MODEL: 'mine' })
    expect(workerEnvironment(options, daemon)).toEqual({ ...safe, OPENAI_MODEL: 'mine' })
  })

  it('knows every variable that the page of the OpenAI agent names, and no other', async () => {
    const page = await readFile(new URL('../../docs/openai-agent.md', import.meta.url), 'utf8')
    const [, section = ''] = /^## Configuration$(.*?)^\| provider/ms.exec(page) ?? []
    const named = new Set(section.match(/\b(?:OPENAI|HTTPS?|NO)_[A-Z_]+\b/g))
    expect(new Set(AGENT_VARIABLES.openai.filter((name) => name === name.toUpperCase()))).toEqual(named)
  })

  it('later layers win', () => {
    const env = workerEnvironment({ env: { K: 'pool', L: 'pool' }, inheritEnv: false }, {}, { K: 'credentials' })
    expect(env).toEqual({ K: 'credentials', L: 'pool' })
  })
})

describe('5.4 references', () => {
  it.each([
    ['${A}', 'one'],
    ['x${A}y${A}', 'xoney' + 'one'],
    ['$${A}', '${A}'],
    ['$A $ {A} $$', '$A $ {A} $$'],
    ['$$${A}', '$${A}'],
    ['${REF}', '${A}'],
  ])('%s becomes %s', (text, value) => {
    expect(expandReferences(text, { A: 'one', REF: '${A}' })).toEqual({ value, unset: [], malformed: false })
  })

  it('names what is not set, and what is no reference', () => {
    expect(expandReferences('${B} ${C}', { A: '1' })).toMatchObject({ unset: ['B', 'C'], malformed: false })
    for (const text of ['${', '${}', '${a b}', '${1}'])
      expect(expandReferences(text, {})).toMatchObject({ malformed: true })
  })

  it('any text survives being escaped and expanded', () => {
    const text = fc.string({ unit: fc.constantFrom('$', '{', '}', 'A', ' ') })
    fc.assert(
      fc.property(text, (original) => {
        expect(expandReferences(escapeReferences(original), {})).toEqual({
          value: original,
          unset: [],
          malformed: false,
        })
      }),
    )
  })
})
