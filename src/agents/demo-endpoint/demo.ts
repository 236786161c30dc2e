/**
 * The script of the demo: a first success without key or network.
 *
 * It is not a model and says so in its first sentence. It repeats a short part of the question, nothing else.
 */
import { delta, done, finish, type Reply, type Step, text, usage } from './reply.ts'
import { type Endpoint, type SeenRequest, startEndpoint } from './server.ts'

/** The model name the demo goes by. */
export const demoModel = 'stdio-bus-demo'

const pauseMs = 12
const maxQuotedChars = 200

/** Starts the demo endpoint. */
export function startDemo(): Promise<Endpoint> {
  return startEndpoint({ script: demoReply, models: [{ id: demoModel, context_length: 8192 }], memory: 1 })
}

/** The demo's answer to a question, word by word. */
export function demoReply(request: SeenRequest): Reply {
  const words = answerTo(lastQuestion(request.body?.messages)).split(/(?<=\s)/)
  const steps = words.flatMap((word): Step[] => [{ waitMs: pauseMs }, text(word)])
  return { steps: [delta({ role: 'assistant', content: '' }), ...steps, finish(), usage(words.length), done] }
}

function answerTo(question: string): string {
  const quoted = question.length > maxQuotedChars ? `${question.slice(0, maxQuotedChars)}…` : question
  return (
    'This is the built-in demo of stdio Bus: no model is behind it, but everything else is real. ' +
    `You wrote: "${quoted}". ` +
    'To talk to a model set OPENAI_BASE_URL and OPENAI_MODEL, and OPENAI_API_KEY where it wants one; leave out --demo.'
  )
}

function lastQuestion(messages: unknown): string {
  const last = Array.isArray(messages) ? messages.findLast((message) => message?.role === 'user') : undefined
  const content = last?.content
  if (typeof content === 'string') return content
  const parts = Array.isArray(content) ? content.filter((part) => typeof part?.text === 'string') : []
  return parts.map((part) => part.text).join(' ')
}
