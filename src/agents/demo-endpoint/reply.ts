/**
 * What the scripted Chat Completions endpoint can be told to do, as plain data, and the words to say it with.
 *
 * It knows the wire format and nothing of the agent: a reply may be as wrong as a real provider's.
 * Invariant: a reply is either whole (`body`) or streamed (`steps`), never both.
 */

/** One thing that happens in a streamed reply. */
export type Step =
  | { readonly event: unknown }
  | { readonly raw: string | Uint8Array }
  | { readonly waitMs: number }
  | { readonly cut: true }
  | { readonly hang: true }

/** A reply: status and headers, then either a whole body or the steps of a stream. */
export interface Reply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  /** Time of silence before the status line. */
  readonly delayMs?: number
  /** A string goes out as it is, anything else as JSON. */
  readonly body?: unknown
  readonly steps?: readonly Step[]
}

/** Token counts as the endpoint reports them. */
export interface Usage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
}

/** A tool call as the model makes it. */
export interface ScriptedCall {
  readonly name: string
  readonly arguments: string
  readonly id?: string
}

const envelope = { id: 'chatcmpl-scripted', object: 'chat.completion.chunk', created: 0, model: 'scripted' }

/** One chunk of a stream with the given delta. */
export function delta(fields: Record<string, unknown>, finishReason: string | null = null): Step {
  return { event: { ...envelope, choices: [{ index: 0, delta: fields, finish_reason: finishReason }] } }
}

/** A piece of the answer. */
export const text = (content: string): Step => delta({ content })

/** A piece of reasoning, in the field that vLLM (`reasoning_content`) or others (`reasoning`) use. */
export const thought = (content: string, field = 'reasoning_content'): Step => delta({ [field]: content })

/** The reason for the end of the answer. */
export const finish = (reason = 'stop'): Step => delta({}, reason)

/** The chunk that reports usage: it has no choices. */
export const usage = (totalTokens: number): Step => ({
  event: {
    ...envelope,
    choices: [],
    usage: { prompt_tokens: 0, completion_tokens: totalTokens, total_tokens: totalTokens },
  },
})

/** The end of the stream. */
export const done: Step = { raw: 'data: [DONE]\n\n' }

/** A whole, well-behaved answer in the given pieces. */
export function says(...pieces: string[]): Reply {
  return { steps: [delta({ role: 'assistant', content: '' }), ...pieces.map(text), finish(), done] }
}

/** An answer that calls tools; the arguments come in two pieces, as real endpoints send them. */
export function calls(...wanted: ScriptedCall[]): Reply {
  const steps = wanted.flatMap((call, index) => {
    const middle = Math.floor(call.arguments.length / 2)
    const named = { id: call.id ?? `call_${index}`, type: 'function', function: { name: call.name, arguments: '' } }
    return [
      delta({ tool_calls: [{ index, ...named }] }),
      delta({ tool_calls: [{ index, function: { arguments: call.arguments.slice(0, middle) } }] }),
      delta({ tool_calls: [{ index, function: { arguments: call.arguments.slice(middle) } }] }),
    ]
  })
  return { steps: [...steps, finish('tool_calls'), done] }
}

/** A refusal with a status, worded as OpenAI words it. */
export function fails(status: number, message = 'scripted failure', headers: Record<string, string> = {}): Reply {
  return { status, headers, body: { error: { message, type: 'scripted', code: null } } }
}
