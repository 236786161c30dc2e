import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readConfig } from './config.ts'

const runs = { numRuns: 200 }

describe('configuration, for any environment', () => {
  it('gives back numbers as they were written', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e9 }), fc.double({ min: 0, max: 100, noNaN: true }), (tokens, heat) => {
        const read = readConfig({ OPENAI_MAX_TOKENS: String(tokens), OPENAI_TEMPERATURE: String(heat) })
        expect(read).toMatchObject({ config: { maxTokens: tokens, temperature: heat } })
      }),
      runs,
    )
  })

  it('gives back texts as they were written', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), fc.string({ minLength: 1, unit: 'grapheme-ascii' }), (prompt, key) => {
        const read = readConfig({ OPENAI_SYSTEM_PROMPT: prompt, OPENAI_API_KEY: key })
        expect(read).toMatchObject({ config: { systemPrompt: prompt, apiKey: key } })
      }),
      runs,
    )
  })

  it('yields a configuration or lines that each begin with a variable, never an exception', () => {
    const names = [
      'BASE_URL',
      'API_KEY',
      'MAX_TOKENS',
      'TEMPERATURE',
      'HEADERS',
      'VISION',
      'MAX_RETRIES',
      'TIMEOUT_SEC',
    ]
    const anything = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.json(), fc.double().map(String))
    const environment = fc.dictionary(fc.constantFrom(...names.map((name) => `OPENAI_${name}`)), anything)
    fc.assert(
      fc.property(environment, (env) => {
        const read = readConfig(env)
        if ('config' in read) return
        for (const problem of read.problems) expect(problem).toMatch(/^OPENAI_[A-Z_]+ .+/)
      }),
      runs,
    )
  })
})
