import { afterEach, describe, expect, it } from 'vitest'
import { azure, bedrock, litellm, ollama, openai, vllm } from '../../src/agents/demo-endpoint/providers.ts'
import { type Harness, type HarnessOptions, startHarness } from './openai-agent-harness.ts'

let harness: Harness
afterEach(() => harness.stop())

async function ask(options: HarnessOptions): Promise<string> {
  harness = await startHarness(options)
  const session = await harness.newSession()
  expect(await harness.prompt(session, 'hi')).toBe('end_turn')
  return harness.shown(session)
}

const usageOf = () => harness.updates.find(({ update }) => update.sessionUpdate === 'usage_update')?.update

describe('provider', () => {
  it('OpenAI: learns max_completion_tokens once, and reports usage', async () => {
    const env = { OPENAI_API_KEY: 'sk-1', OPENAI_MAX_TOKENS: '50' }
    expect(await ask({ script: openai, env })).toBe('Hello from OpenAI')
    expect(usageOf()).toMatchObject({ used: 21, size: 0 })
    await harness.prompt(await harness.newSession(), 'again')
    const sent = harness.endpoint.chats().map(({ body }) => [body.max_tokens, body.max_completion_tokens])
    expect(sent).toEqual([
      [50, undefined],
      [undefined, 50],
      [undefined, 50],
    ])
  })

  it('Bedrock: bearer key, long model id', async () => {
    const model = 'arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.vendor.large-model-20260101-v1:0'
    const options = {
      script: bedrock,
      prefix: '/openai/v1',
      env: { OPENAI_API_KEY: 'bedrock-key', OPENAI_MODEL: model },
    }
    expect(await ask(options)).toBe(`Hello from ${model}`)
  })

  it('Azure: its own header and query, and a first chunk without choices', async () => {
    const env = { OPENAI_API_KEY: 'azure-key', OPENAI_API_VERSION: '2024-10-21' }
    expect(await ask({ script: azure, prefix: '/openai/deployments/chat', env })).toBe('Hello from Azure')
    expect(harness.endpoint.chats()[0]!.query.get('api-version')).toBe('2024-10-21')
  })

  it('Ollama: no key, and its own words for a model that is not there', async () => {
    expect(await ask({ script: ollama })).toBe('Hello from Ollama')
    await harness.stop()
    expect(await ask({ script: ollama, env: { OPENAI_MODEL: 'not-pulled' } })).toBe(
      `HTTP error (404) from ${harness.url}. model "not-pulled" not found, try pulling it first`,
    )
  })

  it('vLLM: thoughts, and usage in a chunk without choices', async () => {
    expect(await ask({ script: vllm })).toBe('Hello from vLLM')
    const { sessionId } = harness.updates[0]!
    expect(harness.shown(sessionId, 'agent_thought_chunk')).toBe('Let me think.')
    expect(usageOf()).toMatchObject({ used: 42 })
  })

  it('LiteLLM: comments as keep-alive, errors inside a 200', async () => {
    expect(await ask({ script: litellm })).toBe('Hello from LiteLLM')
    await harness.stop()
    expect(await ask({ script: litellm, env: { OPENAI_MODEL: 'broken' } })).toBe(
      'Hel\n\nlitellm.APIError: upstream is gone',
    )
  })
})
