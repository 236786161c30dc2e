/** What an agent asks, in its own words and in one line (contract 15.7, 15.8). */
import type { OpenQuestion } from './port.ts'

const MAX_TITLE = 200

export function titleOf({ params, method }: Pick<OpenQuestion, 'params' | 'method'>): string {
  const { toolCall, message } = JSON.parse(params) as { toolCall?: { title?: unknown } | null; message?: unknown }
  const words = [toolCall?.title, message].find((text) => typeof text === 'string' && text !== '')
  return String(words ?? method).slice(0, MAX_TITLE)
}
