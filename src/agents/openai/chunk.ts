/**
 * Reads one event of a completion stream, or a whole completion, into the few things the agent needs.
 *
 * A pure function per event. It trusts no field: what is missing or of another type counts as absent.
 */
import { isRecord, messageIn } from './errors.ts'

/** A piece of a tool call; the pieces of one call share an index. */
export interface CallFragment {
  readonly index: number | undefined
  readonly id: string | undefined
  readonly name: string
  readonly arguments: string
}

export interface Chunk {
  readonly text: string
  readonly thought: string
  readonly calls: readonly CallFragment[]
  readonly finish: string | undefined
  readonly totalTokens: number | undefined
  /** The endpoint gave up inside the stream. */
  readonly error: string | undefined
}

/** The mark after the last event. */
export const isDone = (data: string): boolean => data.trim() === '[DONE]'

/** One event's data, or `undefined` when it is not a JSON object. */
export function parseChunk(data: string): Chunk | undefined {
  try {
    const value: unknown = JSON.parse(data)
    return isRecord(value) ? toChunk(value) : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** A chunk of a stream, or a whole completion, whose `message` stands where a chunk has its `delta`. */
export function toChunk(value: Record<string, unknown>): Chunk {
  const choice = first(value['choices'])
  const delta = record(choice['delta'] ?? choice['message'])
  return {
    text: textOf(delta['content']) || textOf(delta['refusal']),
    thought: textOf(delta['reasoning_content']) || textOf(delta['reasoning']),
    calls: list(delta['tool_calls']).map(toFragment),
    finish: typeof choice['finish_reason'] === 'string' ? choice['finish_reason'] : undefined,
    totalTokens: totalOf(record(value['usage'])),
    error: errorOf(value),
  }
}

/** Whether a JSON body is a whole completion. */
export function isCompletion(value: Record<string, unknown>): boolean {
  return isRecord(first(value['choices'])['message'])
}

function errorOf(value: Record<string, unknown>): string | undefined {
  const error = value['error']
  if (error === undefined || error === null || error === false) return undefined
  return messageIn(value) ?? 'The endpoint reported an error without a message.'
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  return list(content).reduce((text: string, part) => text + textOf(record(part)['text']), '')
}

function toFragment(value: unknown): CallFragment {
  const call = record(value)
  const named = record(call['function'])
  return {
    index: typeof call['index'] === 'number' ? call['index'] : undefined,
    id: typeof call['id'] === 'string' && call['id'] !== '' ? call['id'] : undefined,
    name: typeof named['name'] === 'string' ? named['name'] : '',
    arguments: typeof named['arguments'] === 'string' ? named['arguments'] : '',
  }
}

function totalOf(usage: Record<string, unknown>): number | undefined {
  const total = usage['total_tokens'] ?? sum(usage['prompt_tokens'], usage['completion_tokens'])
  return Number.isSafeInteger(total) && (total as number) >= 0 ? (total as number) : undefined
}

function sum(a: unknown, b: unknown): number | undefined {
  return typeof a === 'number' && typeof b === 'number' ? a + b : undefined
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
const record = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {})
const first = (value: unknown): Record<string, unknown> => record(list(value)[0])
