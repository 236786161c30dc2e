/**
 * Looks for Chat Completions servers that people run on their own machine, at their usual ports.
 *
 * It asks 127.0.0.1 for a list of models and nothing else. A key is sent only to the server whose own variable holds it,
 * and only after that server has asked for one. What answers is not trusted: time and bytes are bounded.
 */
import type { Environment } from './environment.ts'
import type { Endpoint } from './starter.ts'

export interface Candidate {
  readonly name: string
  readonly port: number
  /** Where the server's own documentation keeps its key. */
  readonly keyVariable?: string
}

export const CANDIDATES: readonly Candidate[] = [
  { name: 'Ollama', port: 11_434 },
  { name: 'vLLM', port: 8_000, keyVariable: 'VLLM_API_KEY' },
  { name: 'LiteLLM', port: 4_000, keyVariable: 'LITELLM_MASTER_KEY' },
]

export interface Detection {
  readonly name: string
  readonly baseUrl: string
  /** Left out: the server runs but cannot be used yet, for the reason in `lack`. */
  readonly endpoint?: Endpoint
  readonly lack?: 'model' | 'key'
}

const PROBE_TIMEOUT_MS = 400
const MAX_ANSWER_BYTES = 1024 * 1024

/** Every candidate that answers, in the order of the candidates. */
export async function detectEndpoints(environment: Environment, candidates = CANDIDATES): Promise<Detection[]> {
  const found = await Promise.all(candidates.map((candidate) => detect(candidate, environment)))
  return found.filter((detection) => detection !== undefined)
}

async function detect(
  { name, port, keyVariable }: Candidate,
  environment: Environment,
): Promise<Detection | undefined> {
  const baseUrl = `http://127.0.0.1:${port}/v1`
  const open = await listModels(baseUrl)
  if (open === undefined) return undefined
  if (open !== 'locked') return withModel({ name, baseUrl }, open)
  const key = keyVariable === undefined ? undefined : environment[keyVariable]
  const models = key ? await listModels(baseUrl, key) : 'locked'
  if (models === 'locked' || models === undefined) return { name, baseUrl, lack: 'key' }
  return withModel({ name, baseUrl }, models, keyVariable)
}

function withModel(server: { name: string; baseUrl: string }, models: readonly string[], envKey?: string): Detection {
  // The first one listed, but a model that only makes embeddings cannot chat.
  const model = models.find((id) => !/embed/i.test(id)) ?? models[0]
  if (model === undefined) return { ...server, lack: 'model' }
  return { ...server, endpoint: { baseUrl: server.baseUrl, model, ...(envKey === undefined ? {} : { envKey }) } }
}

/** The ids of the models; `locked` when a key is asked for; nothing when there is no such server. */
async function listModels(baseUrl: string, key?: string): Promise<string[] | 'locked' | undefined> {
  try {
    const response = await fetch(`${baseUrl}/models`, {
      headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
      redirect: 'error',
      signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
    })
    if (response.status === 401 || response.status === 403) return 'locked'
    return response.ok ? modelIds(JSON.parse(await boundedText(response))) : undefined
  } catch {
    // Nobody there, too slow, or no such server: each means that there is nothing to offer.
    return undefined
  }
}

function modelIds(answer: unknown): string[] | undefined {
  const list = (answer as { data?: unknown } | null)?.data
  // Ollama without a model says null.
  if (list === null) return []
  if (!Array.isArray(list)) return undefined
  return list.map((model) => model?.id).filter((id) => typeof id === 'string' && id !== '')
}

async function boundedText(response: Response): Promise<string> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (text.length > MAX_ANSWER_BYTES) throw new Error('the list of models is too long')
  }
  return text
}
