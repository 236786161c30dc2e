/** The words of a call: what it was asked and what it answered, where they are text. */
import type { CallDocument } from './document.ts'
import { isRecord } from './observed-line.ts'

export function promptTextOf({ input, inputs }: CallDocument): string | undefined {
  const prompt = isRecord(input) ? input['prompt'] : undefined
  return textOf(Array.isArray(prompt) ? prompt : inputs) ?? headOf(input)
}

export function answerTextOf({ output, outputs }: CallDocument): string | undefined {
  const content = isRecord(output) ? output['content'] : undefined
  return textOf(outputs) ?? textOf(Array.isArray(content) ? content : undefined) ?? headOf(output)
}

/** Blocks as ACP and MCP (`text`) and AIO (`value`) have them; of what is no text the kind. */
function textOf(blocks: readonly unknown[] | undefined): string | undefined {
  const texts = (blocks ?? []).flatMap((block) => {
    if (!isRecord(block)) return []
    const { type, text, value } = block
    if (typeof text === 'string') return [text]
    if (typeof value === 'string' && type === 'text') return [value]
    return typeof type === 'string' ? [`[${type}]`] : []
  })
  const whole = texts.join('\n').trim()
  return whole === '' ? undefined : whole
}

/** Of a payload that was cut the beginning is there, as JSON text. */
function headOf(payload: unknown): string | undefined {
  if (!isRecord(payload) || payload['truncated'] !== true || typeof payload['head'] !== 'string') return undefined
  return `${payload['head']}…`
}
