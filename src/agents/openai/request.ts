/**
 * What is sent to the endpoint: URL, headers and body of a chat request, and what to change when a model refuses a field.
 *
 * It sends nothing. Invariant: without a key there is no credential header at all.
 */
import type { Config } from './config.ts'
import type { RequestMessage } from './history.ts'
import type { Wishes } from './wishes.ts'

/** A function the model may call. */
export interface FunctionTool {
  readonly type: 'function'
  readonly function: {
    readonly name: string
    readonly description?: string
    readonly parameters: Record<string, unknown>
  }
}

export interface Ask {
  readonly model: string
  readonly messages: readonly RequestMessage[]
  readonly tools: readonly FunctionTool[]
  /** Of whoever prompts. */
  readonly wishes?: Wishes
}

/** A field that a model turned out not to take. */
export type Quirk = 'max_completion_tokens' | 'no_stream_options'

/** A URL under the base, with the queries that base and version ask for. */
export function toUrl(config: Config, path: string): string {
  const query = new URLSearchParams(config.baseQuery)
  if (config.apiVersion !== undefined) query.set('api-version', config.apiVersion)
  return `${shownUrl(config, path)}${query.size > 0 ? `?${query}` : ''}`
}

/** The same URL as users read it. */
export function shownUrl(config: Config, path = '/chat/completions'): string {
  return `${config.baseUrl}${path}`
}

/** Credentials and the configured extra headers. */
export function toHeaders(config: Config): Record<string, string> {
  const azure = config.apiVersion !== undefined
  const credential: Record<string, string> = azure
    ? { 'api-key': config.apiKey }
    : { authorization: `Bearer ${config.apiKey}` }
  const lowered = Object.entries(config.headers).map(([name, value]) => [name.toLowerCase(), value])
  return { ...(config.apiKey === '' ? {} : credential), ...Object.fromEntries(lowered) }
}

/** The JSON body of a chat request. */
export function toBody(config: Config, ask: Ask, quirks: ReadonlySet<Quirk>): Record<string, unknown> {
  const limit = quirks.has('max_completion_tokens') ? 'max_completion_tokens' : 'max_tokens'
  const { stop, maxTokens: wished = Number.POSITIVE_INFINITY } = ask.wishes ?? {}
  const maxTokens = Math.min(wished, config.maxTokens ?? Number.POSITIVE_INFINITY)
  const temperature = ask.wishes?.temperature ?? config.temperature
  return {
    model: ask.model,
    messages: ask.messages,
    stream: true,
    ...(quirks.has('no_stream_options') ? {} : { stream_options: { include_usage: true } }),
    ...(Number.isFinite(maxTokens) ? { [limit]: maxTokens } : {}),
    ...(temperature === undefined ? {} : { temperature }),
    ...(stop === undefined ? {} : { stop }),
    ...(ask.tools.length === 0 ? {} : { tools: ask.tools }),
  }
}

const lessons: ReadonlyArray<{ quirk: Quirk; sent: string; named: string }> = [
  { quirk: 'max_completion_tokens', sent: 'max_tokens', named: 'max_completion_tokens' },
  { quirk: 'no_stream_options', sent: 'stream_options', named: 'stream_options' },
]

/** What a refusal teaches about the model, if the request can be repeated in another form. */
export function learn(status: number, refusal: string, body: Record<string, unknown>): Quirk | undefined {
  if (status !== 400) return undefined
  return lessons.find((lesson) => lesson.sent in body && refusal.includes(lesson.named))?.quirk
}
