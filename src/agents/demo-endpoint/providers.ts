/**
 * How each provider of the agent's table differs from the plain case, as replies to replay.
 *
 * Recorded from documentation and from what servers really send; shapes only, no provider is ever called.
 */
import { delta, done, fails, finish, type Reply, says, text, thought, usage } from './reply.ts'
import type { Script, SeenRequest } from './server.ts'

const oldNameRefused =
  "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."

/** OpenAI: newer models refuse `max_tokens`; usage comes in a last chunk when it was asked for. */
export const openai: Script = (request) => {
  if (request.headers.authorization === undefined) return fails(401, 'You did not provide an API key.')
  if ('max_tokens' in request.body) return fails(400, oldNameRefused)
  return withUsage(request, says('Hello', ' from OpenAI'), 21)
}

/** Bedrock: a bearer key and a long model id. */
export const bedrock: Script = (request) => {
  if (!request.headers.authorization?.startsWith('Bearer ')) return fails(403, 'Missing bearer token.')
  return says(`Hello from ${request.body.model}`)
}

/** Azure: key and version in its own places; the first chunk has only the content filter's verdict. */
export const azure: Script = (request) => {
  if (request.headers['api-key'] === undefined || request.headers.authorization !== undefined) return fails(401)
  if (!request.query.get('api-version')) return fails(404, 'Resource not found')
  const verdict = { choices: [], prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }] }
  return {
    steps: [{ event: verdict }, delta({ role: 'assistant', content: '' }), text('Hello from Azure'), finish(), done],
  }
}

/** Ollama: no key; a model that was not pulled is a 404 with a message worth showing. */
export const ollama: Script = (request) => {
  if (request.headers.authorization !== undefined) return fails(400, 'no key was expected')
  if (request.body.model === 'not-pulled') return fails(404, 'model "not-pulled" not found, try pulling it first')
  return says('Hello from Ollama')
}

/** vLLM: reasoning in its own field, usage in a chunk without choices. */
export const vllm: Script = (request) =>
  withUsage(request, { steps: [thought('Let me '), thought('think.'), text('Hello from vLLM'), finish(), done] }, 42)

/** LiteLLM: comments keep the stream alive, and an error may come inside a 200. */
export const litellm: Script = (request) => {
  const alive = { raw: ': keep-alive\n\n' }
  if (request.body.model !== 'broken')
    return { steps: [alive, text('Hello from'), alive, text(' LiteLLM'), finish(), done] }
  const error = { error: { message: 'litellm.APIError: upstream is gone', type: 'None', param: 'None', code: '500' } }
  return { steps: [alive, text('Hel'), { event: error }, done] }
}

function withUsage(request: SeenRequest, reply: Reply, totalTokens: number): Reply {
  if (!request.body.stream_options?.include_usage) return reply
  return { ...reply, steps: [...(reply.steps ?? []).slice(0, -1), usage(totalTokens), done] }
}
