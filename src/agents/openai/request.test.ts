import { describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { type Config, type Environment, readConfig } from './config.ts'
import { learn, shownUrl, toBody, toHeaders, toUrl } from './request.ts'
import { readWishes } from './wishes.ts'

const configOf = (env: Environment) => (readConfig(env) as { config: Config }).config
const ask = { model: 'm', messages: [], tools: [] }
const chat = '/chat/completions'

describe('request', () => {
  it('asks for a stream with usage, and sends only what is configured', () => {
    expect(toBody(configOf({}), ask, new Set())).toEqual({
      model: 'm',
      messages: [],
      stream: true,
      stream_options: { include_usage: true },
    })
    const full = toBody(configOf({ OPENAI_MAX_TOKENS: '9', OPENAI_TEMPERATURE: '0' }), ask, new Set())
    expect(full).toMatchObject({ max_tokens: 9, temperature: 0 })
  })

  it('obeys what whoever prompts wishes, within its own limits', () => {
    verifies('13.16-wishes')
    const meta = {
      'stdio-bus/sampling': { maxTokens: 50, temperature: 0.7, stopSequences: ['a', 5, 'b', 'c', 'd', 'e'] },
    }
    const wishes = readWishes(meta)
    expect(toBody(configOf({ OPENAI_TEMPERATURE: '0' }), { ...ask, wishes }, new Set())).toMatchObject({
      max_tokens: 50,
      temperature: 0.7,
      stop: ['a', 'b', 'c', 'd'],
    })
    expect(toBody(configOf({ OPENAI_MAX_TOKENS: '9' }), { ...ask, wishes }, new Set())).toMatchObject({ max_tokens: 9 })
    const quirks = new Set(['max_completion_tokens'] as const)
    expect(toBody(configOf({}), { ...ask, wishes }, quirks)).toMatchObject({ max_completion_tokens: 50 })
  })

  it.each([
    undefined,
    null,
    5,
    {},
    { 'stdio-bus/sampling': 7 },
    { 'stdio-bus/sampling': { maxTokens: -1, temperature: 'x' } },
  ])('leaves out what does not fit: %j', (meta) => expect(readWishes(meta)).toEqual({}))

  it('sends no credential without a key', () => {
    verifies('O10-none')
    expect(toHeaders(configOf({}))).toEqual({})
    expect(toHeaders(configOf({ OPENAI_API_VERSION: '1' }))).toEqual({})
  })

  it('sends the key as a bearer, or as Azure wants it', () => {
    expect(toHeaders(configOf({ OPENAI_API_KEY: 'k' }))).toEqual({ authorization: 'Bearer k' })
    expect(toHeaders(configOf({ OPENAI_API_KEY: 'k', OPENAI_API_VERSION: '1' }))).toEqual({ 'api-key': 'k' })
  })

  it('lets configured headers win, whatever their spelling', () => {
    const config = configOf({ OPENAI_API_KEY: 'k', OPENAI_HEADERS: '{"Authorization":"Basic x","X-A":"1"}' })
    expect(toHeaders(config)).toEqual({ authorization: 'Basic x', 'x-a': '1' })
  })

  it('shows a URL without the query that it calls', () => {
    const config = configOf({ OPENAI_BASE_URL: 'https://h/d/?a=1', OPENAI_API_VERSION: '2024-10-21' })
    expect(toUrl(config, chat)).toBe('https://h/d/chat/completions?a=1&api-version=2024-10-21')
    expect(shownUrl(config)).toBe('https://h/d/chat/completions')
  })

  it('learns which fields a model refuses, once', () => {
    const config = configOf({ OPENAI_MAX_TOKENS: '9' })
    const body = toBody(config, ask, new Set())
    const refusal = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    expect(learn(400, refusal, body)).toBe('max_completion_tokens')
    expect(learn(500, refusal, body)).toBeUndefined()
    const adapted = toBody(config, ask, new Set(['max_completion_tokens']))
    expect(adapted).toMatchObject({ max_completion_tokens: 9 })
    expect(adapted).not.toHaveProperty('max_tokens')
    expect(learn(400, refusal, adapted)).toBeUndefined()
    expect(learn(400, 'unknown field stream_options', body)).toBe('no_stream_options')
    expect(toBody(config, ask, new Set(['no_stream_options']))).not.toHaveProperty('stream_options')
  })
})
