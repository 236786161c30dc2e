import { describe, expect, it } from 'vitest'
import { verifies } from '../../../test/conformance/verifies.ts'
import { type Config, type Environment, readConfig } from './config.ts'

function configOf(env: Environment): Config {
  const read = readConfig(env)
  if ('problems' in read) throw new Error(read.problems.join('\n'))
  return read.config
}

function problemsOf(env: Environment): readonly string[] {
  const read = readConfig(env)
  return 'problems' in read ? read.problems : []
}

describe('configuration', () => {
  it('has the defaults of the specification', () => {
    verifies('O11-defaults')
    expect(configOf({})).toEqual({
      baseUrl: 'https://api.openai.com/v1',
      baseQuery: '',
      apiKey: '',
      model: 'gpt-4o',
      systemPrompt: undefined,
      maxTokens: undefined,
      temperature: undefined,
      apiVersion: undefined,
      headers: {},
      vision: false,
      maxRetries: 2,
      timeoutMs: 600_000,
      sessionDir: undefined,
    })
  })

  it('reads every variable', () => {
    const config = configOf({
      OPENAI_BASE_URL: 'http://localhost:11434/v1/',
      OPENAI_API_KEY: 'sk-test',
      OPENAI_MODEL: 'llama3',
      OPENAI_SYSTEM_PROMPT: 'Be brief.',
      OPENAI_MAX_TOKENS: '100',
      OPENAI_TEMPERATURE: '0.5',
      OPENAI_API_VERSION: '2024-10-21',
      OPENAI_HEADERS: '{"X-Team":"docs"}',
      OPENAI_VISION: 'TRUE',
      OPENAI_MAX_RETRIES: '0',
      OPENAI_TIMEOUT_SEC: '1.5',
      OPENAI_SESSION_DIR: 'sessions',
    })
    expect(config).toMatchObject({ baseUrl: 'http://localhost:11434/v1', apiKey: 'sk-test', model: 'llama3' })
    expect(config).toMatchObject({
      systemPrompt: 'Be brief.',
      maxTokens: 100,
      temperature: 0.5,
      apiVersion: '2024-10-21',
    })
    expect(config).toMatchObject({ headers: { 'X-Team': 'docs' }, vision: true, maxRetries: 0, timeoutMs: 1500 })
    expect(config.sessionDir).toBe('sessions')
  })

  it('takes an empty variable as unset', () => {
    expect(configOf({ OPENAI_BASE_URL: '', OPENAI_MAX_TOKENS: '', OPENAI_VISION: '' })).toEqual(configOf({}))
  })

  it('keeps the query of a base URL apart from it', () => {
    expect(configOf({ OPENAI_BASE_URL: 'https://gate.example/v1/?tenant=a' })).toMatchObject({
      baseUrl: 'https://gate.example/v1',
      baseQuery: '?tenant=a',
    })
  })

  it.each([
    ['OPENAI_BASE_URL', 'not a url'],
    ['OPENAI_BASE_URL', 'ftp://example.com'],
    ['OPENAI_BASE_URL', 'https://user:secret@example.com/v1'],
    ['OPENAI_API_KEY', 'sk-with\nbreak'],
    ['OPENAI_API_KEY', 'sk-\u20ac'],
    ['OPENAI_MODEL', '  '],
    ['OPENAI_MAX_TOKENS', '0'],
    ['OPENAI_MAX_TOKENS', '1.5'],
    ['OPENAI_MAX_TOKENS', '0x10'],
    ['OPENAI_MAX_TOKENS', 'many'],
    ['OPENAI_TEMPERATURE', 'warm'],
    ['OPENAI_TEMPERATURE', '-1'],
    ['OPENAI_TEMPERATURE', 'Infinity'],
    ['OPENAI_HEADERS', 'X-Team: docs'],
    ['OPENAI_HEADERS', '[1]'],
    ['OPENAI_HEADERS', '{"bad name":"x"}'],
    ['OPENAI_HEADERS', '{"X-Team":5}'],
    ['OPENAI_HEADERS', '{"X-Team":"a\\nb"}'],
    ['OPENAI_VISION', 'yes'],
    ['OPENAI_MAX_RETRIES', '-1'],
    ['OPENAI_MAX_RETRIES', '2.5'],
    ['OPENAI_TIMEOUT_SEC', '0'],
    ['OPENAI_TIMEOUT_SEC', '99999999'],
    ['OPENAI_SESSION_DIR', 'a\0b'],
  ])('names %s when it is %j, in one line', (name, value) => {
    const problems = problemsOf({ [name]: value })
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(new RegExp(`^${name} `))
    expect(problems[0]).not.toContain('\n')
  })

  it('reports all bad variables at once', () => {
    verifies('O11-all')
    expect(problemsOf({ OPENAI_BASE_URL: 'x', OPENAI_VISION: 'x', OPENAI_TEMPERATURE: 'x' })).toHaveLength(3)
  })

  it('shows no secret in a problem', () => {
    verifies('O11-all')
    const problems = problemsOf({
      OPENAI_API_KEY: 'sk-topsecret\n',
      OPENAI_HEADERS: '{"Authorization":"topsecret\\n"}',
      OPENAI_BASE_URL: 'https://me:topsecret@host/v1',
    })
    expect(problems).toHaveLength(3)
    expect(problems.join()).not.toContain('topsecret')
  })
})
