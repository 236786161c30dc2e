/**
 * What to do when a conversation has outgrown the model's context: how endpoints say so, and what is left out first.
 *
 * It asks nobody and keeps nothing. Invariant: each `shorten` makes the history at least a turn shorter, and about half as
 * long while there is more than one turn, so asking again comes to an end after a few tries.
 */
import { type Message, sizeOf, trim } from './history.ts'

/** How providers word it; most give no code. */
const wordings: readonly RegExp[] = [
  /context_length_exceeded|exceed_context_size|ContextWindowExceeded|string_above_max_length/i,
  /\b(maximum|max) context (length|window|size)/i,
  /\bcontext (length|window|size|limit)\b.{0,60}\b(exceed|too (long|small|large)|overflow)/i,
  /\b(exceed\w*|longer than|larger than|too (long|large) for)\b.{0,60}\bcontext\b/i,
  /\b(prompt|input|request|conversation|messages?) (is|are|was) too (long|large)\b/i,
  /\binput (token count|length|tokens)\b.{0,60}\bexceed/i,
  /\breduce the length of the (messages|prompt|input)\b/i,
  /\btoo many (input |prompt )?tokens\b/i,
]

/** Whether a refusal, or an error inside a stream (`status` 200), says that the request was too long for the model. */
export function isOverflow(status: number, words: string): boolean {
  if (status === 413) return true
  return [200, 400, 422].includes(status) && wordings.some((wording) => wording.test(words))
}

/** Leaves out the older half of the turns, then what tools gave in the newest; false when the question alone is left. */
export function shorten(history: Message[]): boolean {
  const chars = history.reduce((sum, message) => sum + sizeOf(message), 0)
  return trim(history, Math.floor(chars / 2)) > 0 || omitResults(history)
}

const omitted = 'The result was too long for the context of the model and is left out. Ask for less.'

function omitResults(history: Message[]): boolean {
  let hasChanged = false
  for (const [index, message] of history.entries()) {
    if (message.role !== 'tool' || message.content.length <= omitted.length) continue
    history[index] = { ...message, content: omitted }
    hasChanged = true
  }
  return hasChanged
}

/** The history as it was before the newest question. */
export function withoutNewestTurn(history: readonly Message[]): Message[] {
  return history.slice(
    0,
    history.findLastIndex((message) => message.role === 'user'),
  )
}

/** What follows the endpoint's own words when nothing more can be left out. */
export const howToGoOn =
  'This question alone is too long for the model: ask a shorter one, attach less, or choose a model with a larger context. The session goes on without it.'
