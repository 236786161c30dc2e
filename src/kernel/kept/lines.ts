/**
 * Lines that the bus itself says in a kept session, in the words of its dialect: events, what a person said, and what
 * clients that know nothing of others must be told. Spelled here and nowhere else; each ends with its newline.
 */
import type { Envelope } from '../../wire/envelope.ts'
import { FIELD } from '../../wire/fields.ts'
import { elementsOf, memberOf } from '../../wire/json-array.ts'
import { readWritable } from '../../wire/nesting.ts'
import type { KeepingWords } from '../dialect-table.ts'
import { FIXED } from '../limits.ts'
import type { SessionId } from '../vocabulary.ts'

/** What is told of a session beside what is said in it (contract 12.19). */
export type SessionEvent =
  | 'turn_started'
  | 'turn_ended'
  | 'question'
  | 'answered'
  | 'driver'
  | 'joined'
  | 'left'
  | 'gap'
  | 'lost'
  | 'ended'
  | 'dropped'

export const EVENT_METHOD = 'bus::sessions.event'

/** The names under which clients find what the bus adds to messages of their protocol. */
export const MARK = {
  session: 'stdio-bus/session',
  turn: 'stdio-bus/turn',
  driver: 'stdio-bus/driver',
  lost: 'stdio-bus/lost',
  dropped: 'stdio-bus/dropped',
} as const

export interface EventHead {
  readonly session: SessionId
  readonly seq: number
  readonly kind: SessionEvent
  readonly at: string
}

/** `more` is JSON of members that are ready, or values. */
export function eventLine(head: EventHead, more: Readonly<Record<string, unknown>> = {}, ready = ''): Buffer {
  const params = JSON.stringify({ ...head, ...more })
  const all = ready === '' ? params : `${params.slice(0, -1)},${ready}}`
  return Buffer.from(`{"jsonrpc":"2.0","method":"${EVENT_METHOD}","params":${all}}\n`)
}

/** `update` is JSON. */
function updateLine({ update }: KeepingWords, session: SessionId, text: string): Buffer {
  const method = JSON.stringify(update)
  return Buffer.from(
    `{"jsonrpc":"2.0","method":${method},"params":{"sessionId":${JSON.stringify(session)},"update":${text}}}\n`,
  )
}

/** What is so in the session, told in a field of the bus's own. */
export function noticeLine(words: KeepingWords, session: SessionId, mark: string, value: unknown): Buffer {
  const update = { sessionUpdate: words.sessionIs, _meta: { [mark]: value } }
  return updateLine(words, session, JSON.stringify(update))
}

interface Hearer {
  /** It has done it itself. */
  readonly isOwn: boolean
  readonly knowsTurns: boolean
}

/** What somebody who gets no events must be told of one, if anything. */
export function noticeOf(
  words: KeepingWords,
  session: SessionId,
  event: Buffer,
  { isOwn, knowsTurns }: Hearer,
): Buffer | undefined {
  const { params } = JSON.parse(event.toString()) as { params: { kind: SessionEvent; [key: string]: unknown } }
  const { kind, name, stopReason } = params
  if (kind === 'driver') return noticeLine(words, session, MARK.driver, { name, you: isOwn })
  if (isOwn || knowsTurns) return undefined
  if (kind === 'turn_started') return noticeLine(words, session, MARK.turn, { state: 'running' })
  if (kind === 'turn_ended') return noticeLine(words, session, MARK.turn, { state: 'idle', stopReason })
  return undefined
}

/** The agent will not go on, in words that a person reads. */
export function lostLine(words: KeepingWords, session: SessionId): Buffer {
  const text =
    'This is what was said. The agent has lost the session and cannot go on with it: start a new one to continue.'
  const update = { sessionUpdate: words.agentSaid, content: { type: 'text', text }, _meta: { [MARK.lost]: true } }
  return updateLine(words, session, JSON.stringify(update))
}

/** What a prompt says, part by part, as the agent would tell it later. */
export function promptLines(words: KeepingWords, session: SessionId, line: Envelope): Buffer[] {
  const { bytes } = line
  const parts = partsOf(words, line)
  const kind = JSON.stringify(words.personSaid)
  return parts.map(({ start, end }) =>
    updateLine(words, session, `{"sessionUpdate":${kind},"content":${bytes.utf8Slice(start, end)}}`),
  )
}

/** The first words of a prompt, for a title. */
export function titleOf(words: KeepingWords, line: Envelope): string {
  for (const { start, end } of partsOf(words, line)) {
    const text: unknown = JSON.parse(line.bytes.utf8Slice(start, end))?.text
    if (typeof text !== 'string' || text.trim() === '') continue
    const characters = [
      ...text
        .trim()
        .replace(/\s+/g, ' ')
        .slice(0, 4 * FIXED.maxPromptTitle),
    ]
    return characters.slice(0, FIXED.maxPromptTitle).join('')
  }
  return ''
}

const BRACE = 0x7b

function partsOf({ promptKey }: KeepingWords, line: Envelope): { start: number; end: number }[] {
  if (!line.has(FIELD.params)) return []
  const { bytes } = line
  const prompt = memberOf(bytes, line.startOf(FIELD.params), line.endOf(FIELD.params), promptKey)
  // What is no part is for the agent to refuse: nobody is told of it.
  return prompt === undefined
    ? []
    : [...elementsOf(bytes, prompt.start, prompt.end)].filter(({ start }) => bytes[start] === BRACE)
}

/** The value of a field of `params`, understood. */
export function paramsOf(line: Envelope): Readonly<Record<string, unknown>> {
  return line.has(FIELD.params) ? objectAt(line, FIELD.params) : {}
}

export function resultOf(line: Envelope): Readonly<Record<string, unknown>> {
  return line.has(FIELD.result) ? objectAt(line, FIELD.result) : {}
}

function objectAt(line: Envelope, field: (typeof FIELD)['params']): Readonly<Record<string, unknown>> {
  const value = readWritable(line.bytes.subarray(line.startOf(field), line.endOf(field)))
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}
